#include "store/embedded_store.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include "codes.h"
#include "memory/foreign_copy.h"
#include "memory/probe.h"
#include "store/key_pattern.h"
#include "store/segment_check.h"
#include "store/store_state.h"

namespace mooncake_kv {

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

/// One call of get_into or get: finds the objects, copies them, and judges their leases.
class EmbeddedStore::Get {
 public:
  Get(State& state, const CallOptions& call, std::int64_t* codes) : state_(state), call_(call), codes_(codes) {}

  /// The object of key `i`, or nothing with its code set. Counts, and grants the lease.
  ObjectRef find(std::size_t i, std::string_view key) {
    if (call_.deadline.over()) {
      codes_[i] = code::rpc_timeout;
      return {};
    }
    auto found = state_.table.read(key, state_.clock.now());
    (found.code == code::ok ? state_.hits : state_.misses).fetch_add(1, std::memory_order_relaxed);
    if (found.code != code::ok) {
      codes_[i] = found.code;
      return {};
    }
    lease_until_ = found.lease_until;
    return std::move(found.object);
  }

  /// Reads the object into the plan's destinations later, in finish().
  void take(std::size_t i, ObjectRef object) {
    codes_[i] = static_cast<std::int64_t>(object->size());
    reading_.push_back({i, lease_until_, std::move(object)});
  }

  CopyPlan& plan() { return plan_; }

  void finish() {
    const bool in_time = state_.copier.run(plan_, call_.deadline);
    const std::int64_t now = state_.clock.now();
    for (const Reading& reading : reading_) {
      if (!in_time) codes_[reading.key] = code::rpc_timeout;
      else if (reading.lease_until <= now) codes_[reading.key] = code::lease_expired;
    }
  }

 private:
  struct Reading {
    std::size_t key;
    std::int64_t lease_until;
    ObjectRef object;  // keeps the bytes
  };

  State& state_;
  const CallOptions& call_;
  std::int64_t* const codes_;
  std::int64_t lease_until_ = 0;
  std::vector<Reading> reading_;
  CopyPlan plan_;
};

void EmbeddedStore::get_into(const KeyBatch& keys, const SegmentBatch& segments, const CallOptions& call, std::int64_t* codes) {
  const auto state = this->state();
  if (!state) return void(std::fill_n(codes, keys.count, std::int64_t{code::invalid_params}));
  try {
    RegionRegistry::Guard guard(state->regions);
    Get get(*state, call, codes);
    for (std::size_t i = 0; i < keys.count; i++) {
      ObjectRef object = get.find(i, keys[i]);
      if (!object) continue;
      const auto bytes = checked_bytes(segments, i, call.access == Access::registered ? &guard : nullptr);
      if (!bytes || *bytes < object->size() || (*bytes > object->size() && !call.larger_fits)) {
        codes[i] = bytes && *bytes > object->size() ? code::transfer_fail : code::invalid_params;
        continue;
      }
      const std::uint8_t* from = object->bytes();
      std::uint64_t left = object->size();
      bool good = true;
      for (std::uint32_t s = segments.row_offsets[i]; s < segments.row_offsets[i + 1] && good; s++) {
        const std::uint64_t size = std::min(left, segments.sizes[s]);
        if (call.access == Access::any) good = copy_to_foreign(segments.addresses[s], from, size);
        else get.plan().add(pointer(segments.addresses[s]), from, size);
        from += size;
        left -= size;
      }
      if (good) get.take(i, std::move(object));
      else codes[i] = code::transfer_fail;
    }
    get.finish();
  } catch (const std::exception&) {
    std::fill_n(codes, keys.count, std::int64_t{code::internal_error});
  }
}

void EmbeddedStore::get(const KeyBatch& keys, const CallOptions& call, std::int64_t* codes, std::vector<OwnedValue>& values) {
  const auto state = this->state();
  values.clear();
  if (!state) return void(std::fill_n(codes, keys.count, std::int64_t{code::invalid_params}));
  try {
    values.resize(keys.count);
    Get get(*state, call, codes);
    for (std::size_t i = 0; i < keys.count; i++) {
      ObjectRef object = get.find(i, keys[i]);
      if (!object) continue;
      const std::size_t size = static_cast<std::size_t>(object->size());
      values[i] = {std::unique_ptr<std::uint8_t[]>(new std::uint8_t[size]), size};
      get.plan().add(values[i].bytes.get(), object->bytes(), size);
      get.take(i, std::move(object));
    }
    get.finish();
    for (std::size_t i = 0; i < keys.count; i++)
      if (codes[i] < 0) values[i] = {};
  } catch (const std::exception&) {
    values.clear();
    std::fill_n(codes, keys.count, std::int64_t{code::internal_error});
  }
}

void EmbeddedStore::exists(const KeyBatch& keys, const CallOptions& call, std::int32_t* codes) {
  const auto state = this->state();
  const std::int64_t now = state ? state->clock.now() : 0;
  for (std::size_t i = 0; i < keys.count; i++) {
    if (!state) codes[i] = code::invalid_params;
    else if (call.deadline.over()) codes[i] = code::rpc_timeout;
    else codes[i] = state->table.read(keys[i], now).code == code::ok ? 1 : 0;
  }
}

void EmbeddedStore::size(const KeyBatch& keys, const CallOptions& call, std::int64_t* codes) {
  const auto state = this->state();
  for (std::size_t i = 0; i < keys.count; i++) {
    codes[i] = state ? code::rpc_timeout : code::invalid_params;
    if (!state || call.deadline.over()) continue;
    const auto found = state->table.read(keys[i], state->clock.now());
    codes[i] = found.code == code::ok ? static_cast<std::int64_t>(found.object->size()) : found.code;
  }
}

void EmbeddedStore::replicas(const KeyBatch& keys, const CallOptions& call, std::int32_t* codes, ReplicaPlace* places) {
  const auto state = this->state();
  for (std::size_t i = 0; i < keys.count; i++) {
    codes[i] = state ? code::rpc_timeout : code::invalid_params;
    if (!state || call.deadline.over()) continue;
    const auto found = state->table.read(keys[i], state->clock.now());
    codes[i] = found.code == code::ok ? 1 : found.code;
    if (found.object) places[i] = {found.object->size(), reinterpret_cast<std::uintptr_t>(found.object->bytes())};
  }
}

void EmbeddedStore::remove(const KeyBatch& keys, bool force, const CallOptions& call, std::int32_t* codes) {
  const auto state = this->state();
  for (std::size_t i = 0; i < keys.count; i++) {
    codes[i] = state ? code::rpc_timeout : code::invalid_params;
    if (!state || call.deadline.over()) continue;
    codes[i] = state->table.remove(keys[i], force, state->clock.now());
    if (codes[i] == code::ok) state->removed.fetch_add(1, std::memory_order_relaxed);
  }
}

std::int64_t EmbeddedStore::remove_by_regex(std::string_view pattern, bool force, const Deadline& deadline) {
  const auto state = this->state();
  if (!state) return code::invalid_params;
  try {
    const auto compiled = KeyPattern::compile(pattern, deadline);
    if (!compiled) return code::invalid_params;
    const std::uint64_t removed = state->table.remove_matching(
        [&](std::string_view key) {
          // A short key may take less than the steps between two looks at the deadline.
          if (deadline.over()) throw KeyPattern::TooLate();
          return compiled->found_in(key, deadline);
        },
        force, state->clock.now());
    state->removed.fetch_add(removed, std::memory_order_relaxed);
    return static_cast<std::int64_t>(removed);
  } catch (const KeyPattern::TooLate&) {
    return code::rpc_timeout;
  } catch (const KeyPattern::TooAmbiguous&) {
    return code::invalid_params;
  } catch (const std::exception&) {
    return code::internal_error;
  }
}

std::int64_t EmbeddedStore::remove_all(bool force, const Deadline& deadline) {
  const auto state = this->state();
  if (!state) return code::invalid_params;
  try {
    const ObjectTable::Removed removed = state->table.remove_all(force, state->clock.now(), deadline);
    state->removed.fetch_add(removed.objects, std::memory_order_relaxed);
    return removed.late ? code::rpc_timeout : static_cast<std::int64_t>(removed.objects);
  } catch (const std::exception&) {
    return code::internal_error;
  }
}

StoreStats EmbeddedStore::stats() const {
  const auto state = this->state();
  if (!state) return {};
  const ValuePool::Usage usage = state->pool.usage();
  return {state->table.size(),      usage.capacity,       usage.used,
          usage.occupied,           state->hits,          state->misses,
          state->stored,            state->removed,       state->evictor.evicted(),
          state->evictor.evicted_bytes(), state->refusals};
}

void EmbeddedStore::advance(std::uint64_t milliseconds) {
  const auto state = this->state();
  if (state && state->clock.manual()) state->evictor.advance(State::microseconds(milliseconds));
}

void EmbeddedStore::close() {
  std::shared_ptr<State> last;
  {
    const std::lock_guard lock(mutex_);
    last = std::move(state_);
    state_ = nullptr;
  }
  if (!last) return;
  last->closed = true;
  last->sessions.clear();
  last->table.clear();
  last->parked.clear();
}

}  // namespace mooncake_kv
