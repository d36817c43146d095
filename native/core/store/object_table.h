#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "store/object.h"

namespace mooncake_kv {

/// Keys to objects: a hash table in shards with a lock each. Any bytes are a key. Thread-safe.
class ObjectTable {
 public:
  enum class Outcome { created, exists, no_room };
  struct Inserted {
    Outcome outcome;
    ObjectRef object;  // only when created
  };

  explicit ObjectTable(ValuePool& pool) : pool_(pool) {}

  /// Makes an unfinished object unless the key exists already, finished or not.
  Inserted insert(std::string_view key, std::uint64_t size);
  ObjectRef find(std::string_view key) const;
  /// 0, -704 for an absent key, -703 for an unfinished object.
  std::int32_t remove(std::string_view key);
  /// Takes back an unfinished object whose put failed.
  void revoke(const ObjectRef& object) noexcept;
  void clear() noexcept;
  std::uint64_t size() const;

 private:
  /// A key with its hash, which serves for the choice of the shard and within it.
  struct HashedKey {
    std::string_view text;  // of the object itself, once in the table
    std::size_t hash;
    bool operator==(const HashedKey& other) const { return hash == other.hash && text == other.text; }
  };
  struct TakeHash {
    std::size_t operator()(const HashedKey& key) const noexcept { return key.hash; }
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<HashedKey, ObjectRef, TakeHash> objects;
  };
  static constexpr int shard_bits = 6;

  static HashedKey hashed(std::string_view key) { return {key, std::hash<std::string_view>{}(key)}; }
  // The top bits: the table inside a shard uses the low ones.
  Shard& shard_of(const HashedKey& key) { return shards_[key.hash >> (std::numeric_limits<std::size_t>::digits - shard_bits)]; }
  const Shard& shard_of(const HashedKey& key) const { return shards_[key.hash >> (std::numeric_limits<std::size_t>::digits - shard_bits)]; }

  ValuePool& pool_;
  std::array<Shard, std::size_t{1} << shard_bits> shards_;
};

}  // namespace mooncake_kv
