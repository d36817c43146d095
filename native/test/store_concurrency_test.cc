#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "codes.h"
#include "store_helpers.h"

using namespace mooncake_kv;
using namespace mooncake_kv::test;

namespace {

constexpr std::uint64_t value_bytes = 64 << 10;
constexpr std::uint64_t mib = 1 << 20;

/// Every byte of the value of key k is k + 1, so that a mixture of two values shows.
void puts_gets_and_removes_at_once() {
  constexpr unsigned threads = 4;
  constexpr unsigned keys = 8;
  EmbeddedStore store({4 * mib, 2});
  const auto arena = make_host_arena((keys + threads * 2) * value_bytes);
  CHECK_EQUAL(store.register_buffer(arena->address(), arena->size(), arena), code::ok);
  for (unsigned k = 0; k < keys; k++) std::memset(arena->host_bytes() + k * value_bytes, k + 1, value_bytes);
  std::atomic<int> wrong = 0, reads = 0;
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < threads; t++)
    workers.emplace_back([&, t] {
      const std::uint64_t own = arena->address() + (keys + t * 2) * value_bytes;
      for (unsigned i = 0; i < 400; i++) {
        const unsigned k = (i * 7 + t) % keys;
        const unsigned other = (k + 1) % keys;
        const std::vector<std::string> names = {std::to_string(k), std::to_string(other)};
        const auto source = [&](unsigned key) { return Row{{arena->address() + key * value_bytes, value_bytes}}; };
        if (i % 3 == 0)
          for (const std::int64_t code : put(store, names, {source(k), source(other)})) wrong += code != 0;
        const Codes codes = get(store, names, {{{own, value_bytes}}, {{own + value_bytes, value_bytes}}});
        for (unsigned n = 0; n < 2; n++) {
          if (codes[n] == -704 || codes[n] == -703) continue;
          if (codes[n] != static_cast<std::int64_t>(value_bytes)) {
            wrong++;
            continue;
          }
          reads++;
          const std::uint8_t* bytes = arena->host_bytes() + (own - arena->address()) + n * value_bytes;
          const std::uint8_t expected = static_cast<std::uint8_t>((n == 0 ? k : other) + 1);
          for (std::uint64_t b = 0; b < value_bytes; b++) wrong += bytes[b] != expected;
        }
        if (i % 5 == 0)
          for (const std::int64_t code : remove(store, {names[0]}, true)) wrong += code != 0 && code != -704 && code != -703;
      }
    });
  for (std::thread& worker : workers) worker.join();
  CHECK_EQUAL(wrong.load(), 0);
  CHECK(reads.load() > 0);
  for (unsigned k = 0; k < keys; k++) remove(store, {std::to_string(k)}, true);
  CHECK_EQUAL(store.stats().keys, 0u);
  CHECK_EQUAL(store.stats().occupied, 0u);
}

void one_of_many_equal_puts_wins_whole() {
  EmbeddedStore store({64 * mib, 2});
  const auto arena = make_host_arena(5 * mib);
  CHECK_EQUAL(store.register_buffer(arena->address(), arena->size(), arena), code::ok);
  for (unsigned t = 0; t < 4; t++) std::memset(arena->host_bytes() + t * mib, t + 1, mib);
  for (int round = 0; round < 10; round++) {
    std::vector<std::thread> writers;
    std::atomic<int> failed = 0;
    for (unsigned t = 0; t < 4; t++)
      writers.emplace_back([&, t] { failed += put(store, {"same"}, {{{arena->address() + t * mib, mib}}})[0] != 0; });
    for (std::thread& writer : writers) writer.join();
    CHECK_EQUAL(failed.load(), 0);
    CHECK_EQUAL(get(store, {"same"}, {{{arena->address() + 4 * mib, mib}}})[0], static_cast<std::int64_t>(mib));
    const std::uint8_t* bytes = arena->host_bytes() + 4 * mib;
    CHECK(bytes[0] >= 1 && bytes[0] <= 4 && std::memcmp(bytes, bytes + 1, mib - 1) == 0);
    CHECK_EQUAL(remove(store, {"same"}, true)[0], 0);
  }
}

void closes_under_running_calls() {
  for (int round = 0; round < 10; round++) {
    EmbeddedStore store({32 * mib, 2});
    auto arena = make_host_arena(4 * mib);
    CHECK_EQUAL(store.register_buffer(arena->address(), arena->size(), arena), code::ok);
    const std::uint64_t address = arena->address();
    arena.reset();  // the registry keeps the memory
    std::atomic<int> wrong = 0;
    std::atomic<bool> running = false;
    std::vector<std::thread> callers;
    for (unsigned t = 0; t < 3; t++)
      callers.emplace_back([&, t] {
        for (int i = 0;; i++) {
          const std::int64_t code = put(store, {std::to_string(t) + "-" + std::to_string(i)}, {{{address, 3 * mib / 2}}})[0];
          running = true;
          if (code == -600) return;
          wrong += code != 0 && code != -200;
        }
      });
    while (!running) std::this_thread::yield();
    store.close();
    for (std::thread& caller : callers) caller.join();
    CHECK_EQUAL(wrong.load(), 0);
  }
}

void memory_may_go_right_after_unregister() {
  EmbeddedStore store({32 * mib, 2});
  for (int round = 0; round < 20; round++) {
    auto arena = make_host_arena(2 * mib);
    const std::uint64_t address = arena->address();
    CHECK_EQUAL(store.register_buffer(address, 2 * mib), code::ok);  // without an owner
    std::atomic<bool> running = false;
    std::thread caller([&] {
      for (;;) {
        const std::int64_t code = put(store, {"k"}, {{{address, 2 * mib}}})[0];
        running = true;
        if (code != 0) return;
        remove(store, {"k"}, true);
      }
    });
    while (!running) std::this_thread::yield();
    CHECK_EQUAL(store.unregister_buffer(address), code::ok);
    arena.reset();  // a call that still copied would die here
    caller.join();
  }
}

/// Writers of one key with upserts of two sizes, and readers: every read is whole.
void upserts_and_reads_of_one_key() {
  EmbeddedStore store({64 * mib, 2});
  const auto arena = make_host_arena(8 * mib);
  CHECK_EQUAL(store.register_buffer(arena->address(), arena->size(), arena), code::ok);
  std::atomic<int> wrong = 0, reads = 0;
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < 2; t++)
    workers.emplace_back([&, t] {
      const std::uint64_t own = t * mib;
      for (unsigned i = 0; i < 200; i++) {
        std::memset(arena->host_bytes() + own, static_cast<int>(1 + t + 2 * (i % 100)), value_bytes);
        const std::uint64_t size = i % 3 == 0 ? value_bytes / 2 : value_bytes;
        const std::int64_t code = upsert(store, {"u"}, {{{arena->address() + own, size}}})[0];
        wrong += code != 0 && code != -601;
      }
    });
  for (unsigned t = 2; t < 4; t++)
    workers.emplace_back([&, t] {
      const std::uint64_t own = t * mib;
      CallOptions larger;
      larger.larger_fits = true;
      for (unsigned i = 0; i < 200; i++) {
        const std::int64_t size = get(store, {"u"}, {{{arena->address() + own, value_bytes}}}, larger)[0];
        if (size < 0) {
          wrong += size != -704 && size != -703;
          continue;
        }
        reads++;
        const std::uint8_t* bytes = arena->host_bytes() + own;
        wrong += std::memcmp(bytes, bytes + 1, static_cast<std::size_t>(size) - 1) != 0;
      }
    });
  for (std::thread& worker : workers) worker.join();
  CHECK_EQUAL(wrong.load(), 0);
}

/// More than fits, from several threads, with reads between: eviction makes room, and nothing is lost track of.
void evicts_under_load() {
  StoreOptions options;
  options.capacity = 4 * mib;
  options.copy_threads = 2;
  options.lease_ttl_ms = 1;
  EmbeddedStore store(options);
  const auto arena = make_host_arena(8 * value_bytes);
  CHECK_EQUAL(store.register_buffer(arena->address(), arena->size(), arena), code::ok);
  std::atomic<int> wrong = 0, stored = 0;
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < 4; t++)
    workers.emplace_back([&, t] {
      const std::uint64_t own = arena->address() + t * 2 * value_bytes;
      for (unsigned i = 0; i < 150; i++) {
        const std::string key = std::to_string(t) + "-" + std::to_string(i);
        const std::int64_t code = put(store, {key}, {{{own, value_bytes}}})[0];
        wrong += code != 0 && code != -200;
        stored += code == 0;
        if (code != 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        const std::int64_t read = get(store, {key}, {{{own + value_bytes, value_bytes}}})[0];
        wrong += read != static_cast<std::int64_t>(value_bytes) && read != -704 && read != -707;
      }
    });
  for (std::thread& worker : workers) worker.join();
  CHECK_EQUAL(wrong.load(), 0);
  CHECK(stored.load() > 64);
  const StoreStats stats = store.stats();
  CHECK(stats.evicted > 0);
  CHECK_EQUAL(stats.stored - stats.evicted, stats.keys);
  CHECK_EQUAL(stats.used, stats.keys * value_bytes);
  store.remove_all(true);
  CHECK_EQUAL(store.stats().occupied, 0u);
}

/// Members come, are read, overwritten, evicted and removed from all sides; what is read is whole, and nothing stays behind.
void groups_under_load() {
  constexpr unsigned threads = 4;
  constexpr std::uint64_t bytes = 16 << 10;
  StoreOptions options{mib, 2};
  options.lease_ttl_ms = 3;
  options.eviction_ratio = 0.2;
  EmbeddedStore store(options);
  const auto arena = make_host_arena(threads * 2 * bytes);
  CHECK_EQUAL(store.register_buffer(arena->address(), arena->size(), arena), code::ok);
  std::atomic<int> wrong = 0, reads = 0;
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < threads; t++)
    workers.emplace_back([&, t] {
      std::uint8_t* own = arena->host_bytes() + t * 2 * bytes;
      const Row source{{reinterpret_cast<std::uintptr_t>(own), bytes}};
      const Row half{{reinterpret_cast<std::uintptr_t>(own), bytes / 2}};
      const Row target{{reinterpret_cast<std::uintptr_t>(own) + bytes, bytes}};
      for (unsigned i = 0; i < 1000; i++) {
        const std::string group = "g" + std::to_string((i * 5 + t) % 6);
        const std::string key = group + "-" + std::to_string(i % 25);
        std::memset(own, static_cast<int>(i % 25 + 1), bytes);
        std::int64_t code = 0;
        if (i % 4 == 0) code = put(store, {key}, {source}, in_groups({group}))[0];
        else if (i % 4 == 1) code = upsert(store, {key}, {i % 8 == 1 ? half : source}, in_groups({group}))[0];
        else if (i % 9 == 2) code = remove(store, {key}, i % 2 == 0)[0];
        else if (i % 300 == 3) code = store.remove_by_regex("^" + group, false) < 0;
        if (code != 0 && code != -200 && code != -601 && code != -714 && code != -706 && code != -704 && code != -703) wrong++;
        exists(store, {group + "-1"});
        CallOptions any;
        any.larger_fits = true;
        const std::int64_t size = get(store, {key}, {target}, any)[0];
        if (size > 0) {
          reads++;
          for (std::int64_t b = 0; b < size; b++) wrong += own[bytes + static_cast<std::uint64_t>(b)] != i % 25 + 1;
        } else {
          wrong += size != -704 && size != -703 && size != -707;
        }
      }
    });
  for (std::thread& worker : workers) worker.join();
  CHECK_EQUAL(wrong.load(), 0);
  CHECK(reads.load() > 0);
  // On a busy machine every group may have been under a lease all the time; now all leases run out.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (unsigned i = 0; store.stats().evicted == 0 && std::chrono::steady_clock::now() < patience; i++) {
    put(store, {"more-" + std::to_string(i)}, {{{reinterpret_cast<std::uintptr_t>(arena->host_bytes()), bytes}}}, in_groups({""}));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(store.stats().evicted > 0);
  store.remove_all(true);
  CHECK_EQUAL(store.stats().keys, 0u);
}

}  // namespace

int main() {
  puts_gets_and_removes_at_once();
  one_of_many_equal_puts_wins_whole();
  closes_under_running_calls();
  memory_may_go_right_after_unregister();
  upserts_and_reads_of_one_key();
  evicts_under_load();
  groups_under_load();
  return test::finish();
}
