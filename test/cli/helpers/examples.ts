// Worked examples that were computed by vLLM: PYTHONHASHSEED=0, two blocks each.

/** Block size 16, tokens 0 to 31, nothing else. */
export const E1 = {
  tokens: Array.from({ length: 32 }, (_, token) => token) as readonly number[],
  sha256: [
    "6358e31578a64b75ebe28cdb99d3beae65de82a2087321dc6ec84ae048faaaa6",
    "3c3c50f324aefbdfbb124dfdc541efac3e94e59c40f4be08afe70601eeca92c8",
  ],
  sha256Cbor: [
    "d830de3d42c00f25a2949b5d12d98642664a44872c1614c5b0147556276afc9c",
    "fedd9e4abebebbe6f6cf96b682f08d316063fe2f22a5c552192dd62904fcccac",
  ],
  xxhash: ["8ef953407c0da43eacbb3639ed2bff4d", "5a51cc5ac3a4b1f7d5efd012fb00201a"],
  xxhashCbor: ["209f5d549fc07c8e39d823615ede61ce", "03888914ee75b87e89df867a21beb72b"],
  /** sha256 without PYTHONHASHSEED. */
  defaultSeed: [
    "fe8fa5dda3210d0ca2031e37cbe3b001186773cd1c710beb2d45fcb51d434798",
    "8be7aaa33831156d316f1f463ae57e643deb63f42e633e2d631df88815cc4629",
  ],
  /** sha256's root. */
  noneHash: "1973e23848344dc43a988a9b478663803cfffe1243480253f9a3cf004b14aa7c",
  defaultNoneHash: "066b1e8987e027138e98701c46128929378935f9b6cd1549105ae6b4f0d71198",
} as const;

/** Block size 4, tokens 10 to 17, LoRA `my-lora`, cache salt `tenant-a`; sha256, untagged keys as vllm-0.27 has them. */
export const E3 = {
  tokens: Array.from({ length: 8 }, (_, index) => 10 + index) as readonly number[],
  sha256: [
    "c733a434ceffc5a91f91ca2e189e6b7eff095979010ce3005fdd08f8f37b229a",
    "d04e4556082b0a9e579e47abb5e9c1baf4562cc58fe7d55754ba83fdbf870b33",
  ],
} as const;

/** Block size 8, tokens 100 to 115, one image `imghash0123` at offset 5 with length 10; sha256, untagged. */
export const E4 = {
  tokens: Array.from({ length: 16 }, (_, index) => 100 + index) as readonly number[],
  sha256: [
    "a9cd20a85fe1ddb3e5402501a40fe309bf58faaa846d60a47561e2d82f360931",
    "d21a4a16d168b90d8356d5e449594af2481fd7054f9bf13919316ea69f2b89b8",
  ],
} as const;
