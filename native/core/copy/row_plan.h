#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "copy/copy_engine.h"
#include "store/batch.h"

namespace mooncake_kv {

/// Memory that a call may touch.
struct MemoryRange {
  std::uint64_t address;
  std::uint64_t size;
};

/// Where the rows of a call lie among the ranges that it may touch.
struct RowPlan {
  /// 0, or -600 when a segment, be it empty, lies outside the ranges, or the bytes of the row can't be counted.
  std::vector<std::int32_t> codes;
  /// Bytes of the row.
  std::vector<std::uint64_t> bytes;
  /// Start of the row when its bytes are one run inside one range; else 0.
  std::vector<std::uint64_t> starts;
  /// The range of each segment; -1 for an empty segment and one outside.
  std::vector<std::int32_t> segment_ranges;
  /// Whether a row with code 0 uses the range.
  std::vector<std::uint8_t> used;
};

/// Checks and measures rows. The ranges are sorted by address and don't overlap. Nothing is read or written.
RowPlan plan_rows(const std::vector<MemoryRange>& ranges, const SegmentBatch& segments, std::size_t rows);

/// For each key the index of the first key that equals it: its own when there is none before it.
std::vector<std::uint32_t> first_of_equal(const KeyBatch& keys);

enum class CopyDirection {
  /// From the segments of a row into one run of bytes.
  gather,
  /// From one run of bytes into the segments of a row.
  scatter,
};

/// Copies between the segments of rows and runs of bytes; `runs[i]` is the start of row i's run, 0 leaves the row out.
/// All addresses were checked.
void copy_rows(CopyEngine& engine, CopyDirection direction, const SegmentBatch& segments,
               const std::vector<std::uint64_t>& runs);

}  // namespace mooncake_kv
