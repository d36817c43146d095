#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

namespace mooncake_kv {

/// Divides [0, capacity) into pieces, as a Mooncake segment does. An object of n bytes occupies n when n <= 16, else n
/// rounded up to a multiple of 2^(floor(log2 n) - 3); a free piece serves when it is at least that large. Free
/// neighbours are joined at once. Not thread-safe.
///
/// Free pieces wait in bins, one for each size that rounding can give, so that finding one takes constant time.
class SpaceAllocator {
 public:
  struct Piece {
    std::uint64_t offset;
    std::uint32_t node;  // what release() wants back
  };

  explicit SpaceAllocator(std::uint64_t capacity);

  /// Nothing when no free piece is large enough, or when size is 0. May throw std::bad_alloc.
  std::optional<Piece> allocate(std::uint64_t size);
  void release(std::uint32_t node) noexcept;

  std::uint64_t capacity() const { return capacity_; }
  /// Bytes that objects occupy, rounding included.
  std::uint64_t occupied() const { return occupied_; }

  /// What an object of `size` bytes occupies. Saturates instead of wrapping around.
  static std::uint64_t rounded(std::uint64_t size);

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  /// 16 exact bins, then 8 for each power of two from 2^4 to 2^63.
  static constexpr std::uint32_t bins = 16 + 60 * 8;

  struct Node {
    std::uint64_t offset;
    std::uint64_t size : 63;
    std::uint64_t free : 1;
    std::uint32_t left, right;     // neighbours in the segment
    std::uint32_t previous, next;  // in the bin; `next` also links spare nodes
  };

  /// The largest bin whose size is not above `size`.
  static std::uint32_t bin_of(std::uint64_t size);
  std::uint32_t first_bin_from(std::uint32_t bin) const;
  std::uint32_t make_node(std::uint64_t offset, std::uint64_t size);
  void drop_node(std::uint32_t node) noexcept;
  void add_free(std::uint32_t node) noexcept;
  void take_free(std::uint32_t node) noexcept;
  /// Makes `left` as large as itself and its right neighbour together.
  void join_right(std::uint32_t left) noexcept;

  std::uint64_t capacity_;
  std::uint64_t occupied_ = 0;
  std::deque<Node> nodes_;
  std::uint32_t spare_ = none;
  std::array<std::uint32_t, bins> heads_;
  std::array<std::uint64_t, (bins + 63) / 64> filled_{};
};

}  // namespace mooncake_kv
