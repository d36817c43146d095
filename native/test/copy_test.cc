#include "copy/copy_engine.h"

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "check.h"
#include "copy/copy_plan.h"

using namespace mooncake_kv;

static void joins_adjoining_runs() {
  std::uint8_t from[64] = {};
  std::uint8_t to[64] = {};
  CopyPlan plan;
  plan.add(to, from, 8);
  plan.add(to + 8, from + 8, 8);
  plan.add(to + 16, from + 16, 0);  // nothing
  CHECK_EQUAL(plan.runs().size(), 1u);
  plan.add(to + 16, from + 20, 4);  // the source jumps
  plan.add(to + 24, from + 24, 4);  // the destination jumps
  CHECK_EQUAL(plan.runs().size(), 3u);
  CHECK_EQUAL(plan.bytes(), 24u);
}

static std::vector<std::uint8_t> noise(std::size_t size, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

/// Copies `size` bytes with scattered sources of `segment` bytes, and compares.
static bool gathers(CopyEngine& engine, std::size_t size, std::size_t segment, unsigned seed) {
  const std::vector<std::uint8_t> source = noise(size * 2, seed);
  std::vector<std::uint8_t> target(size + 1, 0xee);
  std::vector<std::uint8_t> expected(size);
  CopyPlan plan;
  for (std::size_t at = 0; at < size; at += segment) {
    const std::size_t length = std::min(segment, size - at);
    plan.add(target.data() + at, source.data() + at * 2, length);
    std::memcpy(expected.data() + at, source.data() + at * 2, length);
  }
  engine.run(plan);
  return std::memcmp(target.data(), expected.data(), size) == 0 && target[size] == 0xee;
}

static void copies_every_byte() {
  for (const unsigned threads : {0u, 1u, 2u, 3u}) {
    CopyEngine engine(threads);
    engine.run(CopyPlan());
    CHECK(gathers(engine, 1, 1, 1));
    CHECK(gathers(engine, 1000, 7, 2));
    CHECK(gathers(engine, (1 << 20) - 1, 4096, 3));
    CHECK(gathers(engine, 1 << 20, 4096, 4));
    CHECK(gathers(engine, (5 << 20) + 13, 4096, 5));
    CHECK(gathers(engine, (5 << 20) + 13, 1'000'003, 6));  // runs larger than a part
    CHECK(gathers(engine, 3 << 20, 3 << 20, 7));
  }
}

static void serves_several_callers_at_once() {
  CopyEngine engine(3);
  std::vector<std::thread> callers;
  std::vector<char> good(4, 0);
  for (unsigned caller = 0; caller < good.size(); caller++)
    callers.emplace_back([&, caller] {
      bool all = true;
      for (unsigned round = 0; round < 5; round++) all = gathers(engine, (2 << 20) + round * 1001, 5000, caller * 10 + round) && all;
      good[caller] = all;
    });
  for (std::thread& caller : callers) caller.join();
  for (const char ok : good) CHECK(ok);
}

int main() {
  joins_adjoining_runs();
  copies_every_byte();
  serves_several_callers_at_once();
  return test::finish();
}
