import { connect } from "node:net";
import { describe } from "../../errors.js";
import { CODE } from "../shared/codes.js";
import type { Deadline } from "../shared/deadline.js";
import { DESCRIPTOR_LIMIT } from "./answer-limits.js";
import { ByteCollector } from "./byte-collector.js";
import { type Endpoint, formatEndpoint, isPort } from "./endpoint.js";
import { AdminFailure, deadlinePassed } from "./failure.js";
import { parseExactJson } from "./json.js";

/** Frame type of a metadata exchange. */
const METADATA = 1;

/** Bytes before the JSON of a frame. */
const HEAD = 9;

/** What we say about ourselves: nobody that could be read from. */
const OURSELVES = JSON.stringify({ name: "", protocol: "tcp", devices: [], buffers: [] });

/**
 * Asks the owner of a segment where its bytes are served, with the metadata exchange of Mooncake's peer-to-peer
 * handshake: a frame of u64 LE length (of all that follows), one type byte, JSON; the answer has the same form.
 *
 * @throws AdminFailure -800 when it can't be reached or does not answer as a TCP owner of today, -901 at the deadline,
 * -1012 for an owner that serves no TCP.
 */
export async function askDataEndpoint(owner: Endpoint, deadline: Deadline): Promise<Endpoint> {
  return readDescriptor(await exchange(owner, deadline), owner);
}

function exchange(owner: Endpoint, deadline: Deadline): Promise<Buffer> {
  const where = `the owner's handshake port ${formatEndpoint(owner)}`;
  return new Promise((resolve, reject) => {
    const socket = connect({ ...owner, noDelay: true });
    const fail = (error: AdminFailure): void => {
      stop();
      socket.destroy();
      reject(error);
    };
    const stop = deadline.whenExpired(() => {
      socket.destroy();
      reject(deadlinePassed(where, deadline.ms));
    });
    const received = new ByteCollector();
    socket.on("connect", () => socket.write(frame(OURSELVES)));
    socket.on("data", (chunk: Buffer) => {
      received.add(chunk);
      const body = answerBody(received.bytes);
      if (body === "odd")
        fail(new AdminFailure(CODE.TRANSFER_FAIL, `${where} does not speak Mooncake's handshake`));
      if (typeof body !== "object") return;
      stop();
      socket.destroy();
      resolve(body);
    });
    socket.on("error", (error) =>
      fail(new AdminFailure(CODE.TRANSFER_FAIL, `${where} can't be reached: ${error.message}`)),
    );
    socket.on("close", () => fail(new AdminFailure(CODE.TRANSFER_FAIL, `${where} closed the connection`)));
  });
}

function frame(json: string): Buffer {
  const body = Buffer.from(json);
  const bytes = Buffer.alloc(HEAD + body.length);
  bytes.writeBigUInt64LE(BigInt(body.length + 1), 0);
  bytes[8] = METADATA;
  body.copy(bytes, HEAD);
  return bytes;
}

/** The JSON of an answer that is complete. */
function answerBody(received: Buffer): Buffer | "incomplete" | "odd" {
  if (received.length < HEAD) return "incomplete";
  const length = received.readBigUInt64LE(0);
  if (length < 1n || length > DESCRIPTOR_LIMIT.bytes || received[8] !== METADATA) return "odd";
  const end = 8 + Number(length);
  return received.length < end ? "incomplete" : received.subarray(HEAD, end);
}

function readDescriptor(body: Buffer, owner: Endpoint): Endpoint {
  const where = `the segment descriptor of ${formatEndpoint(owner)}`;
  let descriptor: ReturnType<typeof parseExactJson>;
  try {
    descriptor = parseExactJson(body.toString("utf8"), DESCRIPTOR_LIMIT.values);
  } catch (error) {
    throw new AdminFailure(CODE.TRANSFER_FAIL, `${where} is no JSON: ${(error as Error).message}`);
  }
  if (!(descriptor instanceof Map)) throw new AdminFailure(CODE.TRANSFER_FAIL, `${where} is no object`);
  const protocol = descriptor.get("protocol");
  if (protocol !== "tcp")
    throw new AdminFailure(
      CODE.NOT_SUPPORTED,
      `${where} has protocol ${describe(protocol)}; only plain TCP can be read`,
    );
  const version = descriptor.get("tcp_proto_version");
  if (version !== 2n)
    throw new AdminFailure(
      CODE.NOT_SUPPORTED,
      `${where} has tcp_proto_version ${describe(version)}; only version 2, which acknowledges reads, can be read`,
    );
  const port = Number(descriptor.get("tcp_data_port"));
  if (!isPort(port))
    throw new AdminFailure(
      CODE.TRANSFER_FAIL,
      `${where} has tcp_data_port ${describe(descriptor.get("tcp_data_port"))}`,
    );
  const host = descriptor.get("tcp_data_host");
  return { host: typeof host === "string" && isHost(host) ? host : owner.host, port };
}

/** Whether a host can be connected to; owners that listen on every address may name none. */
function isHost(host: string): boolean {
  return host !== "" && host !== "0.0.0.0" && host !== "::" && !/[\s/]/.test(host);
}
