import {
  sidecarCodesCodec,
  sidecarExistsCodec,
  sidecarHealthCodec,
  sidecarRemoveAllCodec,
  sidecarRemoveByRegexCodec,
  sidecarRemoveCodec,
  sidecarReplicaListCodec,
  sidecarReplicasCodec,
  sidecarSizeCodec,
  sidecarSizesCodec,
} from "../../../generated/typescript/vllm-0.33/store-codecs.js";
import type { Deadline } from "../admin/deadline.js";
import type { ReplicaDescriptor } from "../replica.js";
import { int32, int64 } from "./columns.js";
import type { KeySource } from "./key-frames.js";
import type { KeyedCommands } from "./keyed-commands.js";
import { replicaRows } from "./replica-rows.js";
import type { Sidecar } from "./sidecar.js";
import { inLanes } from "./slices.js";

const RPC_TIMEOUT = -901;

/** Keys of one question about existence: small enough to run side by side, large enough to cost little each. */
const EXISTS_KEYS = 2_000;

/** Keys of one other command. */
const OTHER_KEYS = 1_000;

/** Commands of one call that are under way at a time. */
const LANES = 5;

/** The calls that move no bytes. */
export class KeyCalls {
  readonly #sidecar: Sidecar;
  readonly #commands: KeyedCommands;

  constructor(sidecar: Sidecar, commands: KeyedCommands) {
    this.#sidecar = sidecar;
    this.#commands = commands;
  }

  async exists(keys: KeySource, deadline: Deadline): Promise<Int32Array> {
    const codes = new Int32Array(keys.length).fill(RPC_TIMEOUT);
    await this.#sliced([sidecarExistsCodec.toBinary({})], keys, EXISTS_KEYS, deadline, (start, reply) => {
      codes.set(int32(sidecarCodesCodec.fromBinary(reply[0]!).codes), start);
    });
    return codes;
  }

  async size(keys: KeySource, deadline: Deadline): Promise<BigInt64Array> {
    const sizes = new BigInt64Array(keys.length).fill(BigInt(RPC_TIMEOUT));
    await this.#sliced([sidecarSizeCodec.toBinary({})], keys, OTHER_KEYS, deadline, (start, reply) => {
      sizes.set(int64(sidecarSizesCodec.fromBinary(reply[0]!).sizes), start);
    });
    return sizes;
  }

  async remove(keys: KeySource, force: boolean, deadline: Deadline): Promise<Int32Array> {
    const codes = new Int32Array(keys.length).fill(RPC_TIMEOUT);
    await this.#sliced(sidecarRemoveCodec.toBinary({ force }), keys, OTHER_KEYS, deadline, (start, reply) => {
      codes.set(int32(sidecarCodesCodec.fromBinary(reply[0]!).codes), start);
    });
    return codes;
  }

  async replicas(
    keys: KeySource,
    deadline: Deadline,
  ): Promise<{ readonly codes: Int32Array; readonly replicas: ReplicaDescriptor[][] }> {
    const count = keys.length;
    const codes = new Int32Array(count).fill(RPC_TIMEOUT);
    const replicas = Array.from({ length: count }, (): ReplicaDescriptor[] => []);
    await this.#sliced([sidecarReplicasCodec.toBinary({})], keys, OTHER_KEYS, deadline, (start, reply) => {
      const list = sidecarReplicaListCodec.fromBinary(reply);
      codes.set(int32(list.codes), start);
      for (const [index, row] of replicaRows(list).entries()) replicas[start + index] = row;
    });
    return { codes, replicas };
  }

  removeByRegex(pattern: string, force: boolean, deadline: Deadline): Promise<number> {
    return this.#number(
      sidecarRemoveByRegexCodec.toBinary({ force, pattern: Buffer.from(pattern) }),
      deadline,
    );
  }

  removeAll(force: boolean, deadline: Deadline): Promise<number> {
    return this.#number(sidecarRemoveAllCodec.toBinary({ force }), deadline);
  }

  async clientHealth(deadline: Deadline): Promise<number> {
    const { reply } = await this.#sidecar.command([sidecarHealthCodec.toBinary({})], deadline);
    return reply ? int32(sidecarCodesCodec.fromBinary(reply[0]!).codes)[0]! : RPC_TIMEOUT;
  }

  /** A command that is answered by one number. */
  async #number(command: readonly Uint8Array[], deadline: Deadline): Promise<number> {
    const { reply } = await this.#sidecar.command(command, deadline);
    return reply ? Number(int64(sidecarSizesCodec.fromBinary(reply[0]!).sizes)[0]) : RPC_TIMEOUT;
  }

  async #sliced(
    command: readonly Uint8Array[],
    keys: KeySource,
    most: number,
    deadline: Deadline,
    answer: (start: number, reply: Uint8Array[]) => void,
  ): Promise<void> {
    const count = keys.length;
    const jobs: (() => Promise<void>)[] = [];
    for (let start = 0; start < count; start += most)
      jobs.push(async () => {
        const some = keys.range(start, Math.min(count, start + most));
        const { reply } = await this.#commands.run(command, some, [], deadline, "none");
        if (reply) answer(start, reply);
      });
    await inLanes(jobs, LANES);
  }
}
