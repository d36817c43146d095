#pragma once

#include <cstdint>
#include <optional>

#include "memory/region_registry.h"
#include "store/batch.h"

namespace mooncake_kv {

inline std::uint8_t* pointer(std::uint64_t address) {
  return reinterpret_cast<std::uint8_t*>(static_cast<std::uintptr_t>(address));
}

/// The bytes of row `row`, or nothing when they are too many to count or a segment may not be used. Without `regions`
/// every segment may, but NULL with bytes behind it.
std::optional<std::uint64_t> checked_bytes(const SegmentBatch& segments, std::size_t row, RegionRegistry::Guard* regions);

}  // namespace mooncake_kv
