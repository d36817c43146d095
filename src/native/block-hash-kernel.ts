import { MooncakeKvError } from "../errors.js";
import type { Addon } from "./addon.js";
import { loadNative } from "./load.js";

/** A chain of token blocks whose SHA-256 hashes are wanted. */
export interface BlockHashInput {
  /** How vLLM serialises a block: pickle for `sha256`, canonical CBOR for `sha256_cbor`. */
  readonly format: "pickle" | "cbor";
  /** The hash before the first block: 32 bytes. */
  readonly parent: Uint8Array;
  /** Whole blocks of token ids, one behind another. */
  readonly tokens: Uint32Array;
  /** Tokens of a block. */
  readonly blockSize: number;
  /** The extra keys of all blocks as they are encoded in `format`, one behind another. */
  readonly extras?: Uint8Array | undefined;
  /** Where the extra keys of each block end in `extras`; a block without bytes has none. */
  readonly extraEnds?: Uint32Array | undefined;
}

/** Hashes token blocks in native code. */
export interface NativeBlockHashKernel {
  /**
   * 32 bytes a block.
   *
   * @throws MooncakeKvError `ERR_NATIVE` when the shapes do not fit together, or when a block needs 60,000 bytes or
   * more as a pickle (Python would cut it into frames).
   */
  hashChain(input: BlockHashInput): Uint8Array;
  /** `hashChain` off the event loop; it rejects where that throws. */
  hashChainAsync(input: BlockHashInput): Promise<Uint8Array>;
}

/**
 * The native kernel for block hashes.
 *
 * @throws MooncakeKvError `ERR_NATIVE` when the addon can't be loaded.
 */
export function nativeBlockHashKernel(
  options: { portable?: boolean | undefined } = {},
): NativeBlockHashKernel {
  const addon = loadNative();
  const portable = options.portable ?? false;
  return {
    hashChain(input: BlockHashInput): Uint8Array {
      try {
        return addon.hashChain(...kernelArguments(input, portable));
      } catch (error) {
        throw kernelError(error);
      }
    },
    async hashChainAsync(input: BlockHashInput): Promise<Uint8Array> {
      try {
        return await addon.hashChainAsync(...kernelArguments(input, portable));
      } catch (error) {
        throw kernelError(error);
      }
    },
  };
}

function kernelArguments(input: BlockHashInput, portable: boolean): Parameters<Addon["hashChain"]> {
  const { format, parent, tokens, blockSize, extras, extraEnds } = input;
  return [format, parent, tokens, blockSize, extras, extraEnds, portable];
}

function kernelError(error: unknown): MooncakeKvError {
  const message = error instanceof Error ? error.message : String(error);
  return new MooncakeKvError("ERR_NATIVE", `block hash kernel: ${message}`, {}, { cause: error });
}
