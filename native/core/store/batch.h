#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mooncake_kv {

/// The keys of a call, one behind another: key i is bytes[offsets[i], offsets[i + 1]). Offsets were checked.
struct KeyBatch {
  const std::uint8_t* bytes;
  const std::uint32_t* offsets;
  std::size_t count;

  std::string_view operator[](std::size_t i) const {
    return {reinterpret_cast<const char*>(bytes) + offsets[i], std::size_t{offsets[i + 1]} - offsets[i]};
  }
};

/// One memory range each for the segments of a call; those of key i are [row_offsets[i], row_offsets[i + 1]).
/// Offsets were checked, addresses and sizes were not.
struct SegmentBatch {
  const std::uint64_t* addresses;
  const std::uint64_t* sizes;
  const std::uint32_t* row_offsets;
};

}  // namespace mooncake_kv
