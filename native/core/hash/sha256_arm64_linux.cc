#include "hash/sha256.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <sys/auxv.h>

#ifndef HWCAP_SHA2
#define HWCAP_SHA2 (1 << 6)
#endif

namespace mooncake_kv::sha256_detail {
namespace {

#if defined(__clang__)
#define MOONCAKE_KV_SHA __attribute__((target("sha2")))
#else
#define MOONCAKE_KV_SHA __attribute__((target("+crypto")))
#endif

MOONCAKE_KV_SHA void compress(Sha256State& state, const std::uint8_t* data, std::size_t blocks) {
  uint32x4_t abcd = vld1q_u32(&state[0]);
  uint32x4_t efgh = vld1q_u32(&state[4]);
  for (; blocks > 0; blocks--, data += sha256_block_bytes) {
    const uint32x4_t abcd_before = abcd;
    const uint32x4_t efgh_before = efgh;
    uint32x4_t w[4];  // the latest 16 words of the message schedule
    for (int i = 0; i < 4; i++) w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data + 16 * i)));
#pragma GCC unroll 16
    for (int group = 0; group < 16; group++) {
      uint32x4_t& current = w[group % 4];
      const uint32x4_t sum = vaddq_u32(current, vld1q_u32(&round_constants[4 * group]));
      const uint32x4_t abcd_now = abcd;
      abcd = vsha256hq_u32(abcd, efgh, sum);
      efgh = vsha256h2q_u32(efgh, abcd_now, sum);
      if (group >= 12) continue;
      current = vsha256su1q_u32(vsha256su0q_u32(current, w[(group + 1) % 4]), w[(group + 2) % 4], w[(group + 3) % 4]);
    }
    abcd = vaddq_u32(abcd, abcd_before);
    efgh = vaddq_u32(efgh, efgh_before);
  }
  vst1q_u32(&state[0], abcd);
  vst1q_u32(&state[4], efgh);
}

}  // namespace

Sha256Compress compress_arm64() { return (getauxval(AT_HWCAP) & HWCAP_SHA2) != 0 ? compress : nullptr; }

}  // namespace mooncake_kv::sha256_detail

#else

namespace mooncake_kv::sha256_detail {
Sha256Compress compress_arm64() { return nullptr; }
}  // namespace mooncake_kv::sha256_detail

#endif
