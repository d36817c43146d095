#include "memory/region_registry.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "check.h"
#include "codes.h"

using namespace mooncake_kv;

static void refuses_overlap_null_and_empty() {
  RegionRegistry regions;
  CHECK_EQUAL(regions.add(0x1000, 0x1000), code::ok);
  CHECK_EQUAL(regions.add(0x1000, 0x1000), code::invalid_params);
  CHECK_EQUAL(regions.add(0x800, 0x801), code::invalid_params);
  CHECK_EQUAL(regions.add(0x1fff, 1), code::invalid_params);
  CHECK_EQUAL(regions.add(0x1400, 0x10), code::invalid_params);
  CHECK_EQUAL(regions.add(0x100, 0x10000), code::invalid_params);
  CHECK_EQUAL(regions.add(0x2000, 0x1000), code::ok);  // adjacent behind
  CHECK_EQUAL(regions.add(0x800, 0x800), code::ok);    // adjacent before
  CHECK_EQUAL(regions.add(0, 0x100), code::invalid_params);
  CHECK_EQUAL(regions.add(0x8000, 0), code::invalid_params);
}

static void removes_only_an_exact_start() {
  RegionRegistry regions;
  CHECK_EQUAL(regions.add(0x1000, 0x1000), code::ok);
  CHECK_EQUAL(regions.remove(0x1001), code::invalid_params);
  CHECK_EQUAL(regions.remove(0xfff), code::invalid_params);
  CHECK_EQUAL(regions.remove(0), code::invalid_params);
  CHECK_EQUAL(regions.remove(0x1000), code::ok);
  CHECK_EQUAL(regions.remove(0x1000), code::invalid_params);
  CHECK_EQUAL(regions.add(0x1000, 0x1000), code::ok);
}

static void end_of_the_address_space() {
  RegionRegistry regions;
  CHECK_EQUAL(regions.add(UINT64_MAX, 2), code::invalid_params);
  CHECK_EQUAL(regions.add(UINT64_MAX - 9, 10), code::ok);
  RegionRegistry::Guard guard(regions);
  CHECK(guard.covers(UINT64_MAX - 9, 10));
  CHECK(guard.covers(UINT64_MAX, 1));
  CHECK(!guard.covers(UINT64_MAX, 2));
  CHECK(!guard.covers(UINT64_MAX - 9, UINT64_MAX));
}

static void covers_within_one_region_only() {
  RegionRegistry regions;
  CHECK_EQUAL(regions.add(0x1000, 0x1000), code::ok);
  CHECK_EQUAL(regions.add(0x2000, 0x1000), code::ok);
  RegionRegistry::Guard guard(regions);
  CHECK(guard.covers(0x1000, 0x1000));
  CHECK(guard.covers(0x2000, 0x1000));
  CHECK(guard.covers(0x1fff, 1));
  CHECK(!guard.covers(0x1fff, 2));  // straddles two regions
  CHECK(!guard.covers(0x1000, 0x2000));
  CHECK(!guard.covers(0xfff, 1));
  CHECK(!guard.covers(0x3000, 1));
  CHECK(!guard.covers(0, 0));
  CHECK(!guard.covers(0x1000, UINT64_MAX));
  CHECK(guard.covers(0x3000, 0));  // an empty range at the end
  CHECK(!guard.covers(0x3001, 0));
}

static void remove_waits_for_running_calls() {
  RegionRegistry regions;
  CHECK_EQUAL(regions.add(0x1000, 0x1000), code::ok);
  std::atomic<bool> removed = false;
  std::thread remover;
  {
    RegionRegistry::Guard guard(regions);
    CHECK(guard.covers(0x1000, 1));
    remover = std::thread([&] {
      regions.remove(0x1000);
      removed = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK(!removed);
    CHECK(guard.covers(0x1200, 1));  // the call that began goes on
  }
  remover.join();
  CHECK(removed);
  RegionRegistry::Guard late(regions);
  CHECK(!late.covers(0x1000, 1));
}

static void keeps_the_owner_alive() {
  RegionRegistry regions;
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = owner;
  CHECK_EQUAL(regions.add(0x1000, 0x1000, std::move(owner)), code::ok);
  CHECK(!watch.expired());
  CHECK_EQUAL(regions.remove(0x1000), code::ok);
  CHECK(watch.expired());
}

static void many_regions_in_one_call() {
  RegionRegistry regions;
  for (std::uint64_t i = 1; i <= 200; i++) CHECK_EQUAL(regions.add(i * 0x1000, 0x800), code::ok);
  RegionRegistry::Guard guard(regions);
  for (int round = 0; round < 3; round++)
    for (std::uint64_t i = 1; i <= 200; i++) CHECK(guard.covers(i * 0x1000 + 0x7ff, 1) && !guard.covers(i * 0x1000 + 0x800, 1));
}

int main() {
  refuses_overlap_null_and_empty();
  removes_only_an_exact_start();
  end_of_the_address_space();
  covers_within_one_region_only();
  remove_waits_for_running_calls();
  keeps_the_owner_alive();
  many_regions_in_one_call();
  return test::finish();
}
