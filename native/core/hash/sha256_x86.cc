#include "hash/sha256.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))

#include <cpuid.h>
#include <immintrin.h>

namespace mooncake_kv::sha256_detail {
namespace {

#define MOONCAKE_KV_SHA __attribute__((target("sha,ssse3,sse4.1")))

MOONCAKE_KV_SHA __m128i load(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
MOONCAKE_KV_SHA void store(void* to, __m128i value) { _mm_storeu_si128(static_cast<__m128i*>(to), value); }

// The instructions keep the state as the lanes (f, e, b, a) and (h, g, d, c), lowest first.
MOONCAKE_KV_SHA void compress(Sha256State& state, const std::uint8_t* data, std::size_t blocks) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i dcba = load(&state[0]);
  const __m128i hgfe = load(&state[4]);
  const __m128i badc = _mm_shuffle_epi32(dcba, 0xb1);
  const __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);
  __m128i abef = _mm_alignr_epi8(badc, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, badc, 0xf0);

  for (; blocks > 0; blocks--, data += sha256_block_bytes) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i w[4];  // the latest 16 words of the message schedule
    for (int i = 0; i < 4; i++) w[i] = _mm_shuffle_epi8(load(data + 16 * i), swap);
#pragma GCC unroll 16
    for (int group = 0; group < 16; group++) {
      __m128i& current = w[group % 4];
      const __m128i sum = _mm_add_epi32(current, load(&round_constants[4 * group]));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      if (group >= 12) continue;
      const __m128i next = w[(group + 1) % 4];
      const __m128i last = w[(group + 3) % 4];
      const __m128i seven_back = _mm_alignr_epi8(last, w[(group + 2) % 4], 4);
      current = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(current, next), seven_back), last);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }

  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  store(&state[0], _mm_blend_epi16(feba, dchg, 0xf0));
  store(&state[4], _mm_alignr_epi8(dchg, feba, 8));
}

}  // namespace

Sha256Compress compress_x86() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return nullptr;
  if ((c & bit_SSSE3) == 0 || (c & bit_SSE4_1) == 0) return nullptr;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return nullptr;
  return (b & (1u << 29)) != 0 ? compress : nullptr;  // CPUID.7.0:EBX.SHA
}

}  // namespace mooncake_kv::sha256_detail

#else

namespace mooncake_kv::sha256_detail {
Sha256Compress compress_x86() { return nullptr; }
}  // namespace mooncake_kv::sha256_detail

#endif
