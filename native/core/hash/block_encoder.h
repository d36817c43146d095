#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mooncake_kv {

/// How vLLM serialises the triple (parent hash, token ids, extra keys) before it hashes it.
enum class BlockFormat {
  /// Python's pickle, protocol 5.
  pickle,
  /// Canonical CBOR.
  cbor,
};

struct BlockView {
  /// 32 bytes.
  const std::uint8_t* parent;
  std::span<const std::uint32_t> tokens;
  /// The third element as it is encoded in this format; empty stands for None.
  std::span<const std::uint8_t> extras;
};

/// Python cuts a pickle of about 64 KiB and more into several frames. Those are not built here: an encoding of this
/// size or more is not what Python would give.
inline constexpr std::size_t largest_pickle_encoding = 60000;

/// An upper bound of the bytes that encode_block writes. Blocks and extras are memory already, so it can't overflow.
std::size_t encoded_bytes_at_most(std::size_t tokens, std::size_t extras);

/// Writes the encoding and returns its size. `out` must hold encoded_bytes_at_most bytes.
std::size_t encode_block(BlockFormat format, const BlockView& block, std::uint8_t* out);

}  // namespace mooncake_kv
