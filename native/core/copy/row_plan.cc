#include "copy/row_plan.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "codes.h"
#include "copy/copy_plan.h"

namespace mooncake_kv {
namespace {

constexpr std::int32_t nowhere = -1;

std::uint8_t* pointer(std::uint64_t address) { return reinterpret_cast<std::uint8_t*>(static_cast<std::uintptr_t>(address)); }

bool covers(const MemoryRange& range, std::uint64_t address, std::uint64_t size) {
  if (address < range.address) return false;
  const std::uint64_t skip = address - range.address;
  return skip <= range.size && size <= range.size - skip;
}

/// Finds ranges; segments that follow each other mostly lie in the same one.
class RangeFinder {
 public:
  explicit RangeFinder(const std::vector<MemoryRange>& ranges) : ranges_(ranges) {}

  std::int32_t find(std::uint64_t address, std::uint64_t size) {
    if (last_ != nowhere && covers(ranges_[static_cast<std::size_t>(last_)], address, size)) return last_;
    const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                       [](std::uint64_t value, const MemoryRange& range) { return value < range.address; });
    if (next == ranges_.begin() || !covers(*(next - 1), address, size)) return nowhere;
    last_ = static_cast<std::int32_t>(next - 1 - ranges_.begin());
    return last_;
  }

 private:
  const std::vector<MemoryRange>& ranges_;
  std::int32_t last_ = nowhere;
};

}  // namespace

RowPlan plan_rows(const std::vector<MemoryRange>& ranges, const SegmentBatch& segments, std::size_t rows) {
  RowPlan plan;
  plan.codes.assign(rows, code::ok);
  plan.bytes.assign(rows, 0);
  plan.starts.assign(rows, 0);
  plan.segment_ranges.assign(segments.row_offsets[rows], nowhere);
  plan.used.assign(ranges.size(), 0);
  RangeFinder finder(ranges);
  for (std::size_t row = 0; row < rows; row++) {
    const std::uint32_t begin = segments.row_offsets[row];
    const std::uint32_t end = segments.row_offsets[row + 1];
    std::uint64_t total = 0;
    std::uint64_t start = 0;
    std::int32_t home = nowhere;
    bool one_run = true;
    for (std::uint32_t s = begin; s < end; s++) {
      const std::uint64_t address = segments.addresses[s];
      const std::uint64_t size = segments.sizes[s];
      const std::int32_t range = finder.find(address, size);
      if (range == nowhere || size > std::numeric_limits<std::int64_t>::max() - total) {
        plan.codes[row] = code::invalid_params;
        break;
      }
      if (size == 0) continue;
      plan.segment_ranges[s] = range;
      if (home == nowhere) {
        home = range;
        start = address;
      } else if (range != home || address != start + total) {
        one_run = false;
      }
      total += size;
    }
    if (plan.codes[row] != code::ok) continue;
    plan.bytes[row] = total;
    if (one_run) plan.starts[row] = start;
    for (std::uint32_t s = begin; s < end; s++)
      if (plan.segment_ranges[s] != nowhere) plan.used[static_cast<std::size_t>(plan.segment_ranges[s])] = 1;
  }
  return plan;
}

std::vector<std::uint32_t> first_of_equal(const KeyBatch& keys) {
  std::vector<std::uint32_t> first(keys.count);
  std::unordered_map<std::string_view, std::uint32_t> seen;
  seen.reserve(keys.count);
  for (std::size_t i = 0; i < keys.count; i++)
    first[i] = seen.try_emplace(keys[i], static_cast<std::uint32_t>(i)).first->second;
  return first;
}

void copy_rows(CopyEngine& engine, CopyDirection direction, const SegmentBatch& segments,
               const std::vector<std::uint64_t>& runs) {
  CopyPlan plan;
  for (std::size_t row = 0; row < runs.size(); row++) {
    if (runs[row] == 0) continue;
    std::uint8_t* run = pointer(runs[row]);
    for (std::uint32_t s = segments.row_offsets[row]; s < segments.row_offsets[row + 1]; s++) {
      std::uint8_t* segment = pointer(segments.addresses[s]);
      const std::size_t size = segments.sizes[s];
      if (direction == CopyDirection::gather)
        plan.add(run, segment, size);
      else
        plan.add(segment, run, size);
      run += size;
    }
  }
  engine.run(plan);
}

}  // namespace mooncake_kv
