#pragma once

#include <atomic>
#include <cstdint>

#include "copy/copy_engine.h"
#include "memory/region_registry.h"
#include "store/clock.h"
#include "store/embedded_store.h"
#include "store/evictor.h"
#include "store/object_table.h"
#include "store/parked_objects.h"
#include "store/put_sessions.h"
#include "store/value_pool.h"

namespace mooncake_kv {

/// All of an open store. Calls hold it while they run. Members refer to those before them.
struct EmbeddedStore::State {
  explicit State(const StoreOptions& given)
      : options(given),
        clock(given.manual_clock),
        pool(given.capacity),
        parked(microseconds(given.release_timeout_ms)),
        table(pool, parked, {microseconds(given.lease_ttl_ms), microseconds(given.discard_timeout_ms)}),
        copier(given.copy_threads),
        evictor(given, clock, pool, table, parked) {}

  static std::int64_t microseconds(std::uint64_t ms) {
    constexpr std::uint64_t most = INT64_MAX / 4 / 1000;  // sums of two don't overflow
    return static_cast<std::int64_t>((ms < most ? ms : most) * 1000);
  }

  const StoreOptions options;
  StoreClock clock;
  ValuePool pool;
  ParkedObjects parked;
  ObjectTable table;
  PutSessions sessions;
  RegionRegistry regions;
  CopyEngine copier;
  Evictor evictor;
  std::atomic<bool> closed{false};
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::uint64_t> misses{0};
  std::atomic<std::uint64_t> stored{0};
  std::atomic<std::uint64_t> removed{0};
  std::atomic<std::uint64_t> refusals{0};
};

}  // namespace mooncake_kv
