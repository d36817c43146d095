// The plumbing of an HTTP proxy: a bounded body, a request passed on, and its answer passed back as it comes.
import { Agent, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";

/** Bytes of a request's body, and of an answer that is read as a whole. */
export const LONGEST_BODY: number = 16 << 20;

/** Milliseconds for a connection to an engine. */
const CONNECT_MS = 3_000;

/** Milliseconds that an engine may be silent, before and within an answer: a long one may take minutes to begin. */
const SILENCE_MS = 600_000;

// One connection a request: an engine may close an idle one at the moment when the next request is sent over it, and that
// would look as if the engine were gone.
const agent = new Agent({ keepAlive: false });

/** Headers for the next hop only, besides those that `connection` names. */
const HOP_BY_HOP = [
  "connection",
  "expect",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

type Headers = IncomingMessage["headers"];

/** Headers that are meant for the other end. */
function endToEnd(headers: Headers): Headers {
  const named = (headers.connection ?? "").toLowerCase().split(/\s*,\s*/);
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name) && !named.includes(name)),
  );
}

/** A message's body; undefined where it is too long. All of it is read, so that the other side gets to read the answer. */
export async function bodyOf(message: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= LONGEST_BODY) chunks.push(chunk);
    else chunks.length = 0;
  }
  return length <= LONGEST_BODY ? Buffer.concat(chunks) : undefined;
}

/** What is sent to an engine. */
export interface Outgoing {
  readonly method: string;
  /** Path and query, behind the engine's address. */
  readonly path: string;
  readonly headers: Headers;
  readonly body: Buffer;
  /** Ends everything: the client is gone, or time is up. */
  readonly signal: AbortSignal;
}

/** Sends a request to an engine. @returns the beginning of its answer. */
export function send(
  url: string,
  { method, path, headers, body, signal }: Outgoing,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // The path is appended, not resolved: one that begins with two slashes would lead to another host.
    const outgoing = httpRequest(`${url.replace(/\/+$/, "")}${path}`, {
      agent,
      method,
      headers: { ...endToEnd(headers), "content-length": body.length },
      signal,
      timeout: CONNECT_MS,
    });
    outgoing.once("socket", (socket) => socket.once("connect", () => socket.setTimeout(SILENCE_MS)));
    outgoing.once("timeout", () => outgoing.destroy(new Error("it is silent for too long")));
    outgoing.on("error", reject).once("response", resolve);
    outgoing.end(body);
  });
}

/** Whether a request may have broken the engine that failed: it had been sent already. */
export function mayHaveBroken(error: unknown): boolean {
  return ["ECONNRESET", "EPIPE"].includes((error as NodeJS.ErrnoException).code ?? "");
}

/** Passes an engine's answer back, no faster than the client reads. */
export async function passBack(
  reply: IncomingMessage,
  response: ServerResponse,
  more: Readonly<Record<string, string>>,
): Promise<void> {
  response.writeHead(reply.statusCode ?? 502, { ...endToEnd(reply.headers), ...more });
  await pipeline(reply, response);
}

/** Answers with JSON of the proxy's own. */
export function answer(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

/** Answers with an error, in the form that clients of OpenAI's API know. */
export function refuse(response: ServerResponse, status: number, message: string): void {
  answer(response, status, { error: { message, type: "proxy_error", code: status } });
}
