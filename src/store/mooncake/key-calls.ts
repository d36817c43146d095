import {
  sidecarExistsCodec,
  sidecarHealthCodec,
  sidecarRemoveAllCodec,
  sidecarRemoveByRegexCodec,
  sidecarRemoveCodec,
  sidecarReplicasCodec,
  sidecarSizeCodec,
} from "../../../generated/typescript/vllm-0.33/store-codecs.js";
import type { ReplicaAnswer } from "../shared/answers.js";
import { CODE } from "../shared/codes.js";
import type { Deadline } from "../shared/deadline.js";
import type { KeySource } from "../shared/keys.js";
import { inLanes } from "../shared/lanes.js";
import type { ReplicaDescriptor } from "../shared/replica.js";
import type { KeyedCommands } from "./keyed-commands.js";
import { codesReply, type ReplyReader, replicasReply, sizesReply } from "./replies.js";
import type { Sidecar } from "./sidecar.js";

/** Keys of one question about existence: small enough to run side by side, large enough to cost little each. */
const EXISTS_KEYS = 2_000;

/** Keys of one other command. */
const OTHER_KEYS = 1_000;

/** Commands of one call that are under way at a time. */
const LANES = 5;

/** The largest answer of `exists`. */
const FOUND = 1;

/** The calls that move no bytes. */
export class KeyCalls {
  readonly #sidecar: Sidecar;
  readonly #commands: KeyedCommands;

  constructor(sidecar: Sidecar, commands: KeyedCommands) {
    this.#sidecar = sidecar;
    this.#commands = commands;
  }

  async exists(keys: KeySource, deadline: Deadline): Promise<Int32Array> {
    const codes = new Int32Array(keys.length).fill(CODE.RPC_TIMEOUT);
    const reply = (count: number) => codesReply(count, FOUND);
    await this.#sliced(
      [sidecarExistsCodec.toBinary({})],
      keys,
      EXISTS_KEYS,
      reply,
      deadline,
      (start, found) => codes.set(found, start),
    );
    return codes;
  }

  async size(keys: KeySource, deadline: Deadline): Promise<BigInt64Array> {
    const sizes = new BigInt64Array(keys.length).fill(BigInt(CODE.RPC_TIMEOUT));
    await this.#sliced(
      [sidecarSizeCodec.toBinary({})],
      keys,
      OTHER_KEYS,
      sizesReply,
      deadline,
      (start, found) => sizes.set(found, start),
    );
    return sizes;
  }

  async remove(keys: KeySource, force: boolean, deadline: Deadline): Promise<Int32Array> {
    const codes = new Int32Array(keys.length).fill(CODE.RPC_TIMEOUT);
    const reply = (count: number) => codesReply(count, CODE.OK);
    await this.#sliced(
      sidecarRemoveCodec.toBinary({ force }),
      keys,
      OTHER_KEYS,
      reply,
      deadline,
      (start, found) => codes.set(found, start),
    );
    return codes;
  }

  async replicas(keys: KeySource, deadline: Deadline): Promise<ReplicaAnswer> {
    const codes = new Int32Array(keys.length).fill(CODE.RPC_TIMEOUT);
    const replicas = Array.from({ length: keys.length }, (): readonly ReplicaDescriptor[] => []);
    await this.#sliced(
      [sidecarReplicasCodec.toBinary({})],
      keys,
      OTHER_KEYS,
      replicasReply,
      deadline,
      (start, found) => {
        codes.set(found.codes, start);
        for (const [index, row] of found.replicas.entries()) replicas[start + index] = row;
      },
    );
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
    const command = [sidecarHealthCodec.toBinary({})];
    const { reply } = await this.#sidecar.command(command, codesReply(1, 2), deadline);
    return reply?.[0] ?? CODE.RPC_TIMEOUT;
  }

  /** A command that is answered by one number. */
  async #number(command: readonly Uint8Array[], deadline: Deadline): Promise<number> {
    const { reply } = await this.#sidecar.command(command, sizesReply(1), deadline);
    return reply ? Number(reply[0]) : CODE.RPC_TIMEOUT;
  }

  async #sliced<T>(
    head: readonly Uint8Array[],
    keys: KeySource,
    most: number,
    reply: (count: number) => ReplyReader<T>,
    deadline: Deadline,
    answer: (start: number, reply: T) => void,
  ): Promise<void> {
    const starts = Array.from({ length: Math.ceil(keys.length / most) }, (_, slice) => slice * most);
    await inLanes(starts, Math.min(LANES, starts.length), async (start) => {
      const end = Math.min(keys.length, start + most);
      const command = { head, keys: keys.range(start, end), reply: reply(end - start) };
      const outcome = await this.#commands.run(command, deadline);
      if (outcome.reply !== undefined) answer(start, outcome.reply);
    });
  }
}
