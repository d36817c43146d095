import type { Digest } from "./digest.js";

let loading: Promise<Digest> | undefined;

/** XXH3-128 (seed 0), 16 bytes big-endian. The WebAssembly module is loaded once, on the first call. */
export function loadXxh3(): Promise<Digest> {
  loading ??= import("hash-wasm").then(async ({ createXXHash128 }) => {
    const hasher = await createXXHash128();
    return (bytes) => hasher.init().update(bytes).digest("binary");
  });
  return loading;
}
