#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mooncake_kv {

/// The eight words of a SHA-256 under way.
using Sha256State = std::array<std::uint32_t, 8>;

/// Feeds `blocks` times 64 bytes of padded message into the state.
using Sha256Compress = void (*)(Sha256State& state, const std::uint8_t* data, std::size_t blocks);

enum class Sha256Path {
  /// The fastest one that this processor has.
  best,
  /// Plain C++, for processors without the instructions, and for tests.
  portable,
};

Sha256Compress sha256_compress(Sha256Path path);
/// "sha-ni", "armv8" or "portable".
const char* sha256_path_name(Sha256Path path);

inline constexpr std::size_t sha256_bytes = 32;
inline constexpr std::size_t sha256_block_bytes = 64;
inline constexpr Sha256State sha256_initial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/// Bytes of a message of `size` bytes once padded.
constexpr std::size_t sha256_padded_bytes(std::size_t size) {
  return (size + 9 + sha256_block_bytes - 1) / sha256_block_bytes * sha256_block_bytes;
}

/// Digest of the `size` bytes at `message`, which are padded in place: the buffer must hold sha256_padded_bytes(size).
void sha256_in_place(Sha256Compress compress, std::uint8_t* message, std::size_t size, std::uint8_t* digest);

namespace sha256_detail {

/// The 64 round constants of FIPS 180-4.
extern const std::array<std::uint32_t, 64> round_constants;

void compress_portable(Sha256State& state, const std::uint8_t* data, std::size_t blocks);
/// Null where the processor, or the build, has no instructions for it.
Sha256Compress compress_x86();
Sha256Compress compress_arm64();

}  // namespace sha256_detail
}  // namespace mooncake_kv
