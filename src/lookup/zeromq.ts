import { configError } from "./errors.js";

/** The module of the optional package zeromq. */
export type ZeroMq = typeof import("zeromq");

let loaded: Promise<ZeroMq> | undefined;

/**
 * Loads the optional package zeromq, once and not before it is needed.
 *
 * @throws MooncakeKvError `ERR_CONFIG` where it is not installed, or its binary does not run here.
 */
export async function loadZeroMq(): Promise<ZeroMq> {
  loaded ??= import("zeromq").catch((cause: unknown) => {
    loaded = undefined;
    const absent = (cause as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND";
    throw configError(
      absent
        ? "ZeroMQ sockets need the optional package zeromq: npm install zeromq"
        : `the package zeromq does not load here (${(cause as Error).message}); npm rebuild zeromq may mend it`,
      { package: "zeromq" },
      { cause },
    );
  });
  return loaded;
}

/** Frames in memory of their own type: zeromq gives Buffers, which print and slice differently. */
export function plainFrames(frames: readonly Uint8Array[]): Uint8Array[] {
  return frames.map((frame) => new Uint8Array(frame.buffer, frame.byteOffset, frame.byteLength));
}
