#include "hash/block_hash.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace mooncake_kv {
namespace {

/// The number of blocks, once everything is known to fit.
std::size_t checked_blocks(const BlockChain& chain) {
  if (chain.parent.size() != sha256_bytes)
    throw std::invalid_argument("the parent hash has " + std::to_string(chain.parent.size()) + " bytes; 32 are needed");
  if (chain.block_size == 0) throw std::invalid_argument("the block size is 0; a block needs at least one token");
  if (chain.tokens.size() % chain.block_size != 0)
    throw std::invalid_argument(std::to_string(chain.tokens.size()) + " tokens are not a whole number of blocks of " +
                                std::to_string(chain.block_size));
  const std::size_t blocks = chain.tokens.size() / chain.block_size;
  if (chain.extra_ends.empty()) {
    if (!chain.extras.empty()) throw std::invalid_argument("extras without extraEnds: which block they belong to is unknown");
    return blocks;
  }
  if (chain.extra_ends.size() != blocks)
    throw std::invalid_argument(std::to_string(chain.extra_ends.size()) + " extraEnds for " + std::to_string(blocks) + " blocks");
  if (!std::ranges::is_sorted(chain.extra_ends) || chain.extra_ends.back() != chain.extras.size())
    throw std::invalid_argument("extraEnds must never fall, and end at the " + std::to_string(chain.extras.size()) + " bytes of extras");
  return blocks;
}

std::size_t largest_extras(const BlockChain& chain) {
  std::size_t largest = 0;
  std::uint32_t start = 0;
  for (const std::uint32_t end : chain.extra_ends) {
    largest = std::max<std::size_t>(largest, end - start);
    start = end;
  }
  return largest;
}

}  // namespace

std::vector<std::uint8_t> hash_chain(const BlockChain& chain, Sha256Path path) {
  const std::size_t blocks = checked_blocks(chain);
  std::vector<std::uint8_t> hashes(blocks * sha256_bytes);
  if (blocks == 0) return hashes;
  const std::size_t room = encoded_bytes_at_most(chain.block_size, largest_extras(chain));
  std::vector<std::uint8_t> message(sha256_padded_bytes(room));
  const Sha256Compress compress = sha256_compress(path);
  const std::uint8_t* parent = chain.parent.data();
  std::uint32_t extras_start = 0;
  for (std::size_t i = 0; i < blocks; i++) {
    const std::uint32_t extras_end = chain.extra_ends.empty() ? 0 : chain.extra_ends[i];
    const BlockView block{parent, chain.tokens.subspan(i * chain.block_size, chain.block_size),
                          chain.extras.subspan(extras_start, extras_end - extras_start)};
    extras_start = extras_end;
    std::uint8_t* const hash = hashes.data() + i * sha256_bytes;
    const std::size_t size = encode_block(chain.format, block, message.data());
    if (chain.format == BlockFormat::pickle && size >= largest_pickle_encoding)
      throw std::length_error("block " + std::to_string(i) + " has " + std::to_string(size) + " bytes as a pickle; below " +
                              std::to_string(largest_pickle_encoding) + " is possible here");
    sha256_in_place(compress, message.data(), size, hash);
    parent = hash;
  }
  return hashes;
}

}  // namespace mooncake_kv
