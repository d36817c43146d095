#include "store/space_allocator.h"

#include <map>
#include <random>

#include "check.h"

using namespace mooncake_kv;

static std::uint64_t count_of(std::uint64_t capacity, std::uint64_t size, std::uint64_t most = UINT64_MAX) {
  SpaceAllocator space(capacity);
  std::uint64_t count = 0;
  while (count < most && space.allocate(size)) count++;
  return count;
}

static void rounds_as_mooncake_does() {
  for (std::uint64_t n = 0; n <= 16; n++) CHECK_EQUAL(SpaceAllocator::rounded(n), n);
  CHECK_EQUAL(SpaceAllocator::rounded(17), 18u);
  CHECK_EQUAL(SpaceAllocator::rounded(31), 32u);
  CHECK_EQUAL(SpaceAllocator::rounded(33), 36u);
  CHECK_EQUAL(SpaceAllocator::rounded(100), 104u);
  CHECK_EQUAL(SpaceAllocator::rounded(5000), 5120u);
  CHECK_EQUAL(SpaceAllocator::rounded(4096), 4096u);
  CHECK_EQUAL(SpaceAllocator::rounded(1'500'000), 1'572'864u);
  CHECK_EQUAL(SpaceAllocator::rounded(UINT64_MAX), UINT64_MAX);
}

// How many objects of one size the real store took.
static void fits_as_many_as_mooncake() {
  constexpr std::uint64_t mib = 1 << 20;
  CHECK_EQUAL(count_of(16 * mib, 65536), 256u);
  CHECK_EQUAL(count_of(16 * mib, 100'000), 157u);
  CHECK_EQUAL(count_of(16 * mib, 1'500'000), 10u);
  CHECK_EQUAL(count_of(16 * mib, 12345), 1260u);
  CHECK_EQUAL(count_of(16 * mib, 5000), 3276u);
  CHECK_EQUAL(count_of(16 * mib, mib + 1), 14u);
  CHECK_EQUAL(count_of(16 * mib, 8 * mib + 1), 1u);
  CHECK_EQUAL(count_of(16 * mib, 16 * mib), 1u);
  CHECK_EQUAL(count_of(16 * mib, 16 * mib - 1), 1u);
  CHECK_EQUAL(count_of(16 * mib, 16 * mib + 1), 0u);
  CHECK_EQUAL(count_of(64 * mib, 77777), 819u);
  CHECK_EQUAL(count_of(64 * mib, 2'500'000), 25u);
  CHECK_EQUAL(count_of(64 * mib, 34'603'008), 1u);
  CHECK_EQUAL(count_of(16 * mib, 1, 100'000), 100'000u);
}

static void odd_capacities() {
  CHECK_EQUAL(count_of(1'000'003, 1'000'003), 1u);  // exactly the capacity fits, whatever rounding says
  CHECK_EQUAL(count_of(0, 1), 0u);
  CHECK_EQUAL(count_of(1, 1), 1u);
  CHECK_EQUAL(count_of(100, 0), 0u);
  SpaceAllocator space(1'000'003);
  CHECK(space.allocate(1));
  CHECK(!space.allocate(1'000'003));
}

static void joins_free_neighbours() {
  SpaceAllocator space(4096);
  const auto a = space.allocate(1024);
  const auto b = space.allocate(1024);
  const auto c = space.allocate(2048);
  CHECK(a && b && c);
  CHECK(!space.allocate(1));
  space.release(a->node);
  space.release(c->node);
  CHECK(!space.allocate(3072));  // two pieces, not neighbours
  space.release(b->node);
  CHECK_EQUAL(space.occupied(), 0u);
  CHECK(space.allocate(4096));
}

static void random_pieces_never_overlap() {
  constexpr std::uint64_t capacity = 3'000'000;
  SpaceAllocator space(capacity);
  std::mt19937_64 random(7);
  struct Held {
    std::uint64_t size;
    std::uint32_t node;
  };
  std::map<std::uint64_t, Held> held;  // by offset
  std::uint64_t occupied = 0;
  int refused = 0;
  bool disjoint = true;
  for (int step = 0; step < 50'000; step++) {
    if (random() % 5 < 3) {
      const std::uint64_t size = 1 + random() % (std::uint64_t{1} << (random() % 18));
      const auto piece = space.allocate(size);
      if (!piece) {
        refused++;
        continue;
      }
      const auto next = held.lower_bound(piece->offset);
      if (next != held.end()) disjoint = disjoint && piece->offset + size <= next->first;
      if (next != held.begin()) disjoint = disjoint && std::prev(next)->first + std::prev(next)->second.size <= piece->offset;
      disjoint = disjoint && piece->offset + size <= capacity;
      held[piece->offset] = {size, piece->node};
      occupied += SpaceAllocator::rounded(size);
    } else if (!held.empty()) {
      auto victim = held.lower_bound(random() % capacity);
      if (victim == held.end()) victim = held.begin();
      occupied -= SpaceAllocator::rounded(victim->second.size);
      space.release(victim->second.node);
      held.erase(victim);
    }
    if (space.occupied() != occupied) disjoint = false;
  }
  CHECK(disjoint);
  CHECK(refused > 0);
  for (const auto& [offset, piece] : held) space.release(piece.node);
  CHECK_EQUAL(space.occupied(), 0u);
  CHECK(space.allocate(capacity));
}

int main() {
  rounds_as_mooncake_does();
  fits_as_many_as_mooncake();
  odd_capacities();
  joins_free_neighbours();
  random_pieces_never_overlap();
  return test::finish();
}
