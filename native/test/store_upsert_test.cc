#include "store_world.h"

using namespace mooncake_kv;
using namespace mooncake_kv::test;

namespace {

void overwrites() {
  World world;
  CHECK_EQUAL(world.upsert_one("k", 0, 5000), 0);
  CHECK(world.holds("k", 0, 5000));
  CHECK_EQUAL(world.upsert_one("k", 100, 5000), 0);
  CHECK(world.holds("k", 100, 5000));
  CHECK_EQUAL(world.store.stats().used, 5000u);  // in place
  CHECK_EQUAL(world.upsert_one("k", 200, 123456), 0);
  CHECK(world.holds("k", 200, 123456));
  CHECK_EQUAL(world.store.stats().used, 128456u);  // the old space is parked
  CHECK_EQUAL(world.upsert_one("k", 0, 0), -600);
  CHECK_EQUAL(world.upsert_one("", 0, 5), -600);
  CHECK_EQUAL(put(world.store, {"k"}, {world.row(0, 7)})[0], 0);
  CHECK_EQUAL(size(world.store, {"k"})[0], 123456);
  CHECK_EQUAL(world.store.stats().keys, 1u);
}

void of_equal_keys_the_first_is_stored() {
  World world;
  const Codes codes = upsert(world.store, {"u", "u", "v", "u"}, {world.row(0, 100), world.row(10, 200), world.row(20, 5), world.row(30, 100)});
  CHECK((codes == Codes{0, 0, 0, 0}));
  CHECK(world.holds("u", 0, 100));
  CHECK((upsert(world.store, {"z", "z"}, {world.row(0, 0), world.row(10, 7)}) == Codes{-600, 0}));
  CHECK(world.holds("z", 10, 7));
}

void parked_space_comes_back_under_pressure() {
  StoreOptions options;
  options.release_timeout_ms = 2000;
  World world(options);
  PutConfig hard;
  hard.hard_pin = true;
  CHECK_EQUAL(world.upsert_one("k", 0, mib), 0);
  CHECK_EQUAL(world.upsert_one("k", 0, 2 * mib, hard), 0);
  int count = 0;
  while (world.put_one("f" + std::to_string(count), mib, hard) == 0) count++;
  CHECK_EQUAL(count, 13);
  world.store.advance(1990);
  CHECK_EQUAL(world.put_one("late", mib, hard), -200);
  CHECK_EQUAL(world.put_patiently("late", mib, hard), 0);
  CHECK_EQUAL(world.put_patiently("later", mib, hard), -200);
}

void what_does_not_fit_leaves_the_old_value() {
  World world;
  CHECK_EQUAL(world.upsert_one("k", 0, 1000), 0);
  CHECK_EQUAL(world.upsert_one("k", 0, 20 * mib), -600);  // beyond the arena
  const Row twice = {{world.at(0), 8 * mib}, {world.at(0), 8 * mib}, {world.at(0), 8 * mib}};
  CHECK_EQUAL(upsert(world.store, {"k"}, {twice})[0], -200);
  CHECK(world.holds("k", 0, 1000));
  CHECK_EQUAL(upsert(world.store, {"k"}, {{{4096, 10}}})[0], -600);
  CHECK(world.holds("k", 0, 1000));
}

void a_reader_in_the_object_is_not_disturbed() {
  StoreOptions options;
  options.capacity = mib;
  World world(options);
  CHECK_EQUAL(world.upsert_one("k", 0, 600'000), 0);
  // The regex removal looks at the objects without a lock: it stands for a reader here.
  std::int64_t code = 99;
  world.store.remove_by_regex("nothing", false);
  code = world.upsert_one("k", 100, 600'000);
  CHECK_EQUAL(code, 0);
  CHECK(world.holds("k", 100, 600'000));
  CHECK_EQUAL(world.store.stats().used, 600'000u);
}

void overtakes_a_writer() {
  World world;
  const Batch k({"k"}, {world.row(0, 4096)});
  const std::uint64_t sizes[] = {4096};
  std::int32_t code = 99;
  world.store.start_put(1, k.keys(), sizes, {}, &code);
  CHECK_EQUAL(code, 0);
  CHECK_EQUAL(world.upsert_one("k", 50, 4096), 0);
  CHECK(world.holds("k", 50, 4096));
  world.store.end_put(1, k.keys(), &code);
  CHECK_EQUAL(code, -601);
  CHECK(world.holds("k", 50, 4096));
  CHECK_EQUAL(world.store.stats().used, 8192u);
}

void pins_survive() {
  World world;
  PutConfig hard;
  hard.hard_pin = true;
  CHECK_EQUAL(world.upsert_one("h", 0, mib, hard), 0);
  CHECK_EQUAL(world.upsert_one("h", 0, mib / 2), 0);
  for (int i = 0; i < 40; i++) CHECK_EQUAL(world.put_patiently("e" + std::to_string(i), mib), 0);
  CHECK_EQUAL(size(world.store, {"h"})[0], static_cast<std::int64_t>(mib / 2));
}

void configurations() {
  World world;
  PutConfig config;
  config.replica_num = 0;
  CHECK_EQUAL(world.put_one("a", 10, config), -600);
  config.replica_num = 2;
  CHECK_EQUAL(world.put_one("b", 10, config), 0);
  config = {};
  config.soft_pin_ttl_ms = 1000;
  CHECK_EQUAL(world.put_one("c", 10, config), -600);
  config.soft_pin = true;
  CHECK_EQUAL(world.put_one("c", 10, config), 0);
  config.soft_pin_ttl_ms = 1'000'000'000'000;
  CHECK_EQUAL(world.put_one("d", 10, config), -600);
  config = {};
  config = in_groups({"g1"});
  CHECK((put(world.store, {"i", "j"}, {world.row(0, 10), world.row(0, 10)}, config) == Codes{-600, -600}));
  CHECK_EQUAL(world.put_one("e", 10, in_groups({})), -600);  // an empty list has the wrong length too
  CHECK_EQUAL(world.upsert_one("e", 0, 10, in_groups({})), -600);
  config = in_groups({"g1", ""});
  CHECK((put(world.store, {"i", "j"}, {world.row(0, 10), world.row(0, 10)}, config) == Codes{0, 0}));
  config = in_groups({"other"});
  CHECK_EQUAL(world.upsert_one("i", 0, 10, config), -600);
  CHECK_EQUAL(world.upsert_one("j", 0, 10, config), -600);
  config = in_groups({"g1"});
  CHECK_EQUAL(world.upsert_one("i", 0, 20, config), 0);
  CHECK_EQUAL(world.upsert_one("i", 0, 30), 0);  // says nothing about groups
  CHECK_EQUAL(world.upsert_one("i", 0, 30, config), 0);
  config = in_groups({"new"});
  CHECK_EQUAL(world.upsert_one("n", 0, 30, config), 0);
  CHECK_EQUAL(world.store.remove_all(true), 5);
  CHECK_EQUAL(world.put_one("i", 10), 0);
  config = in_groups({"g1"});
  CHECK_EQUAL(world.upsert_one("i", 0, 10, config), -600);  // the group went with the object
}

}  // namespace

int main() {
  overwrites();
  of_equal_keys_the_first_is_stored();
  parked_space_comes_back_under_pressure();
  what_does_not_fit_leaves_the_old_value();
  a_reader_in_the_object_is_not_disturbed();
  overtakes_a_writer();
  pins_survive();
  configurations();
  return test::finish();
}
