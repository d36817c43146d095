#include "store/embedded_store.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "codes.h"
#include "copy/copy_engine.h"
#include "memory/probe.h"
#include "memory/region_registry.h"
#include "store/object_table.h"
#include "store/value_pool.h"

namespace mooncake_kv {

struct EmbeddedStore::State {
  explicit State(const StoreOptions& options) : pool(options.capacity), table(pool), copier(options.copy_threads) {}

  // The table refers to the pool, so it goes first.
  ValuePool pool;
  ObjectTable table;
  RegionRegistry regions;
  CopyEngine copier;
};

namespace {

/// The objects that a put has made and not filled yet. Whatever is not completed is taken back.
class UnfinishedObjects {
 public:
  explicit UnfinishedObjects(ObjectTable& table) : table_(table) {}
  ~UnfinishedObjects() {
    for (const ObjectRef& object : objects_) table_.revoke(object);
  }
  UnfinishedObjects(const UnfinishedObjects&) = delete;
  UnfinishedObjects& operator=(const UnfinishedObjects&) = delete;

  void reserve(std::size_t count) { objects_.reserve(count); }
  /// Never throws within what was reserved.
  void add(ObjectRef object) { objects_.push_back(std::move(object)); }
  void complete() {
    for (const ObjectRef& object : objects_) object->set_complete();
    objects_.clear();
  }

 private:
  ObjectTable& table_;
  std::vector<ObjectRef> objects_;
};

std::uint8_t* pointer(std::uint64_t address) { return reinterpret_cast<std::uint8_t*>(static_cast<std::uintptr_t>(address)); }

/// The bytes of a row, or nothing when a segment lies outside the regions or the sum overflows.
std::optional<std::uint64_t> checked_bytes(const SegmentBatch& segments, std::size_t row, RegionRegistry::Guard& regions) {
  std::uint64_t total = 0;
  for (std::uint32_t i = segments.row_offsets[row]; i < segments.row_offsets[row + 1]; i++) {
    const std::uint64_t size = segments.sizes[i];
    if (!regions.covers(segments.addresses[i], size)) return std::nullopt;
    if (size > std::numeric_limits<std::uint64_t>::max() - total) return std::nullopt;
    total += size;
  }
  return total;
}

/// Runs a batch; when memory for its bookkeeping runs out, every key fails and nothing of it stays.
template <typename Code, typename Body>
void guarded(const KeyBatch& keys, Code* codes, Body body) {
  try {
    body();
  } catch (const std::exception&) {
    std::fill_n(codes, keys.count, Code{code::internal_error});
  }
}

}  // namespace

EmbeddedStore::EmbeddedStore(const StoreOptions& options) : state_(std::make_shared<State>(options)) {}
EmbeddedStore::~EmbeddedStore() = default;

std::shared_ptr<EmbeddedStore::State> EmbeddedStore::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

std::int32_t EmbeddedStore::register_buffer(std::uint64_t address, std::uint64_t size, std::shared_ptr<const void> owner) {
  const auto state = this->state();
  if (!state || address == 0 || size == 0) return code::invalid_params;
  if (size - 1 > std::numeric_limits<std::uint64_t>::max() - address) return code::invalid_params;
  // Memory with an owner is known to be there.
  if (!owner && !is_accessible(address, size)) return code::invalid_params;
  return state->regions.add(address, size, std::move(owner));
}

std::int32_t EmbeddedStore::unregister_buffer(std::uint64_t address) {
  const auto state = this->state();
  return state ? state->regions.remove(address) : code::invalid_params;
}

void EmbeddedStore::put_from(const KeyBatch& keys, const SegmentBatch& segments, std::int32_t* codes) {
  const auto state = this->state();
  if (!state) return void(std::fill_n(codes, keys.count, code::invalid_params));
  guarded(keys, codes, [&] {
    RegionRegistry::Guard regions(state->regions);
    UnfinishedObjects unfinished(state->table);
    unfinished.reserve(keys.count);
    CopyPlan plan;
    for (std::size_t i = 0; i < keys.count; i++) {
      const auto bytes = checked_bytes(segments, i, regions);
      if (keys[i].empty() || !bytes || *bytes == 0) {
        codes[i] = code::invalid_params;
        continue;
      }
      auto [outcome, object] = state->table.insert(keys[i], *bytes);
      codes[i] = outcome == ObjectTable::Outcome::no_room ? code::no_available_handle : code::ok;
      if (outcome != ObjectTable::Outcome::created) continue;
      std::uint8_t* to = object->bytes();
      unfinished.add(std::move(object));
      for (std::uint32_t s = segments.row_offsets[i]; s < segments.row_offsets[i + 1]; s++) {
        plan.add(to, pointer(segments.addresses[s]), segments.sizes[s]);
        to += segments.sizes[s];
      }
    }
    state->copier.run(plan);
    unfinished.complete();
  });
}

void EmbeddedStore::get_into(const KeyBatch& keys, const SegmentBatch& segments, std::int64_t* codes) {
  const auto state = this->state();
  if (!state) return void(std::fill_n(codes, keys.count, std::int64_t{code::invalid_params}));
  guarded(keys, codes, [&] {
    RegionRegistry::Guard regions(state->regions);
    std::vector<ObjectRef> reading;  // the objects whose bytes the plan refers to
    reading.reserve(keys.count);
    CopyPlan plan;
    for (std::size_t i = 0; i < keys.count; i++) {
      ObjectRef object = state->table.find(keys[i]);
      if (!object || !object->complete()) {
        codes[i] = object ? code::replica_is_not_ready : code::object_not_found;
        continue;
      }
      const auto bytes = checked_bytes(segments, i, regions);
      if (!bytes || *bytes != object->size()) {
        codes[i] = bytes && *bytes > object->size() ? code::transfer_fail : code::invalid_params;
        continue;
      }
      codes[i] = static_cast<std::int64_t>(object->size());
      const std::uint8_t* from = object->bytes();
      for (std::uint32_t s = segments.row_offsets[i]; s < segments.row_offsets[i + 1]; s++) {
        plan.add(pointer(segments.addresses[s]), from, segments.sizes[s]);
        from += segments.sizes[s];
      }
      reading.push_back(std::move(object));
    }
    state->copier.run(plan);
  });
}

void EmbeddedStore::exists(const KeyBatch& keys, std::int32_t* codes) {
  const auto state = this->state();
  for (std::size_t i = 0; i < keys.count; i++) {
    const ObjectRef object = state ? state->table.find(keys[i]) : ObjectRef();
    codes[i] = !state ? code::invalid_params : object && object->complete() ? 1 : 0;
  }
}

void EmbeddedStore::size(const KeyBatch& keys, std::int64_t* codes) {
  const auto state = this->state();
  for (std::size_t i = 0; i < keys.count; i++) {
    const ObjectRef object = state ? state->table.find(keys[i]) : ObjectRef();
    if (!state) codes[i] = code::invalid_params;
    else if (!object) codes[i] = code::object_not_found;
    else if (!object->complete()) codes[i] = code::replica_is_not_ready;
    else codes[i] = static_cast<std::int64_t>(object->size());
  }
}

void EmbeddedStore::remove(const KeyBatch& keys, std::int32_t* codes) {
  const auto state = this->state();
  for (std::size_t i = 0; i < keys.count; i++)
    codes[i] = state ? state->table.remove(keys[i]) : code::invalid_params;
}

StoreStats EmbeddedStore::stats() const {
  const auto state = this->state();
  if (!state) return {};
  const ValuePool::Usage usage = state->pool.usage();
  return {state->table.size(), usage.capacity, usage.used, usage.occupied};
}

void EmbeddedStore::close() {
  std::shared_ptr<State> last;
  {
    const std::lock_guard lock(mutex_);
    last = std::move(state_);
    state_ = nullptr;
  }
  if (last) last->table.clear();
}

}  // namespace mooncake_kv
