#include "copy/row_plan.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"

using namespace mooncake_kv;

namespace {

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

struct Rows {
  std::vector<std::uint64_t> addresses;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint32_t> offsets{0};

  Rows& row(std::initializer_list<MemoryRange> segments) {
    for (const MemoryRange& segment : segments) {
      addresses.push_back(segment.address);
      sizes.push_back(segment.size);
    }
    offsets.push_back(static_cast<std::uint32_t>(addresses.size()));
    return *this;
  }
  SegmentBatch view() const { return {addresses.data(), sizes.data(), offsets.data()}; }
  std::size_t count() const { return offsets.size() - 1; }
};

const std::vector<MemoryRange> ranges = {{1000, 100}, {1100, 50}, {5000, 1000}};

void finds_runs() {
  Rows rows;
  rows.row({{1010, 10}})                          // one segment
      .row({{1010, 10}, {1020, 5}, {1025, 1}})    // adjoining ones
      .row({{5000, 10}, {5020, 5}})               // a gap
      .row({{1090, 10}, {1100, 10}})              // adjoining ones in two ranges
      .row({{5100, 10}, {5500, 0}, {5110, 10}})   // an empty one in between
      .row({});                                   // nothing
  const RowPlan plan = plan_rows(ranges, rows.view(), rows.count());
  CHECK(plan.codes == std::vector<std::int32_t>(6, 0));
  CHECK((plan.bytes == std::vector<std::uint64_t>{10, 16, 15, 20, 20, 0}));
  CHECK((plan.starts == std::vector<std::uint64_t>{1010, 1010, 0, 0, 5100, 0}));
  CHECK((plan.segment_ranges == std::vector<std::int32_t>{0, 0, 0, 0, 2, 2, 0, 1, 2, -1, 2}));
  CHECK((plan.used == std::vector<std::uint8_t>{1, 1, 1}));
}

void refuses_what_lies_outside() {
  const std::uint64_t top = UINT64_MAX;
  Rows rows;
  rows.row({{0, 1}}).row({{999, 1}}).row({{1050, 51}}).row({{1140, 11}}).row({{6000, 1}}).row({{top, 1}}).row({{1000, top}}).row({{5000, 1000}, {5999, 2}}).row({{0, 0}, {1000, 1}}).row({{6001, 0}});
  const RowPlan plan = plan_rows(ranges, rows.view(), rows.count());
  CHECK(plan.codes == std::vector<std::int32_t>(rows.count(), -600));
  CHECK(plan.bytes == std::vector<std::uint64_t>(rows.count(), 0));
  CHECK((plan.used == std::vector<std::uint8_t>{0, 0, 0}));
  const std::vector<MemoryRange> everything = {{1, top - 1}};
  Rows huge;
  huge.row({{1, top - 1}}).row({{1, top / 2}, {1, top / 2}, {1, top / 2}});
  CHECK((plan_rows(everything, huge.view(), 2).codes == std::vector<std::int32_t>{-600, -600}));
  Rows none;
  none.row({{1000, 1}});
  CHECK_EQUAL(plan_rows({}, none.view(), 1).codes[0], -600);
}

void finds_equal_keys() {
  const std::string text("aabaa\0\0b", 8);
  const std::vector<std::uint32_t> offsets = {0, 1, 2, 3, 5, 5, 5, 6, 7, 8};  // a a b aa "" "" \0 \0 b
  const KeyBatch keys{reinterpret_cast<const std::uint8_t*>(text.data()), offsets.data(), 9};
  CHECK((first_of_equal(keys) == std::vector<std::uint32_t>{0, 0, 2, 3, 4, 4, 6, 6, 2}));
}

void gathers_and_scatters() {
  CopyEngine engine(2);
  std::vector<std::uint8_t> memory(3 << 20);
  for (std::size_t i = 0; i < memory.size(); i++) memory[i] = static_cast<std::uint8_t>(i * 131 >> 3);
  const std::uint64_t base = address_of(memory.data());
  Rows rows;
  rows.row({{base + 5, 3}, {base, 2}, {base + 100, 0}}).row({{base + 1000, 1 << 20}, {base + (2 << 20), 1000}}).row({{base + 9, 4}});
  std::vector<std::uint8_t> staging((2 << 20), 0xee);
  const std::uint64_t start = address_of(staging.data());
  copy_rows(engine, CopyDirection::gather, rows.view(), {start, start + 5, 0});
  CHECK(std::memcmp(staging.data(), memory.data() + 5, 3) == 0 && std::memcmp(staging.data() + 3, memory.data(), 2) == 0);
  CHECK(std::memcmp(staging.data() + 5, memory.data() + 1000, 1 << 20) == 0);
  CHECK(std::memcmp(staging.data() + 5 + (1 << 20), memory.data() + (2 << 20), 1000) == 0);
  CHECK_EQUAL(staging[5 + (1 << 20) + 1000], 0xee);
  std::vector<std::uint8_t> back(memory.size(), 0);
  for (auto& address : rows.addresses) address = address - base + address_of(back.data());
  copy_rows(engine, CopyDirection::scatter, rows.view(), {start, start + 5, 0});
  CHECK(std::memcmp(back.data() + 1000, memory.data() + 1000, 1 << 20) == 0);
  CHECK(std::memcmp(back.data() + 5, memory.data() + 5, 3) == 0 && std::memcmp(back.data(), memory.data(), 2) == 0);
  CHECK(back[2] == 0 && back[9] == 0);
}

}  // namespace

int main() {
  finds_runs();
  refuses_what_lies_outside();
  finds_equal_keys();
  gathers_and_scatters();
  return test::finish();
}
