#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memory/arena.h"
#include "store/embedded_store.h"

namespace mooncake_kv::test {

using Row = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // address, size

/// Keys and rows as vectors, handed to a store as flat batches.
struct Batch {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint32_t> offsets{0};
  std::vector<std::uint64_t> addresses, sizes;
  std::vector<std::uint32_t> rows{0};

  explicit Batch(const std::vector<std::string>& keys, const std::vector<Row>& segments = {}) {
    for (const std::string& key : keys) {
      bytes.insert(bytes.end(), key.begin(), key.end());
      offsets.push_back(static_cast<std::uint32_t>(bytes.size()));
    }
    for (const Row& row : segments) {
      for (const auto& [address, size] : row) {
        addresses.push_back(address);
        sizes.push_back(size);
      }
      rows.push_back(static_cast<std::uint32_t>(addresses.size()));
    }
  }

  KeyBatch keys() const { return {bytes.data(), offsets.data(), offsets.size() - 1}; }
  SegmentBatch segments() const { return {addresses.data(), sizes.data(), rows.data()}; }
  std::size_t count() const { return offsets.size() - 1; }
};

using Codes = std::vector<std::int64_t>;

/// A configuration with a group for each key; the names must outlive it.
inline PutConfig in_groups(const std::vector<std::string_view>& groups) {
  PutConfig config;
  config.groups = groups;
  return config;
}

inline Codes put(EmbeddedStore& store, const std::vector<std::string>& keys, const std::vector<Row>& rows,
                 const PutConfig& config = {}, const CallOptions& call = {}) {
  const Batch batch(keys, rows);
  std::vector<std::int32_t> codes(batch.count(), 99);
  store.put_from(batch.keys(), batch.segments(), config, call, codes.data());
  return {codes.begin(), codes.end()};
}

inline Codes upsert(EmbeddedStore& store, const std::vector<std::string>& keys, const std::vector<Row>& rows,
                    const PutConfig& config = {}, const CallOptions& call = {}) {
  const Batch batch(keys, rows);
  std::vector<std::int32_t> codes(batch.count(), 99);
  store.upsert_from(batch.keys(), batch.segments(), config, call, codes.data());
  return {codes.begin(), codes.end()};
}

inline Codes get(EmbeddedStore& store, const std::vector<std::string>& keys, const std::vector<Row>& rows,
                 const CallOptions& call = {}) {
  const Batch batch(keys, rows);
  Codes codes(batch.count(), 99);
  store.get_into(batch.keys(), batch.segments(), call, codes.data());
  return codes;
}

inline Codes exists(EmbeddedStore& store, const std::vector<std::string>& keys) {
  const Batch batch(keys);
  std::vector<std::int32_t> codes(batch.count(), 99);
  store.exists(batch.keys(), {}, codes.data());
  return {codes.begin(), codes.end()};
}

inline Codes size(EmbeddedStore& store, const std::vector<std::string>& keys) {
  const Batch batch(keys);
  Codes codes(batch.count(), 99);
  store.size(batch.keys(), {}, codes.data());
  return codes;
}

inline Codes remove(EmbeddedStore& store, const std::vector<std::string>& keys, bool force = false) {
  const Batch batch(keys);
  std::vector<std::int32_t> codes(batch.count(), 99);
  store.remove(batch.keys(), force, {}, codes.data());
  return {codes.begin(), codes.end()};
}

}  // namespace mooncake_kv::test
