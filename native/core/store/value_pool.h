#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "memory/mapping.h"
#include "store/space_allocator.h"

namespace mooncake_kv {

/// The memory of a store's values: one mapping, divided by a SpaceAllocator, with the count of what is used.
/// Thread-safe.
class ValuePool {
 public:
  /// Where one value lies.
  struct Slot {
    std::uint8_t* bytes;
    std::uint64_t size;
    std::uint32_t node;
  };
  struct Usage {
    std::uint64_t capacity;
    /// Bytes that were asked for: what Mooncake reports as used.
    std::uint64_t used;
    /// Bytes taken, rounding included.
    std::uint64_t occupied;
  };

  /// Throws what Mapping throws. A pool of no bytes has room for nothing.
  explicit ValuePool(std::uint64_t capacity);

  /// Nothing when there is no room.
  std::optional<Slot> allocate(std::uint64_t size);
  void release(const Slot& slot) noexcept;
  Usage usage() const;
  /// The first byte; a slot lies at a fixed distance from it.
  const std::uint8_t* base() const { return mapping_ ? mapping_->data() : nullptr; }

 private:
  std::optional<Mapping> mapping_;
  mutable std::mutex mutex_;
  SpaceAllocator space_;
  std::uint64_t used_ = 0;
};

}  // namespace mooncake_kv
