#include <functional>

#include "store_world.h"

using namespace mooncake_kv;
using namespace mooncake_kv::test;

namespace {

StoreOptions full(std::uint64_t lease_ttl_ms) {
  StoreOptions options;
  options.lease_ttl_ms = lease_ttl_ms;
  options.eviction_high_watermark = 1.0;
  return options;
}

int fill(World& world, const std::string& prefix, const PutConfig& config = {}) {
  int count = 0;
  while (world.put_one(prefix + std::to_string(count), mib, config) == 0) count++;
  return count;
}

void makes_no_room_before_the_next_round() {
  World world(full(500));
  CHECK_EQUAL(fill(world, "e"), 16);
  CHECK_EQUAL(world.put_one("x", mib), -200);
  world.store.advance(9);
  CHECK_EQUAL(world.put_one("x", mib), -200);
  world.store.advance(1);
  CHECK_EQUAL(world.put_one("x", mib), 0);
  CHECK_EQUAL(world.present("e", 16), "0111111111111111");  // 5 % of 16, rounded up
  const StoreStats stats = world.store.stats();
  CHECK_EQUAL(stats.evicted, 1u);
  CHECK_EQUAL(stats.evicted_bytes, mib);
  CHECK_EQUAL(stats.refusals, 3u);
  CHECK_EQUAL(stats.stored, 17u);
}

void starts_above_the_watermark() {
  World world;
  for (int i = 0; i < 14; i++) world.put_one("e" + std::to_string(i), mib);
  world.store.advance(1000);
  CHECK_EQUAL(world.store.stats().keys, 14u);  // 87.5 %
  world.put_one("e14", mib);
  world.store.advance(10);
  CHECK_EQUAL(world.store.stats().keys, 13u);  // 93.75 %: ceil(15 * 0.0875)
  world.put_one("e15", mib);
  world.put_one("e16", mib);
  world.put_one("e17", mib);
  world.store.advance(10);
  CHECK_EQUAL(world.store.stats().keys, 13u);  // full: ceil(16 * 0.15)
  CHECK_EQUAL(world.present("e", 18), "000001111111111111");
}

void unread_ones_go_in_put_order() {
  World world(full(300));
  for (int i = 0; i < 14; i++) world.put_one("e" + std::to_string(i), mib);
  for (const char* key : {"e2", "e1", "e0"}) {
    world.store.advance(60);
    exists(world.store, {key});
  }
  world.store.advance(700);
  for (int i = 0; i < 6; i++) CHECK_EQUAL(world.put_patiently("n" + std::to_string(i), mib), 0);
  const StoreStats stats = world.store.stats();
  CHECK_EQUAL(stats.evicted, 4u);
  std::vector<std::string> order = {"e3", "e4", "e5", "e6"};
  for (const std::string& key : order) CHECK_EQUAL(exists(world.store, {key})[0], 0);
  CHECK_EQUAL(exists(world.store, {"e7"})[0], 1);
}

void read_ones_go_by_the_end_of_their_lease() {
  World world(full(100));
  for (int i = 0; i < 16; i++) CHECK_EQUAL(world.put_one("e" + std::to_string(i), mib), 0);
  for (int i = 15; i >= 0; i--) {
    exists(world.store, {"e" + std::to_string(i)});
    world.store.advance(1);
  }
  world.store.advance(200);
  for (int i = 0; i < 3; i++) CHECK_EQUAL(world.put_patiently("n" + std::to_string(i), mib), 0);
  // A put counts as its end: what was read long ago goes before what was put lately.
  CHECK_EQUAL(world.present("e", 16), "1111111111111000");
  CHECK_EQUAL(world.present("n", 3), "111");
}

void leased_ones_stay() {
  World world(full(2000));
  CHECK_EQUAL(fill(world, "e"), 16);
  CHECK_EQUAL(world.present("e", 16), std::string(16, '1'));
  for (int i = 0; i < 10; i++) {
    CHECK_EQUAL(world.put_one("x", mib), -200);
    world.store.advance(30);
  }
  world.store.advance(2300);
  CHECK_EQUAL(world.put_patiently("y", mib), 0);
  CHECK_EQUAL(world.store.stats().evicted, 1u);
}

void hard_pins_stay() {
  World world(full(500));
  PutConfig hard;
  hard.hard_pin = true;
  CHECK_EQUAL(fill(world, "h", hard), 16);
  world.store.advance(10'000);
  CHECK_EQUAL(world.put_patiently("x", mib), -200);
  CHECK_EQUAL(world.present("h", 16), std::string(16, '1'));
  world.store.advance(1000);
  CHECK_EQUAL(remove(world.store, {"h0"})[0], 0);  // a pin does not stop a remove
}

void soft_pins_go_last() {
  World world;
  PutConfig soft, hard;
  soft.soft_pin = hard.hard_pin = true;
  CHECK_EQUAL(world.put_one("soft", mib, soft), 0);
  CHECK_EQUAL(world.put_one("hard", mib, hard), 0);
  for (int i = 0; i < 60; i++) CHECK_EQUAL(world.put_patiently("e" + std::to_string(i), mib), 0);
  CHECK((exists(world.store, {"soft", "hard"}) == Codes{1, 1}));

  World only(full(500));
  CHECK_EQUAL(fill(only, "s", soft), 16);
  for (int i = 0; i < 10; i++) CHECK_EQUAL(only.put_patiently("e" + std::to_string(i), mib), 0);
  CHECK_EQUAL(only.present("s", 16), "0111111111111111");  // then each e gives way to the next

  StoreOptions options = full(500);
  options.evict_soft_pinned = false;
  World kept(options);
  CHECK_EQUAL(fill(kept, "s", soft), 16);
  CHECK_EQUAL(kept.put_patiently("e", mib), -200);
}

void soft_pins_end() {
  World world(full(500));
  PutConfig brief, lasting;
  brief.soft_pin = lasting.soft_pin = true;
  brief.soft_pin_ttl_ms = 1000;
  for (int i = 0; i < 8; i++) {
    world.put_one("l" + std::to_string(i), mib, lasting);
    world.put_one("b" + std::to_string(i), mib, brief);
  }
  world.store.advance(1000);
  for (int i = 0; i < 2; i++) world.put_patiently("e" + std::to_string(i), mib);
  CHECK_EQUAL(world.present("b", 8), "00111111");
  CHECK_EQUAL(world.present("l", 8), "11111111");
  CHECK_EQUAL(world.present("e", 2), "11");
}

/// A full store of 256 objects, of which a round takes 13, each in the group that `group_of` names; who is gone after it.
struct Groups {
  explicit Groups(const std::function<std::string(int)>& group_of, std::uint64_t lease_ttl_ms = 500) : world(full(lease_ttl_ms)) {
    for (int i = 0; i < 256; i++) add(i, group_of(i));
  }
  explicit Groups(std::uint64_t lease_ttl_ms) : world(full(lease_ttl_ms)) {}

  void add(int i, const std::string& group, PutConfig config = {}) {
    config.groups = {group};
    CHECK_EQUAL(world.put_one("e" + std::to_string(i), mib / 16, config), 0);
  }
  std::string gone() {
    CHECK_EQUAL(world.put_one("x", mib / 16), -200);
    world.store.advance(10);
    std::string text;
    const std::string present = world.present("e", 256);
    for (std::size_t i = 0; i < present.size(); i++) {
      if (present[i] == '1' || (i > 0 && present[i - 1] == '0')) continue;
      const std::size_t end = std::min(present.find('1', i), present.size());
      text += (text.empty() ? "" : " ") + std::to_string(i) + "-" + std::to_string(end - 1);
    }
    return text;
  }

  World world;
};

std::string named(const char* name, int number) { return name + std::to_string(number); }

// The figures are those of a real master.
void a_group_goes_as_a_whole() {
  CHECK_EQUAL(Groups([](int) { return ""; }).gone(), "0-12");
  CHECK_EQUAL(Groups([](int i) { return named("g", i / 16); }).gone(), "0-15");
  // Each of the first 13 takes its group along: 208 objects.
  std::string expected;
  for (int i = 0; i < 256; i += 16) expected += (i ? " " : "") + std::to_string(i) + "-" + std::to_string(i + 12);
  CHECK_EQUAL(Groups([](int i) { return named("g", i % 16); }).gone(), expected);
  Groups mixed([](int i) { return i % 2 == 0 ? named("g", i / 2 % 4) : ""; });
  mixed.gone();
  CHECK_EQUAL(mixed.world.store.stats().evicted, 128u + 6);  // all even ones, and 1, 3, 5, 7, 9, 11
}

void a_lease_protects_the_whole_group() {
  Groups leased([](int i) { return i < 32 ? named("g", i / 16) : ""; }, 2000);
  exists(leased.world.store, {"e5"});
  CHECK_EQUAL(leased.gone(), "16-31");

  // Members that came after the lease was granted wait for its end.
  Groups late(2000);
  for (int i = 0; i < 40; i++) late.add(i, i < 20 ? "g" : "");
  exists(late.world.store, {"e0"});
  for (int i = 40; i < 256; i++) late.add(i, i < 60 ? "g" : "");
  CHECK_EQUAL(late.gone(), "20-32");
}

void a_group_has_the_place_of_its_first_member() {
  Groups groups(400);
  for (int i = 0; i < 20; i++) groups.add(i, i < 10 ? "g" : "");
  exists(groups.world.store, {"e0"});
  groups.world.store.advance(50);
  for (int i = 20; i < 256; i++) {
    groups.add(i, i == 20 ? "g" : "");
    groups.world.store.advance(1);
  }
  groups.world.store.advance(600);
  CHECK_EQUAL(groups.gone(), "0-22");  // 10-19, 20 with its group, 21 and 22

  // The same when a round met the new member while the others were under a lease, and when there is none.
  for (const bool newcomer : {true, false}) {
    Groups others(400);
    for (int i = 0; i < 20; i++) others.add(i, i < 10 ? "g" : "");
    exists(others.world.store, {"e0"});
    for (int i = 20; i < 256; i++) others.add(i, newcomer && i == 20 ? "g" : "");
    if (newcomer) {
      CHECK_EQUAL(others.world.put_one("x", mib / 16), -200);
      others.world.store.advance(10);  // 10-19 and 21-23 go
      CHECK_EQUAL(others.world.store.stats().evicted, 13u);
      for (int i = 0; i < 13; i++) CHECK_EQUAL(others.world.put_one(named("f", i), mib / 16), 0);
      others.world.store.advance(400);
      CHECK_EQUAL(others.gone(), "0-35");  // 20 with its group, and twelve more
    } else {
      others.world.store.advance(1000);
      CHECK_EQUAL(others.gone(), "10-22");  // the lease ended later than those were put
    }
  }
}

void pinned_members_stay() {
  PutConfig hard, soft;
  hard.hard_pin = soft.soft_pin = true;
  Groups groups(500);
  for (int i = 0; i < 256; i++) groups.add(i, named("g", i / 16), i == 3 ? hard : i == 4 ? soft : PutConfig());
  CHECK_EQUAL(groups.gone(), "0-2 5-15");

  // A group with nothing but pins is passed over, and a soft one goes when there is nothing else.
  World world(full(100));
  for (int i = 0; i < 16; i++) {
    PutConfig config = i < 8 ? hard : soft;
    config.groups = {i < 8 ? "hard" : "soft"};
    CHECK_EQUAL(world.put_one(named("p", i), mib, config), 0);
  }
  CHECK_EQUAL(world.present("p", 16), "1111111111111111");
  world.store.advance(200);
  CHECK_EQUAL(world.put_patiently("x", mib), 0);
  CHECK_EQUAL(world.present("p", 16), "1111111100000000");
}

void nothing_to_evict_costs_no_time() {
  PutConfig hard, brief;
  hard.hard_pin = brief.soft_pin = true;
  brief.soft_pin_ttl_ms = 3'600'000;
  brief.groups = {"g"};
  StoreOptions options = full(500);
  options.eviction_high_watermark = 0.5;
  options.evict_soft_pinned = false;
  World world(options);
  for (int i = 0; i < 12; i++) CHECK_EQUAL(world.put_one(named("h", i), mib, hard), 0);
  for (int i = 0; i < 4; i++) CHECK_EQUAL(world.put_one(named("s", i), mib, brief), 0);
  exists(world.store, {"s0"});
  world.store.advance(3'599'000);
  CHECK_EQUAL(world.present("s", 4), "1111");
  world.store.advance(1'010);
  CHECK_EQUAL(world.store.stats().keys, 12u);
  CHECK_EQUAL(world.put_one("l", mib), 0);
  exists(world.store, {"l"});
  world.store.advance(499);
  CHECK_EQUAL(world.store.stats().keys, 13u);
  world.store.advance(11);
  CHECK_EQUAL(world.store.stats().keys, 12u);
  for (int i = 0; i < 5; i++) world.store.advance(UINT64_MAX);
  CHECK_EQUAL(world.store.stats().keys, 12u);
}

void a_thread_makes_room_in_real_time() {
  StoreOptions options = full(500);
  options.capacity = 16 * mib;
  EmbeddedStore store(options);
  const auto arena = make_host_arena(mib);
  CHECK_EQUAL(store.register_buffer(arena->address(), mib, arena), code::ok);
  const Row row{{arena->address(), mib}};
  for (int i = 0; i < 16; i++) CHECK_EQUAL(put(store, {"e" + std::to_string(i)}, {row})[0], 0);
  CHECK_EQUAL(put(store, {"x"}, {row})[0], -200);
  std::int64_t code = -200;
  const auto start = std::chrono::steady_clock::now();
  while (code == -200 && std::chrono::steady_clock::now() - start < std::chrono::seconds(20)) code = put(store, {"x"}, {row})[0];
  CHECK_EQUAL(code, 0);
  CHECK_EQUAL(store.stats().evicted, 1u);
}

void a_store_without_a_segment_takes_nothing() {
  EmbeddedStore store({});
  const auto arena = make_host_arena(4096);
  CHECK_EQUAL(store.register_buffer(arena->address(), 4096, arena), code::ok);
  CHECK_EQUAL(put(store, {"a"}, {{{arena->address(), 100}}})[0], -200);
  CHECK_EQUAL(upsert(store, {"a"}, {{{arena->address(), 100}}})[0], -200);
  CHECK_EQUAL(exists(store, {"a"})[0], 0);
}

}  // namespace

int main() {
  makes_no_room_before_the_next_round();
  starts_above_the_watermark();
  unread_ones_go_in_put_order();
  read_ones_go_by_the_end_of_their_lease();
  leased_ones_stay();
  hard_pins_stay();
  soft_pins_go_last();
  soft_pins_end();
  a_group_goes_as_a_whole();
  a_lease_protects_the_whole_group();
  a_group_has_the_place_of_its_first_member();
  pinned_members_stay();
  nothing_to_evict_costs_no_time();
  a_thread_makes_room_in_real_time();
  a_store_without_a_segment_takes_nothing();
  return test::finish();
}
