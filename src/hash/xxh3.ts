/** Digests serialised bytes: SHA-256, or XXH3-128 in its canonical big-endian form. */
export type Digest = (bytes: Uint8Array) => Uint8Array;

let loading: Promise<Digest> | undefined;

/**
 * XXH3-128 (seed 0), 16 bytes big-endian. The WebAssembly module is loaded once, on the first call; a load that fails is
 * tried again by the next call.
 */
export function loadXxh3(): Promise<Digest> {
  loading ??= load().catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

async function load(): Promise<Digest> {
  const { createXXHash128 } = await import("hash-wasm");
  const hasher = await createXXHash128();
  return (bytes) => hasher.init().update(bytes).digest("binary");
}
