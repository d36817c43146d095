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
  a_thread_makes_room_in_real_time();
  a_store_without_a_segment_takes_nothing();
  return test::finish();
}
