#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "check.h"
#include "codes.h"
#include "store_helpers.h"

namespace mooncake_kv::test {

inline constexpr std::uint64_t mib = 1 << 20;

/// A store on a manual clock with one registered arena: the first half holds a pattern to put from, the second 0xee.
struct World {
  explicit World(StoreOptions options = {}, std::uint64_t arena_bytes = 8 * mib)
      : store(prepared(options)), arena(make_host_arena(arena_bytes)), half(arena_bytes / 2) {
    CHECK_EQUAL(store.register_buffer(arena->address(), arena->size(), arena), code::ok);
    for (std::uint64_t i = 0; i < half; i++) bytes()[i] = static_cast<std::uint8_t>(i * 131 + (i >> 8) + 1);
    std::memset(bytes() + half, 0xee, half);
  }

  static StoreOptions prepared(StoreOptions options) {
    if (options.capacity == 0) options.capacity = 16 * mib;
    options.copy_threads = 2;
    options.manual_clock = true;
    return options;
  }
  std::uint8_t* bytes() { return arena->host_bytes(); }
  std::uint64_t at(std::uint64_t offset) const { return arena->address() + offset; }
  Row row(std::uint64_t offset, std::uint64_t size) const { return {{at(offset), size}}; }
  bool same(std::uint64_t a, std::uint64_t b, std::uint64_t size) { return std::memcmp(bytes() + a, bytes() + b, size) == 0; }
  std::int64_t put_one(const std::string& key, std::uint64_t size, const PutConfig& config = {}) {
    return put(store, {key}, {row(0, size)}, config)[0];
  }
  std::int64_t upsert_one(const std::string& key, std::uint64_t offset, std::uint64_t size, const PutConfig& config = {}) {
    return upsert(store, {key}, {row(offset, size)}, config)[0];
  }
  /// Whether the object has the bytes at `offset` of the pattern.
  bool holds(const std::string& key, std::uint64_t offset, std::uint64_t size) {
    return get(store, {key}, {row(half, size)})[0] == static_cast<std::int64_t>(size) && same(half, offset, size);
  }
  /// Put with retries, as a client does that waits for eviction.
  std::int64_t put_patiently(const std::string& key, std::uint64_t size, const PutConfig& config = {}) {
    std::int64_t code = 0;
    for (int attempt = 0; attempt < 60; attempt++) {
      code = put_one(key, size, config);
      if (code != code::no_available_handle) return code;
      store.advance(20);
    }
    return code;
  }
  /// 1 and 0 for the keys prefix0, prefix1, ...
  std::string present(const std::string& prefix, int count) {
    std::vector<std::string> keys;
    for (int i = 0; i < count; i++) keys.push_back(prefix + std::to_string(i));
    std::string text;
    for (const std::int64_t code : exists(store, keys)) text += code == 1 ? '1' : '0';
    return text;
  }

  EmbeddedStore store;
  std::shared_ptr<Arena> arena;
  std::uint64_t half;
};

}  // namespace mooncake_kv::test
