#include "store/embedded_store.h"

#include <algorithm>
#include <cstring>

#include "check.h"
#include "codes.h"
#include "store_helpers.h"

using namespace mooncake_kv;
using namespace mooncake_kv::test;

namespace {

constexpr std::uint64_t mib = 1 << 20;

/// A store with one registered arena: first half to put from, second half to get into.
struct World {
  explicit World(std::uint64_t capacity = 16 * mib, std::uint64_t arena_bytes = 8 * mib)
      : store(options(capacity)), arena(make_host_arena(arena_bytes)) {
    CHECK_EQUAL(store.register_buffer(arena->address(), arena->size(), arena), code::ok);
    for (std::uint64_t i = 0; i < arena_bytes / 2; i++) bytes()[i] = static_cast<std::uint8_t>(i * 131 + (i >> 8) + 1);
    std::memset(bytes() + arena_bytes / 2, 0xee, arena_bytes / 2);
  }

  /// A manual clock: nothing is evicted behind the test's back.
  static StoreOptions options(std::uint64_t capacity) {
    StoreOptions options;
    options.capacity = capacity;
    options.copy_threads = 2;
    options.manual_clock = true;
    return options;
  }
  std::uint8_t* bytes() { return arena->host_bytes(); }
  std::uint64_t at(std::uint64_t offset) const { return arena->address() + offset; }
  bool same(std::uint64_t a, std::uint64_t b, std::uint64_t size) { return std::memcmp(bytes() + a, bytes() + b, size) == 0; }
  bool untouched(std::uint64_t offset, std::uint64_t size) {
    return std::all_of(bytes() + offset, bytes() + offset + size, [](std::uint8_t byte) { return byte == 0xee; });
  }

  EmbeddedStore store;
  std::shared_ptr<Arena> arena;
};

void check_codes(const Codes& actual, const Codes& expected, int line) {
  CHECK_EQUAL(actual.size(), expected.size());
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); i++)
    if (actual[i] != expected[i]) std::fprintf(stderr, "line %d, key %zu: %lld\n", line, i, static_cast<long long>(actual[i]));
  CHECK(actual == expected);
}
#define CODES(actual, ...) check_codes((actual), Codes{__VA_ARGS__}, __LINE__)

void gathers_and_scatters() {
  World world;
  const std::uint64_t out = 4 * mib;
  CODES(put(world.store, {"a", "b"}, {{{world.at(0), 4096}, {world.at(4103), 4096}, {world.at(9000), 100}}, {{world.at(50), 10}}}), 0, 0);
  CODES(exists(world.store, {"a", "b", "c", ""}), 1, 1, 0, 0);
  CODES(size(world.store, {"a", "b", "c", ""}), 8292, 10, -704, -704);
  CODES(get(world.store, {"a", "b"}, {{{world.at(out), 100}, {world.at(out + 200), 1}, {world.at(out + 500), 8191}}, {{world.at(out + 10000), 10}}}), 8292, 10);
  CHECK(world.same(out, 0, 100));
  CHECK(world.same(out + 200, 100, 1));
  CHECK(world.same(out + 500, 101, 3995));
  CHECK(world.same(out + 500 + 3995, 4103, 4096));
  CHECK(world.same(out + 500 + 3995 + 4096, 9000, 100));
  CHECK(world.untouched(out + 100, 100));
  CHECK(world.untouched(out + 201, 299));
  CHECK(world.same(out + 10000, 50, 10));
}

void sizes_must_match_exactly() {
  World world;
  const std::uint64_t out = 4 * mib;
  CODES(put(world.store, {"a"}, {{{world.at(0), 1000}}}), 0);
  CODES(get(world.store, {"a", "a", "a", "a", "x"},
            {{{world.at(out), 999}}, {{world.at(out), 1001}}, {}, {{world.at(out), 0}}, {{world.at(out), 10}}}),
        -600, -800, -600, -600, -704);
  CHECK(world.untouched(out, 2000));
}

void an_existing_key_stays_as_it_is() {
  World world;
  const std::uint64_t out = 4 * mib;
  CODES(put(world.store, {"d", "d", "e", "d"}, {{{world.at(0), 512}}, {{world.at(1000), 513}}, {{world.at(2000), 5}}, {{world.at(3000), 5}}}), 0, 0, 0, 0);
  CODES(put(world.store, {"d"}, {{{world.at(7000), 512}}}), 0);
  CODES(size(world.store, {"d", "e"}), 512, 5);
  CODES(get(world.store, {"d", "e", "d"}, {{{world.at(out), 512}}, {{world.at(out + 1000), 5}}, {{world.at(out + 2000), 512}}}), 512, 5, 512);
  CHECK(world.same(out, 0, 512));
  CHECK(world.same(out + 2000, 0, 512));  // a key twice fills both
}

void refuses_empty_things() {
  World world;
  CODES(put(world.store, {"", "m0", "m1", "m2"}, {{{world.at(0), 5}}, {}, {{world.at(0), 0}}, {{world.at(0), 100}, {world.at(7), 0}, {world.at(9), 5}}}),
        -600, -600, -600, 0);
  CODES(exists(world.store, {"", "m0", "m1", "m2"}), 0, 0, 0, 1);
  CODES(size(world.store, {"m2"}), 105);
  CODES(put(world.store, {}, {}));
}

void refuses_memory_outside_the_regions() {
  World world;
  const std::uint64_t end = world.at(8 * mib);
  const Row bad[] = {
      {{0, 100}},                                         // NULL
      {{world.at(0) - 1, 10}},                            // one before
      {{end - 9, 10}},                                    // one behind
      {{end, 1}},                                         //
      {{UINT64_MAX - 3, 10}},                             // wraps around
      {{world.at(0), UINT64_MAX}},                        //
      {{world.at(0), 100}, {world.at(0), UINT64_MAX - 50}},  // the sum overflows
      {{world.at(0), 100}, {4096, 100}},                  // the second one only
  };
  for (const Row& row : bad) {
    CODES(put(world.store, {"bad", "good"}, {row, {{world.at(0), 10}}}), -600, 0);
    CODES(exists(world.store, {"bad", "good"}), 0, 1);
    CODES(get(world.store, {"good"}, {row}), -600);
    CODES(remove(world.store, {"good"}, true), 0);
  }
  CHECK_EQUAL(world.store.stats().occupied, 0u);
}

void unregistered_memory_is_foreign_again() {
  World world;
  CHECK_EQUAL(world.store.unregister_buffer(world.at(1)), code::invalid_params);
  CHECK_EQUAL(world.store.unregister_buffer(world.at(0)), code::ok);
  CHECK_EQUAL(world.store.unregister_buffer(world.at(0)), code::invalid_params);
  CODES(put(world.store, {"a"}, {{{world.at(0), 10}}}), -600);
  CHECK_EQUAL(world.store.register_buffer(world.at(0), 4096), code::ok);
  CHECK_EQUAL(world.store.register_buffer(world.at(4096), 4096), code::ok);
  CODES(put(world.store, {"a", "b"}, {{{world.at(4000), 200}}, {{world.at(4000), 96}, {world.at(4096), 10}}}), -600, 0);
#if defined(__linux__)
  CHECK_EQUAL(world.store.register_buffer(4096, 4096), code::invalid_params);  // nothing is mapped there
#endif
  CHECK_EQUAL(world.store.register_buffer(UINT64_MAX, 2), code::invalid_params);
  CHECK_EQUAL(world.store.register_buffer(0, 2), code::invalid_params);
}

void counts_capacity_as_mooncake_does() {
  World world(mib);
  CODES(put(world.store, {"x", "big", "y"}, {{{world.at(0), 1000}}, {{world.at(0), mib + 1}}, {{world.at(0), 1000}}}), 0, -200, 0);
  CHECK_EQUAL(world.store.stats().keys, 2u);
  CHECK_EQUAL(world.store.stats().used, 2000u);
  CHECK_EQUAL(world.store.stats().occupied, 2048u);
  CODES(remove(world.store, {"x", "y", "none", ""}), 0, 0, -704, -704);
  CODES(put(world.store, {"all"}, {{{world.at(0), mib}}}), 0);
  CODES(put(world.store, {"one"}, {{{world.at(0), 1}}}), -200);
  CODES(put(world.store, {"all"}, {{{world.at(0), 1}}}), 0);  // exists: room does not matter
  CODES(remove(world.store, {"all"}, true), 0);
  CHECK_EQUAL(world.store.stats().used, 0u);
}

void any_bytes_are_a_key() {
  World world;
  const std::vector<std::string> keys = {std::string("a\0b", 3), std::string("a\0c", 3), "\n", "\xff\x80", std::string(1 << 20, 'k')};
  const std::vector<Row> rows(keys.size(), Row{{world.at(0), 8}});
  CODES(put(world.store, keys, rows), 0, 0, 0, 0, 0);
  CODES(exists(world.store, keys), 1, 1, 1, 1, 1);
  CODES(exists(world.store, {std::string("a", 1), "\xff", std::string((1 << 20) - 1, 'k')}), 0, 0, 0);
  CHECK_EQUAL(world.store.stats().keys, 5u);
}

void large_batches_are_split_and_whole() {
  World world(64 * mib, 16 * mib);
  const std::uint64_t out = 8 * mib;
  std::vector<std::string> keys;
  std::vector<Row> sources, targets;
  for (std::uint64_t i = 0; i < 64; i++) {
    keys.push_back("k" + std::to_string(i));
    Row source, target;
    for (std::uint64_t s = 0; s < 30; s++) {
      source.push_back({world.at(((i * 30 + s) * 7919) % (8 * mib - 4096)), 4096});
      target.push_back({world.at(out + (s * 64 + i) * 4096), 4096});
    }
    sources.push_back(source);
    targets.push_back(target);
  }
  const Codes stored = put(world.store, keys, sources);
  CHECK(std::all_of(stored.begin(), stored.end(), [](std::int64_t code) { return code == 0; }));
  const Codes read = get(world.store, keys, targets);
  CHECK(std::all_of(read.begin(), read.end(), [](std::int64_t code) { return code == 30 * 4096; }));
  bool same = true;
  for (std::size_t i = 0; i < keys.size(); i++)
    for (std::size_t s = 0; s < 30; s++)
      same = same && std::memcmp(reinterpret_cast<void*>(sources[i][s].first), reinterpret_cast<void*>(targets[i][s].first), 4096) == 0;
  CHECK(same);
}

void a_closed_store_refuses_everything() {
  World world;
  CODES(put(world.store, {"a"}, {{{world.at(0), 10}}}), 0);
  world.store.close();
  world.store.close();
  CODES(put(world.store, {"a", "b"}, {{{world.at(0), 10}}, {{world.at(0), 10}}}), -600, -600);
  CODES(get(world.store, {"a"}, {{{world.at(0), 10}}}), -600);
  CODES(exists(world.store, {"a"}), -600);
  CODES(size(world.store, {"a"}), -600);
  CODES(remove(world.store, {"a"}), -600);
  CHECK_EQUAL(world.store.register_buffer(world.at(0), 10), code::invalid_params);
  CHECK_EQUAL(world.store.unregister_buffer(world.at(0)), code::invalid_params);
  CHECK_EQUAL(world.store.stats().capacity, 0u);
}

}  // namespace

int main() {
  gathers_and_scatters();
  sizes_must_match_exactly();
  an_existing_key_stays_as_it_is();
  refuses_empty_things();
  refuses_memory_outside_the_regions();
  unregistered_memory_is_foreign_again();
  counts_capacity_as_mooncake_does();
  any_bytes_are_a_key();
  large_batches_are_split_and_whole();
  a_closed_store_refuses_everything();
  return test::finish();
}
