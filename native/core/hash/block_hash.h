#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hash/block_encoder.h"
#include "hash/sha256.h"

namespace mooncake_kv {

/// A chain of token blocks. The hash of each block is the parent of the next.
struct BlockChain {
  BlockFormat format;
  /// 32 bytes: the parent of the first block.
  std::span<const std::uint8_t> parent;
  /// Whole blocks, one behind another.
  std::span<const std::uint32_t> tokens;
  std::size_t block_size;
  /// The encoded extra keys of all blocks, one behind another; those of block i end at extra_ends[i]. Both may be
  /// empty: no block has any. A block without bytes has None.
  std::span<const std::uint8_t> extras;
  std::span<const std::uint32_t> extra_ends;
};

/// The SHA-256 of each block, 32 bytes each. Throws std::invalid_argument for shapes that don't fit together, and
/// std::length_error when a block needs largest_pickle_encoding bytes or more as a pickle.
std::vector<std::uint8_t> hash_chain(const BlockChain& chain, Sha256Path path = Sha256Path::best);

}  // namespace mooncake_kv
