#include "hash/sha256.h"

#include <cstring>

namespace mooncake_kv {
namespace {

struct Choice {
  Sha256Compress compress;
  const char* name;
};

Choice choose() {
  if (const Sha256Compress compress = sha256_detail::compress_x86()) return {compress, "sha-ni"};
  if (const Sha256Compress compress = sha256_detail::compress_arm64()) return {compress, "armv8"};
  return {sha256_detail::compress_portable, "portable"};
}

const Choice& choice(Sha256Path path) {
  static const Choice best = choose();
  static const Choice portable = {sha256_detail::compress_portable, "portable"};
  return path == Sha256Path::best ? best : portable;
}

}  // namespace

Sha256Compress sha256_compress(Sha256Path path) { return choice(path).compress; }
const char* sha256_path_name(Sha256Path path) { return choice(path).name; }

void sha256_in_place(Sha256Compress compress, std::uint8_t* message, std::size_t size, std::uint8_t* digest) {
  const std::size_t padded = sha256_padded_bytes(size);
  message[size] = 0x80;
  std::memset(message + size + 1, 0, padded - size - 1);
  const std::uint64_t bits = std::uint64_t{size} * 8;
  for (int i = 0; i < 8; i++) message[padded - 1 - i] = static_cast<std::uint8_t>(bits >> (8 * i));
  Sha256State state = sha256_initial;
  compress(state, message, padded / sha256_block_bytes);
  for (std::size_t i = 0; i < state.size(); i++)
    for (int byte = 0; byte < 4; byte++) digest[4 * i + byte] = static_cast<std::uint8_t>(state[i] >> (24 - 8 * byte));
}

}  // namespace mooncake_kv
