#include "store/space_allocator.h"

#include <bit>
#include <limits>
#include <new>

namespace mooncake_kv {

SpaceAllocator::SpaceAllocator(std::uint64_t capacity) : capacity_(capacity) {
  heads_.fill(none);
  if (capacity > 0) add_free(make_node(0, capacity));
}

std::uint64_t SpaceAllocator::rounded(std::uint64_t size) {
  if (size <= 16) return size;
  const std::uint64_t mask = (std::uint64_t{1} << (std::bit_width(size) - 4)) - 1;
  if (size > std::numeric_limits<std::uint64_t>::max() - mask) return std::numeric_limits<std::uint64_t>::max();
  return (size + mask) & ~mask;
}

std::uint32_t SpaceAllocator::bin_of(std::uint64_t size) {
  if (size < 16) return static_cast<std::uint32_t>(size);
  const std::uint32_t exponent = static_cast<std::uint32_t>(std::bit_width(size)) - 1;
  const std::uint32_t eighth = static_cast<std::uint32_t>(size >> (exponent - 3)) & 7;
  return 16 + (exponent - 4) * 8 + eighth;
}

std::uint32_t SpaceAllocator::first_bin_from(std::uint32_t bin) const {
  std::size_t word = bin / 64;
  std::uint64_t bits = filled_[word] & (~std::uint64_t{0} << (bin % 64));
  while (bits == 0) {
    if (++word == filled_.size()) return none;
    bits = filled_[word];
  }
  return static_cast<std::uint32_t>(word * 64) + static_cast<std::uint32_t>(std::countr_zero(bits));
}

std::optional<SpaceAllocator::Piece> SpaceAllocator::allocate(std::uint64_t size) {
  if (size == 0 || size > capacity_) return std::nullopt;
  // An object as large as the whole segment fits, although rounding may make it larger.
  const std::uint64_t needed = size == capacity_ ? size : rounded(size);
  // Every piece in the bin of a rounded size, and in later ones, is large enough.
  const std::uint32_t bin = first_bin_from(bin_of(needed));
  if (bin == none) return std::nullopt;
  const std::uint32_t node = heads_[bin];
  if (nodes_[node].size < needed) return std::nullopt;
  const std::uint64_t rest = nodes_[node].size - needed;
  const std::uint32_t right = rest > 0 ? make_node(nodes_[node].offset + needed, rest) : none;
  take_free(node);
  Node& taken = nodes_[node];
  if (right != none) {
    taken.size = needed;
    nodes_[right].left = node;
    nodes_[right].right = taken.right;
    if (taken.right != none) nodes_[taken.right].left = right;
    taken.right = right;
    add_free(right);
  }
  occupied_ += needed;
  return Piece{taken.offset, node};
}

void SpaceAllocator::release(std::uint32_t node) noexcept {
  occupied_ -= nodes_[node].size;
  const std::uint32_t left = nodes_[node].left;
  const std::uint32_t right = nodes_[node].right;
  if (right != none && nodes_[right].free) {
    take_free(right);
    join_right(node);
  }
  if (left != none && nodes_[left].free) {
    take_free(left);
    join_right(left);
    node = left;
  }
  add_free(node);
}

void SpaceAllocator::join_right(std::uint32_t left) noexcept {
  const std::uint32_t right = nodes_[left].right;
  nodes_[left].size += nodes_[right].size;
  nodes_[left].right = nodes_[right].right;
  if (nodes_[right].right != none) nodes_[nodes_[right].right].left = left;
  drop_node(right);
}

std::uint32_t SpaceAllocator::make_node(std::uint64_t offset, std::uint64_t size) {
  const Node fresh{offset, size, 0, none, none, none, none};
  if (spare_ != none) {
    const std::uint32_t node = spare_;
    spare_ = nodes_[node].next;
    nodes_[node] = fresh;
    return node;
  }
  if (nodes_.size() == none) throw std::bad_alloc();
  nodes_.push_back(fresh);
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

void SpaceAllocator::drop_node(std::uint32_t node) noexcept {
  nodes_[node].next = spare_;
  spare_ = node;
}

void SpaceAllocator::add_free(std::uint32_t node) noexcept {
  const std::uint32_t bin = bin_of(nodes_[node].size);
  nodes_[node].free = 1;
  nodes_[node].previous = none;
  nodes_[node].next = heads_[bin];
  if (heads_[bin] != none) nodes_[heads_[bin]].previous = node;
  heads_[bin] = node;
  filled_[bin / 64] |= std::uint64_t{1} << (bin % 64);
}

void SpaceAllocator::take_free(std::uint32_t node) noexcept {
  Node& taken = nodes_[node];
  const std::uint32_t bin = bin_of(taken.size);
  taken.free = 0;
  if (taken.previous != none) nodes_[taken.previous].next = taken.next;
  if (taken.next != none) nodes_[taken.next].previous = taken.previous;
  if (heads_[bin] != node) return;
  heads_[bin] = taken.next;
  if (taken.next == none) filled_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
}

}  // namespace mooncake_kv
