#include "store/segment_check.h"

#include <limits>

namespace mooncake_kv {

std::optional<std::uint64_t> checked_bytes(const SegmentBatch& segments, std::size_t row, RegionRegistry::Guard* regions) {
  std::uint64_t total = 0;
  for (std::uint32_t i = segments.row_offsets[row]; i < segments.row_offsets[row + 1]; i++) {
    const std::uint64_t size = segments.sizes[i];
    const bool usable = regions ? regions->covers(segments.addresses[i], size) : size == 0 || segments.addresses[i] != 0;
    if (!usable || size > std::numeric_limits<std::uint64_t>::max() - total) return std::nullopt;
    total += size;
  }
  return total;
}

}  // namespace mooncake_kv
