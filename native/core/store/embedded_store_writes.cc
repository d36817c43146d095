#include <algorithm>
#include <exception>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codes.h"
#include "memory/foreign_copy.h"
#include "store/segment_check.h"
#include "store/store_state.h"

namespace mooncake_kv {
namespace {

/// The configuration of a batch, judged and with times in place of durations.
class Keeping {
 public:
  Keeping(const PutConfig& config, std::size_t keys, const StoreOptions& options, std::int64_t now) : config_(config) {
    const std::uint64_t ttl = config.soft_pin_ttl_ms ? config.soft_pin_ttl_ms : options.soft_pin_ttl_ms;
    valid_ = config.replica_num > 0 && (config.soft_pin || config.soft_pin_ttl_ms == 0) &&
             (!config.soft_pin || ttl <= options.max_soft_pin_ttl_ms) &&
             (!config.groups || config.groups->size() == keys);
    if (config.soft_pin) soft_until_ = now + static_cast<std::int64_t>(std::min<std::uint64_t>(ttl, INT64_MAX / 4000) * 1000);
  }

  bool valid() const { return valid_; }
  ObjectTable::Keeping of(std::size_t key) const {
    const bool grouped = config_.groups.has_value();
    return {config_.hard_pin, soft_until_, grouped ? (*config_.groups)[key] : std::string_view(), grouped};
  }

 private:
  const PutConfig& config_;
  bool valid_;
  std::int64_t soft_until_ = 0;
};

std::int32_t code_of(ObjectTable::Outcome outcome) {
  switch (outcome) {
    case ObjectTable::Outcome::no_room: return code::no_available_handle;
    case ObjectTable::Outcome::busy: return code::object_replica_busy;
    case ObjectTable::Outcome::other_group: return code::invalid_params;
    default: return code::ok;
  }
}

}  // namespace

/// One call of put_from or upsert_from. Whatever it has begun and not finished is taken back at its end.
class EmbeddedStore::Put {
 public:
  Put(State& state, const CallOptions& call, std::int32_t* codes)
      : state_(state), call_(call), codes_(codes), guard_(state.regions) {}
  ~Put() {
    for (const Begun& begun : begun_) state_.table.revoke(begun.writing, state_.clock.now());
  }
  Put(const Put&) = delete;
  Put& operator=(const Put&) = delete;

  void run(bool upsert, const KeyBatch& keys, const SegmentBatch& segments, const Keeping& keeping) {
    begun_.reserve(keys.count);
    RegionRegistry::Guard* regions = call_.access == Access::registered ? &guard_ : nullptr;
    for (std::size_t i = 0; i < keys.count; i++) {
      // The clock of a call without a deadline is never asked.
      if (call_.deadline.over()) {
        codes_[i] = code::rpc_timeout;
        continue;
      }
      const auto bytes = checked_bytes(segments, i, regions);
      if (keys[i].empty() || keys[i].size() > UINT32_MAX || !bytes || *bytes == 0) {
        codes_[i] = code::invalid_params;
        continue;
      }
      // Of equal keys the first is stored. A put need not look: it finds the object that the first one has begun.
      if (upsert && upserted_.contains(keys[i])) {
        codes_[i] = code::ok;
        continue;
      }
      if (!begin(upsert, i, keys[i], *bytes, keeping.of(i))) continue;
      if (upsert) upserted_.insert(keys[i]);
      take_bytes(segments, i);
    }
    copy();
    finish();
  }

 private:
  struct Begun {
    std::size_t key;
    Writing writing;
  };

  /// Whether the caller writes an object now.
  bool begin(bool upsert, std::size_t i, std::string_view key, std::uint64_t bytes, const ObjectTable::Keeping& keeping) {
    const std::int64_t now = state_.clock.now();
    auto [outcome, writing] = upsert ? state_.table.begin_upsert(key, bytes, keeping, now)
                                     : state_.table.begin_put(key, bytes, keeping, now);
    codes_[i] = code_of(outcome);
    if (outcome == ObjectTable::Outcome::created) {
      begun_.push_back({i, std::move(writing)});
      state_.evictor.used_more();
      return true;
    }
    if (outcome == ObjectTable::Outcome::no_room || outcome == ObjectTable::Outcome::busy) {
      state_.refusals.fetch_add(1, std::memory_order_relaxed);
      state_.evictor.refused();
    }
    return false;
  }

  /// Plans the copies into the object that was begun last, or makes them where the source may be bad.
  void take_bytes(const SegmentBatch& segments, std::size_t row) {
    const Begun& begun = begun_.back();
    std::uint8_t* to = begun.writing.object->bytes();
    CopyPlan& plan = begun.writing.in_place ? plan_in_place_ : plan_;
    for (std::uint32_t s = segments.row_offsets[row]; s < segments.row_offsets[row + 1]; s++) {
      if (call_.access != Access::any) {
        plan.add(to, pointer(segments.addresses[s]), segments.sizes[s]);
      } else if (!copy_from_foreign(to, segments.addresses[s], segments.sizes[s])) {
        codes_[row] = code::transfer_fail;
        state_.table.revoke(begun.writing, state_.clock.now());
        begun_.pop_back();
        return;
      }
      to += segments.sizes[s];
    }
  }

  void copy() {
    // Bytes that are overwritten where they are can't be had back: no deadline stops that.
    state_.copier.run(plan_in_place_);
    in_time_ = state_.copier.run(plan_, call_.deadline);
  }

  void finish() {
    const std::int64_t now = state_.clock.now();
    for (const Begun& begun : begun_) {
      if (!in_time_ && !begun.writing.in_place) {
        state_.table.revoke(begun.writing, state_.clock.now());
        codes_[begun.key] = code::rpc_timeout;
        continue;
      }
      const std::int32_t result = state_.table.finish(begun.writing, now);
      // A store that was closed meanwhile has dropped the object, as it would have a moment later.
      codes_[begun.key] = result == code::illegal_client && state_.closed ? code::ok : result;
      if (result == code::ok) state_.stored.fetch_add(1, std::memory_order_relaxed);
    }
    begun_.clear();
  }

  State& state_;
  const CallOptions& call_;
  std::int32_t* const codes_;
  RegionRegistry::Guard guard_;
  std::vector<Begun> begun_;
  std::unordered_set<std::string_view> upserted_;
  CopyPlan plan_;
  CopyPlan plan_in_place_;
  bool in_time_ = true;
};

void EmbeddedStore::write(bool upsert, const KeyBatch& keys, const SegmentBatch& segments, const PutConfig& config,
                          const CallOptions& call, std::int32_t* codes) {
  const auto state = this->state();
  if (!state) return void(std::fill_n(codes, keys.count, code::invalid_params));
  try {
    const Keeping keeping(config, keys.count, state->options, state->clock.now());
    if (!keeping.valid()) return void(std::fill_n(codes, keys.count, code::invalid_params));
    Put(*state, call, codes).run(upsert, keys, segments, keeping);
  } catch (const std::exception&) {
    std::fill_n(codes, keys.count, code::internal_error);
  }
}

void EmbeddedStore::put_from(const KeyBatch& keys, const SegmentBatch& segments, const PutConfig& config,
                             const CallOptions& call, std::int32_t* codes) {
  write(false, keys, segments, config, call, codes);
}

void EmbeddedStore::upsert_from(const KeyBatch& keys, const SegmentBatch& segments, const PutConfig& config,
                                const CallOptions& call, std::int32_t* codes) {
  write(true, keys, segments, config, call, codes);
}

void EmbeddedStore::start_put(std::uint64_t client, const KeyBatch& keys, const std::uint64_t* sizes,
                              const PutConfig& config, std::int32_t* codes) {
  const auto state = this->state();
  if (!state) return void(std::fill_n(codes, keys.count, code::invalid_params));
  const std::int64_t now = state->clock.now();
  const Keeping keeping(config, keys.count, state->options, now);
  for (std::size_t i = 0; i < keys.count; i++) {
    codes[i] = code::invalid_params;
    if (!keeping.valid() || keys[i].empty() || sizes[i] == 0 || state->sessions.has(client, keys[i])) continue;
    try {
      auto [outcome, writing] = state->table.begin_put(keys[i], sizes[i], keeping.of(i), now);
      codes[i] = outcome == ObjectTable::Outcome::exists ? code::object_already_exists : code_of(outcome);
      if (outcome == ObjectTable::Outcome::no_room) {
        state->refusals.fetch_add(1, std::memory_order_relaxed);
        state->evictor.refused();
      }
      if (outcome != ObjectTable::Outcome::created) continue;
      state->evictor.used_more();
      state->sessions.open(client, keys[i], std::move(writing));
    } catch (const std::exception&) {
      codes[i] = code::internal_error;
    }
  }
}

void EmbeddedStore::write_put(std::uint64_t client, const KeyBatch& keys, const SegmentBatch& segments,
                              const std::uint64_t* targets, const CallOptions& call, std::int64_t* codes) {
  const auto state = this->state();
  if (!state) return void(std::fill_n(codes, keys.count, std::int64_t{code::invalid_params}));
  RegionRegistry::Guard guard(state->regions);
  for (std::size_t i = 0; i < keys.count; i++) {
    const Writing writing = state->sessions.find(client, keys[i]);
    const auto bytes = checked_bytes(segments, i, call.access == Access::registered ? &guard : nullptr);
    codes[i] = code::invalid_params;
    if (!writing.object || !bytes) continue;
    bool inside = true;
    for (std::uint32_t s = segments.row_offsets[i]; s < segments.row_offsets[i + 1]; s++)
      inside = inside && targets[s] <= writing.object->size() && segments.sizes[s] <= writing.object->size() - targets[s];
    if (!inside) continue;
    codes[i] = static_cast<std::int64_t>(*bytes);
    for (std::uint32_t s = segments.row_offsets[i]; s < segments.row_offsets[i + 1]; s++)
      if (!copy_from_foreign(writing.object->bytes() + targets[s], segments.addresses[s], segments.sizes[s]))
        codes[i] = code::transfer_fail;
  }
}

void EmbeddedStore::end_put(std::uint64_t client, const KeyBatch& keys, std::int32_t* codes) {
  const auto state = this->state();
  for (std::size_t i = 0; i < keys.count; i++) {
    const Writing writing = state ? state->sessions.close(client, keys[i]) : Writing();
    codes[i] = writing.object ? state->table.finish(writing, state->clock.now()) : code::invalid_params;
    if (codes[i] == code::ok) state->stored.fetch_add(1, std::memory_order_relaxed);
  }
}

void EmbeddedStore::revoke_put(std::uint64_t client, const KeyBatch& keys, std::int32_t* codes) {
  const auto state = this->state();
  for (std::size_t i = 0; i < keys.count; i++) {
    const Writing writing = state ? state->sessions.close(client, keys[i]) : Writing();
    codes[i] = writing.object ? state->table.revoke(writing, state->clock.now()) : code::invalid_params;
  }
}

}  // namespace mooncake_kv
