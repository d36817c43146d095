#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mooncake_c/staging.h"

namespace mooncake_kv::mooncake_c {

/// Some of the values of a call, as many as fit into the staging memory at a time and as one call of the library may
/// carry: where each lies there, and the arrays that the library takes.
class StagedBatch {
 public:
  StagedBatch(std::uint64_t capacity, std::uint64_t most_transfers) : capacity_(capacity), most_transfers_(most_transfers) {}

  /// False when the batch is full; the first value always fits.
  bool add(std::size_t item, const char* key, std::uint64_t bytes);

  bool empty() const { return items_.empty(); }
  std::size_t count() const { return items_.size(); }
  /// Staging memory that the batch needs.
  std::uint64_t bytes() const { return end_; }
  std::size_t item(std::size_t i) const { return items_[i]; }
  std::uint8_t* place(std::uint8_t* staging, std::size_t i) const { return staging + offsets_[i]; }

  /// For the library, once the staging memory is there.
  const char** keys() { return keys_.data(); }
  void** buffers(std::uint8_t* staging);
  const std::size_t* sizes() const { return sizes_.data(); }

  void clear();

 private:
  const std::uint64_t capacity_;
  const std::uint64_t most_transfers_;
  std::vector<std::size_t> items_;
  std::vector<const char*> keys_;
  std::vector<std::uint64_t> offsets_;
  std::vector<std::size_t> sizes_;
  std::vector<void*> buffers_;
  std::uint64_t end_ = 0;
  std::uint64_t transfers_ = 0;
};

}  // namespace mooncake_kv::mooncake_c
