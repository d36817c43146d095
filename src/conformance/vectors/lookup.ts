import { BlobBlockHashes } from "../../hash/blob-block-hashes.js";
import { LookupKeyClient } from "../../lookup/lookup-key-client.js";
import {
  decodeLookupResponse,
  encodeLookupResponse,
  LOOKUP_MSG,
  type MooncakeLookupResult,
  RESET_MSG,
  RESP_ERR,
  RESP_OK,
  TAIL_KEY_BOUNDARY_ENTRY_SIZE,
} from "../../lookup/lookup-protocol.js";
import { LookupResponder } from "../../lookup/lookup-responder.js";
import type { LookupTransport } from "../../lookup/lookup-transport.js";
import { lookupSocketPath } from "../../lookup/socket-path.js";
import { Deviation } from "./deviation.js";
import type { JsonObject, JsonValue, VectorContext, VectorHandlers } from "./handler.js";
import { bytes, hex, isObject, list, number, object, optionalText, text } from "./json.js";

function readResult(input: JsonObject): MooncakeLookupResult {
  return {
    hitLength: number(input, "hit_length"),
    tailKeyBoundaries: list<readonly [number, number]>(input, "tail_key_boundaries").map(
      ([groupId, numTokens]) => ({ groupId, numTokens }),
    ),
  };
}

function shownResult({ hitLength, tailKeyBoundaries }: MooncakeLookupResult): JsonObject {
  return {
    hit_length: hitLength,
    tail_key_boundaries: tailKeyBoundaries.map(({ groupId, numTokens }) => [groupId, numTokens]),
  };
}

/** A transport whose replies a vector gives. */
class ScriptedTransport implements LookupTransport {
  /** The request that waits for its reply. */
  waiting: { readonly frames: readonly string[]; readonly reply: (bytes: Uint8Array) => void } | undefined;

  request(frames: readonly Uint8Array[]): Promise<Uint8Array> {
    return new Promise((reply) => {
      this.waiting = { frames: frames.map(hex), reply };
    });
  }

  /** Answers the request that waits, and says what it was; null where none was sent. */
  async answer(reply: Uint8Array): Promise<string[] | null> {
    await settled();
    const { waiting } = this;
    this.waiting = undefined;
    waiting?.reply(reply);
    await settled();
    return waiting ? [...waiting.frames] : null;
  }

  close(): void {}
}

/** Lets everything that waits for promises only run to its end. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

async function clientLookup(input: JsonObject): Promise<JsonValue> {
  const transport = new ScriptedTransport();
  const client = new LookupKeyClient({ transport });
  const answer = client.lookup(
    "r",
    number(input, "num_tokens"),
    list<string>(input, "block_hashes").map(bytes),
  );
  const requestFrames = await transport.answer(bytes(text(input, "reply")));
  return { request_frames: requestFrames, result: shownResult(await answer) };
}

async function clientReset(input: JsonObject): Promise<JsonValue> {
  const transport = new ScriptedTransport();
  const answer = new LookupKeyClient({ transport }).reset();
  const requestFrames = await transport.answer(bytes(text(input, "reply")));
  return { request_frames: requestFrames, result: await answer };
}

async function clientTrace(input: JsonObject): Promise<JsonValue> {
  const transport = new ScriptedTransport();
  const client = new LookupKeyClient({ transport });
  const steps: JsonValue[] = [];
  for (const event of list<JsonObject>(input, "events")) {
    const step = await traceStep(client, transport, event);
    steps.push({ ...step, pending: [...client.pending].sort() });
  }
  return { steps };
}

async function traceStep(
  client: LookupKeyClient,
  transport: ScriptedTransport,
  event: JsonObject,
): Promise<JsonObject> {
  switch (text(event, "event")) {
    case "lookup": {
      const question = [
        text(event, "req_id"),
        number(event, "num_tokens"),
        list<string>(event, "block_hashes").map(bytes),
      ] as const;
      const answer =
        event["non_block"] === true ? client.lookupAsync(...question) : await client.lookup(...question);
      return { result: answer && shownResult(answer) };
    }
    case "server_reply":
      return { request_frames: await transport.answer(bytes(text(event, "bytes"))) };
    case "discard":
      client.discard(text(event, "req_id"));
      return {};
    default:
      throw new TypeError(`unknown event ${JSON.stringify(event)}`);
  }
}

/** What a server did with the frames of a vector. */
async function serve(input: JsonObject): Promise<{ reply: string; calls: JsonValue[]; problems: number }> {
  const calls: JsonValue[] = [];
  const problems: string[] = [];
  const responder = new LookupResponder(
    {
      lookup: (numTokens, blockHashes) => {
        const hashes = Array.from({ length: blockHashes.length }, (_, index) => hex(blockHashes.at(index)!));
        calls.push(["lookup", numTokens, hashes]);
        const raises = optionalText(input, "worker_raises");
        if (raises !== undefined) throw new Error(raises);
        return readResult(object(input, "worker_result"));
      },
      ...(input["has_send_thread"] === true && {
        drainSends: () => void calls.push(["send_queue_join"]),
      }),
      removeAll: () => {
        calls.push(["remove_all", { force: true }]);
        const raises = optionalText(input, "remove_all_raises");
        if (raises !== undefined) throw new Error(raises);
      },
    },
    { onProblem: ({ reason }) => problems.push(reason) },
  );
  const reply = hex(await responder.respond(list<string>(input, "request_frames").map(bytes)));
  return { reply, calls, problems: problems.length };
}

async function server(input: JsonObject, { recorded }: VectorContext): Promise<JsonValue | Deviation> {
  const { reply, calls, problems } = await serve(input);
  const then = recorded.expected;
  // Where vLLM's server thread died, no reply was ever sent; right is a miss that is counted.
  if (isObject(then) && then["reply_frames"] === null && then["server_thread_alive"] === false)
    return new Deviation(
      "lookup-death",
      { reply_frames: ["00000000"], worker_calls: then["worker_calls"] ?? null, problems: 1 },
      { reply_frames: [reply], worker_calls: calls, problems },
    );
  return { reply_frames: [reply], worker_calls: calls, server_thread_alive: true };
}

function blobView(input: JsonObject): JsonValue {
  const hashes = new BlobBlockHashes(bytes(text(input, "blob")), number(input, "hash_len"));
  const last = hashes.at(-1);
  return {
    len: hashes.length,
    items: hashes.toHex(),
    last: last ? hex(last) : null,
    slice_1: hashes.slice(1).toHex(),
  };
}

/** The ops of lookup_wire.jsonl. */
export const lookupHandlers: VectorHandlers = {
  socket_path: (input) => ({
    path: lookupSocketPath({
      rpcBasePath: text(input, "rpc_base_path"),
      hostname: text(input, "hostname"),
      dataParallelIndex: number(input, "data_parallel_index"),
      lookupRpcPort: object(input, "kv_connector_extra_config")["lookup_rpc_port"],
    }),
  }),
  encode_response: (input) => ({ bytes: hex(encodeLookupResponse(readResult(input))) }),
  decode_response: (input) => shownResult(decodeLookupResponse(bytes(text(input, "bytes")))),
  client_lookup: clientLookup,
  client_reset: clientReset,
  client_trace: clientTrace,
  server,
  blob_view: blobView,
  constants: () => ({
    LOOKUP_MSG: hex(LOOKUP_MSG),
    RESET_MSG: hex(RESET_MSG),
    RESP_OK: hex(RESP_OK),
    RESP_ERR: hex(RESP_ERR),
    TAIL_KEY_BOUNDARY_ENTRY_SIZE,
  }),
};
