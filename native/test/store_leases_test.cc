#include "store_world.h"

using namespace mooncake_kv;
using namespace mooncake_kv::test;

namespace {

StoreOptions ttl(std::uint64_t ms) {
  StoreOptions options;
  options.lease_ttl_ms = ms;
  return options;
}

/// A remove without force right after `read` is refused until the lease is over.
template <typename Read>
void grants(Read read, bool expected = true) {
  World world(ttl(500));
  CHECK_EQUAL(world.put_one("k", 1000), 0);
  CHECK_EQUAL(remove(world.store, {"k"})[0], 0);  // a put grants none
  CHECK_EQUAL(world.put_one("k", 1000), 0);
  read(world);
  CHECK_EQUAL(remove(world.store, {"k"})[0], expected ? -706 : 0);
  if (!expected) return;
  world.store.advance(499);
  CHECK_EQUAL(remove(world.store, {"k"})[0], -706);  // and is not extended by the refusal
  world.store.advance(1);
  CHECK_EQUAL(remove(world.store, {"k"})[0], 0);
}

void what_grants_a_lease() {
  grants([](World& w) { exists(w.store, {"k"}); });
  grants([](World& w) { size(w.store, {"k"}); });
  grants([](World& w) { get(w.store, {"k"}, {w.row(w.half, 1000)}); });
  grants([](World& w) { get(w.store, {"k"}, {w.row(w.half, 999)}); });   // -600
  grants([](World& w) { get(w.store, {"k"}, {w.row(w.half, 1001)}); });  // -800
  grants([](World& w) { get(w.store, {"k"}, {{{0, 1000}}}); });          // foreign memory
  grants([](World& w) {
    const Batch batch({"k"});
    std::int32_t code;
    ReplicaPlace place;
    w.store.replicas(batch.keys(), {}, &code, &place);
    CHECK_EQUAL(code, 1);
    CHECK_EQUAL(place.size, 1000u);
  });
  grants([](World& w) {
    const Batch batch({"k"});
    std::int64_t code;
    std::vector<OwnedValue> values;
    w.store.get(batch.keys(), {}, &code, values);
    CHECK_EQUAL(code, 1000);
    CHECK(std::memcmp(values[0].bytes.get(), w.bytes(), 1000) == 0);
  });
  grants([](World& w) { w.put_one("k", 1000); }, false);
  grants([](World& w) { w.upsert_one("k", 0, 1000); }, false);
  grants([](World& w) { w.upsert_one("k", 0, 10); }, false);
  grants([](World& w) { w.store.remove_by_regex("nomatch", false); }, false);
  grants([](World& w) { exists(w.store, {"other"}); }, false);
}

void leases_only_grow() {
  World world(ttl(500));
  world.put_one("k", 10);
  exists(world.store, {"k"});
  world.store.advance(250);
  exists(world.store, {"k"});
  world.store.advance(375);
  CHECK_EQUAL(remove(world.store, {"k"})[0], -706);
  CHECK_EQUAL(remove(world.store, {"k"}, true)[0], 0);
}

void a_lease_outlives_an_upsert_of_the_same_size() {
  World world(ttl(500));
  world.put_one("k", 10);
  exists(world.store, {"k"});
  CHECK_EQUAL(world.upsert_one("k", 100, 10), 0);
  CHECK_EQUAL(remove(world.store, {"k"})[0], -706);
  CHECK_EQUAL(world.upsert_one("k", 100, 20), 0);
  CHECK_EQUAL(remove(world.store, {"k"})[0], 0);
}

void removing_many_skips_the_leased() {
  World world(ttl(500));
  for (const char* key : {"a", "b", "c"}) world.put_one(key, 1000);
  exists(world.store, {"b"});
  CHECK_EQUAL(world.store.remove_all(false), 2);
  CHECK_EQUAL(size(world.store, {"b"})[0], 1000);
  CHECK_EQUAL(world.store.remove_all(false), 0);
  CHECK_EQUAL(world.store.remove_by_regex("^b$", false), 0);
  world.store.advance(500);
  CHECK_EQUAL(world.store.remove_by_regex("b", false), 1);
  for (const char* key : {"pre-1", "pre-2", "other"}) world.put_one(key, 10);
  exists(world.store, {"pre-1"});
  CHECK_EQUAL(world.store.remove_by_regex("^pre-.*", false), 1);
  CHECK_EQUAL(world.store.remove_by_regex("^pre-.*", true), 1);
  CHECK_EQUAL(world.store.remove_by_regex("[", true), -600);
  CHECK_EQUAL(world.store.remove_all(true), 1);
}

/// Two members of g and one object of no group.
struct WithGroup : World {
  WithGroup() : World(ttl(500)) {
    CHECK((put(store, {"a", "b", "c"}, {row(0, 1000), row(0, 1000), row(0, 1000)}, in_groups({"g", "g", ""})) == Codes{0, 0, 0}));
  }
};

void members_of_a_group_share_a_lease() {
  WithGroup world;
  exists(world.store, {"a"});
  CHECK((remove(world.store, {"b", "c"}) == Codes{-706, 0}));
  world.store.advance(499);
  CHECK((remove(world.store, {"b", "a"}) == Codes{-706, -706}));
  world.store.advance(1);
  CHECK((remove(world.store, {"b", "a"}) == Codes{0, 0}));
  // Every way to read protects all, wherever they lie.
  for (int way = 0; way < 3; way++) {
    std::vector<std::string> keys;
    for (int i = 0; i < 200; i++) keys.push_back("m" + std::to_string(i));
    for (const std::string& key : keys) CHECK_EQUAL(world.put_one(key, 10, in_groups({"many"})), 0);
    if (way == 0) size(world.store, {"m7"});
    if (way == 1) get(world.store, {"m7"}, {world.row(world.half, 10)});
    if (way == 2) get(world.store, {"m7"}, {{{0, 1}}});
    CHECK(remove(world.store, keys) == Codes(200, -706));
    CHECK_EQUAL(world.store.remove_all(false), 0);
    CHECK_EQUAL(world.store.remove_by_regex("m", false), 0);
    CHECK_EQUAL(remove(world.store, {"m3"}, true)[0], 0);
    world.store.advance(500);
    CHECK_EQUAL(world.store.remove_by_regex("m1", false), 111);
    CHECK_EQUAL(world.store.remove_all(false), 88);
  }
}

void a_lease_of_a_group_is_renewed_at_half() {
  WithGroup world;
  exists(world.store, {"a"});
  world.store.advance(249);
  exists(world.store, {"b"});  // more than half is left
  world.store.advance(251);
  CHECK_EQUAL(remove(world.store, {"b"})[0], 0);
  exists(world.store, {"a"});
  world.store.advance(250);
  exists(world.store, {"a"});
  world.store.advance(499);
  CHECK_EQUAL(remove(world.store, {"a"})[0], -706);
  world.store.advance(1);
  CHECK_EQUAL(remove(world.store, {"a"})[0], 0);
}

void a_new_member_has_no_share_before_the_next_read() {
  WithGroup world;
  exists(world.store, {"a"});
  CHECK_EQUAL(world.put_one("n", 10, in_groups({"g"})), 0);
  CHECK_EQUAL(remove(world.store, {"n"})[0], 0);
  CHECK_EQUAL(world.put_one("n", 10, in_groups({"g"})), 0);
  world.store.advance(100);
  exists(world.store, {"a"});  // renews the lease although most of it is left
  CHECK_EQUAL(remove(world.store, {"n"})[0], -706);
  world.store.advance(499);
  CHECK_EQUAL(remove(world.store, {"b"})[0], -706);
  world.store.advance(1);
  CHECK((remove(world.store, {"a", "b", "n"}) == Codes{0, 0, 0}));
  // A group is its members: without them its lease is gone.
  CHECK_EQUAL(world.put_one("a", 10, in_groups({"g"})), 0);
  exists(world.store, {"a"});
  CHECK_EQUAL(world.put_one("b", 10, in_groups({"g"})), 0);
  CHECK_EQUAL(remove(world.store, {"a"}, true)[0], 0);
  CHECK_EQUAL(remove(world.store, {"b"})[0], 0);
}

void upserts_in_a_group() {
  WithGroup world;
  exists(world.store, {"a"});
  CHECK_EQUAL(world.upsert_one("b", 0, 1000), 0);
  CHECK_EQUAL(remove(world.store, {"b"})[0], -706);
#if defined(__linux__)
  // One that fails has never been there.
  CallOptions any;
  any.access = Access::any;
  CHECK_EQUAL(upsert(world.store, {"b"}, {{{4096, 2000}}}, {}, any)[0], -800);
  CHECK_EQUAL(remove(world.store, {"b"})[0], -706);
#endif
  CHECK_EQUAL(world.upsert_one("b", 0, 2000), 0);  // other bytes have no lease
  CHECK_EQUAL(remove(world.store, {"b"})[0], 0);
  CHECK_EQUAL(world.put_one("b", 10, in_groups({"g"})), 0);
  CHECK_EQUAL(world.upsert_one("b", 0, 20), 0);
  exists(world.store, {"a"});  // but stay in the group
  CHECK_EQUAL(remove(world.store, {"b"})[0], -706);
  world.store.advance(500);
  // Overwritten after the lease has ended, it stands in the order of eviction by itself again, and so does a read.
  CHECK_EQUAL(world.upsert_one("b", 0, 20), 0);
  CHECK_EQUAL(remove(world.store, {"b"})[0], 0);
  CHECK_EQUAL(world.put_one("a", 10, in_groups({"h"})), 0);  // it exists: no effect
  CHECK_EQUAL(world.put_one("x", 10, in_groups({"h"})), 0);
  exists(world.store, {"x"});
  CHECK_EQUAL(remove(world.store, {"a"})[0], 0);
}

void whoever_takes_a_stalled_put_over_chooses_the_group() {
  StoreOptions options = ttl(500);
  options.discard_timeout_ms = 2000;
  World world(options);
  const Batch k({"k"});
  const std::uint64_t sizes[] = {10};
  std::int32_t code = 99;
  world.store.start_put(7, k.keys(), sizes, in_groups({"g"}), &code);
  CHECK_EQUAL(code, 0);
  CHECK_EQUAL(world.put_one("x", 10, in_groups({"g"})), 0);
  exists(world.store, {"x"});
  world.store.advance(2000);
  CHECK_EQUAL(world.put_one("k", 10, in_groups({"h"})), 0);
  exists(world.store, {"x"});
  CHECK_EQUAL(remove(world.store, {"k"})[0], 0);
  // What is being written shares a lease that is granted meanwhile.
  world.store.start_put(8, k.keys(), sizes, in_groups({"g"}), &code);
  CHECK_EQUAL(code, 0);
  exists(world.store, {"x"});
  world.store.advance(499);
  world.store.end_put(8, k.keys(), &code);
  CHECK_EQUAL(code, 0);
  CHECK_EQUAL(remove(world.store, {"k"})[0], -706);
  world.store.advance(1);
  CHECK_EQUAL(remove(world.store, {"k"})[0], 0);
}

void a_read_that_outlives_its_lease_says_so() {
  World world(ttl(0));
  world.put_one("k", 100);
  CHECK_EQUAL(exists(world.store, {"k"})[0], 1);
  CHECK_EQUAL(get(world.store, {"k"}, {world.row(world.half, 100)})[0], -707);
  CHECK(world.same(world.half, 0, 100));  // written all the same
  CHECK_EQUAL(remove(world.store, {"k"})[0], 0);
}

void unfinished_puts() {
  StoreOptions options;
  options.discard_timeout_ms = 2000;
  options.release_timeout_ms = 4000;
  World world(options);
  const Batch k({"k"}, {world.row(0, 4096)});
  const std::uint64_t sizes[] = {4096};
  const std::uint64_t targets[] = {0};
  std::int32_t code = 99;
  std::int64_t written = 99;
  world.store.start_put(7, k.keys(), sizes, {}, &code);
  CHECK_EQUAL(code, 0);
  CHECK_EQUAL(exists(world.store, {"k"})[0], 0);
  CHECK_EQUAL(size(world.store, {"k"})[0], -703);
  CHECK_EQUAL(get(world.store, {"k"}, {world.row(world.half, 4096)})[0], -703);
  CHECK_EQUAL(world.put_one("k", 4096), 0);  // no effect
  CHECK_EQUAL(size(world.store, {"k"})[0], -703);
  world.store.start_put(8, k.keys(), sizes, {}, &code);
  CHECK_EQUAL(code, -705);
  world.store.start_put(7, k.keys(), sizes, {}, &code);
  CHECK_EQUAL(code, -600);
  world.store.end_put(8, k.keys(), &code);
  CHECK_EQUAL(code, -600);
  for (const bool force : {false, true}) {
    CHECK_EQUAL(remove(world.store, {"k"}, force)[0], -703);
    CHECK_EQUAL(world.store.remove_all(force), 0);
    CHECK_EQUAL(world.store.remove_by_regex("k", force), 0);
  }
  world.store.write_put(7, k.keys(), k.segments(), targets, {}, &written);
  CHECK_EQUAL(written, 4096);
  const std::uint64_t outside[] = {1};
  world.store.write_put(7, k.keys(), k.segments(), outside, {}, &written);
  CHECK_EQUAL(written, -600);
  world.store.end_put(7, k.keys(), &code);
  CHECK_EQUAL(code, 0);
  CHECK(world.holds("k", 0, 4096));
  world.store.end_put(7, k.keys(), &code);
  CHECK_EQUAL(code, -600);

  const Batch two({"k", "k2"});
  const std::uint64_t two_sizes[] = {10, 4096};
  std::int32_t codes[2];
  world.store.start_put(7, two.keys(), two_sizes, {}, codes);
  CHECK(codes[0] == -705 && codes[1] == 0);
  CHECK_EQUAL(world.store.stats().used, 8192u);
  const Batch k2({"k2"});
  world.store.revoke_put(7, k2.keys(), &code);
  CHECK_EQUAL(code, 0);
  CHECK_EQUAL(world.store.stats().used, 4096u);

  // A writer that never comes back: the next put after the timeout takes over, and the old space is given back later.
  world.store.start_put(7, k2.keys(), sizes, {}, &code);
  world.store.advance(1999);
  CHECK_EQUAL(world.put_one("k2", 10), 0);
  CHECK_EQUAL(size(world.store, {"k2"})[0], -703);
  world.store.advance(1);
  CHECK_EQUAL(world.put_one("k2", 10), 0);
  CHECK_EQUAL(size(world.store, {"k2"})[0], 10);
  CHECK_EQUAL(world.store.stats().used, 4096u + 4096 + 10);
  world.store.end_put(7, k2.keys(), &code);
  CHECK_EQUAL(code, -601);
  CHECK_EQUAL(size(world.store, {"k2"})[0], 10);
}

void deadlines() {
  World world;
  world.put_one("k", 100);
  CallOptions late;
  late.deadline = Deadline::after_ms(0);
  CHECK_EQUAL(put(world.store, {"n"}, {world.row(0, 10)}, {}, late)[0], -901);
  CHECK_EQUAL(upsert(world.store, {"k"}, {world.row(0, 10)}, {}, late)[0], -901);
  CHECK_EQUAL(get(world.store, {"k"}, {world.row(world.half, 100)}, late)[0], -901);
  CHECK_EQUAL(world.store.remove_all(true, late.deadline), -901);
  CHECK_EQUAL(world.store.remove_by_regex("k", true, late.deadline), -901);
  CHECK_EQUAL(world.store.stats().keys, 1u);
  CHECK_EQUAL(size(world.store, {"k"})[0], 100);
  const auto flag = std::make_shared<std::atomic<bool>>(false);
  CallOptions cancelled;
  cancelled.deadline = Deadline::after_ms(UINT64_MAX).or_when(flag);
  CHECK_EQUAL(get(world.store, {"k"}, {world.row(world.half, 100)}, cancelled)[0], 100);
  *flag = true;
  CHECK_EQUAL(get(world.store, {"k"}, {world.row(world.half, 100)}, cancelled)[0], -901);
  CHECK_EQUAL(put(world.store, {"n"}, {world.row(0, 10)}, {}, cancelled)[0], -901);
  CHECK_EQUAL(world.store.remove_all(true, cancelled.deadline), -901);
  CallOptions early;
  early.deadline = Deadline::after_ms(UINT64_MAX);
  CHECK_EQUAL(get(world.store, {"k"}, {world.row(world.half, 100)}, early)[0], 100);
}

void any_address() {
  World world;
  CallOptions any;
  any.access = Access::any;
  any.larger_fits = true;
  world.store.unregister_buffer(world.at(0));
  CHECK_EQUAL(put(world.store, {"k"}, {world.row(0, 5000)}, {}, any)[0], 0);
  CHECK_EQUAL(get(world.store, {"k"}, {world.row(world.half, 6000)}, any)[0], 5000);
  CHECK(world.same(world.half, 0, 5000));
  CHECK_EQUAL(world.bytes()[world.half + 5000], 0xee);
#if defined(__linux__)
  CHECK_EQUAL(put(world.store, {"bad", "good"}, {{{4096, 100}}, world.row(0, 10)}, {}, any)[0], -800);
  CHECK_EQUAL(get(world.store, {"k"}, {{{4096, 5000}}}, any)[0], -800);
  CHECK_EQUAL(exists(world.store, {"bad"})[0], 0);
  CHECK_EQUAL(exists(world.store, {"good"})[0], 1);
#endif
  CHECK_EQUAL(put(world.store, {"null"}, {{{0, 100}}}, {}, any)[0], -600);
}

}  // namespace

int main() {
  what_grants_a_lease();
  leases_only_grow();
  a_lease_outlives_an_upsert_of_the_same_size();
  removing_many_skips_the_leased();
  members_of_a_group_share_a_lease();
  a_lease_of_a_group_is_renewed_at_half();
  a_new_member_has_no_share_before_the_next_read();
  upserts_in_a_group();
  whoever_takes_a_stalled_put_over_chooses_the_group();
  a_read_that_outlives_its_lease_says_so();
  unfinished_puts();
  deadlines();
  any_address();
  return test::finish();
}
