#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "copy/copy_engine.h"
#include "memory/region_registry.h"
#include "store/batch.h"

namespace mooncake_kv::mooncake_c {

/// The segments of a call, owned, because the call may outlive whoever made it.
struct OwnedSegments {
  std::vector<std::uint64_t> addresses;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint32_t> row_offsets;

  SegmentBatch view() const { return {addresses.data(), sizes.data(), row_offsets.data()}; }
};

/// What the calls of one store share besides the client.
struct Memory {
  RegionRegistry regions;
  CopyEngine engine{0};
  /// How many transfers one call may start, so that all threads together stay within Mooncake's queue.
  std::uint64_t transfers_a_call = 256;
};

}  // namespace mooncake_kv::mooncake_c
