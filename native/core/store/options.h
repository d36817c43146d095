#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace mooncake_kv {

/// The defaults are those of mooncake_master.
struct StoreOptions {
  /// Bytes for values. 0: a store without a segment, into which nothing fits.
  std::uint64_t capacity = 0;
  /// Threads that share one large copy; 0 chooses.
  unsigned copy_threads = 0;
  /// How long a read protects what it found.
  std::uint64_t lease_ttl_ms = 10'000;
  std::uint64_t soft_pin_ttl_ms = 30 * 60'000;
  std::uint64_t max_soft_pin_ttl_ms = 24 * 3'600'000;
  bool evict_soft_pinned = true;
  /// Share of the objects that one round of eviction takes at least.
  double eviction_ratio = 0.05;
  /// Share of the capacity above which eviction starts by itself.
  double eviction_high_watermark = 0.90;
  /// When another put may take over a put that does not end.
  std::uint64_t discard_timeout_ms = 30'000;
  /// How long the space of a replaced object stays taken.
  std::uint64_t release_timeout_ms = 600'000;
  /// Leases and timeouts follow a clock that only EmbeddedStore::advance moves.
  bool manual_clock = false;
};

/// How the objects of one put are kept.
struct PutConfig {
  std::uint64_t replica_num = 1;
  bool hard_pin = false;
  bool soft_pin = false;
  /// How long the soft pin lasts; 0 stands for the store's default. Only with soft_pin.
  std::uint64_t soft_pin_ttl_ms = 0;
  /// One a key, empty for none. Without a list there are no groups, and an upsert keeps those that are there; a list of
  /// any other length than that of the keys, an empty one included, makes the configuration bad.
  std::optional<std::vector<std::string_view>> groups;
};

}  // namespace mooncake_kv
