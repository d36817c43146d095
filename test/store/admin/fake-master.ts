import { createServer, type Server, type Socket } from "node:net";

/** A request, with the exact bytes of its target, one character a byte. */
export interface Request {
  readonly method: string;
  readonly path: string;
}

/** What the server does with a request: an answer, bytes to send as they are, or nothing at all. */
export type Answer =
  | { readonly status: number; readonly body: string | Uint8Array }
  | { readonly raw: Uint8Array; readonly end?: boolean }
  | "silence"
  | "hang up";

/** An HTTP server of which tests decide every byte. */
export interface FakeMaster {
  readonly url: string;
  readonly requests: Request[];
  /** Connections that were made. */
  connections(): number;
  /** Those of them that are open. */
  open(): number;
  close(): Promise<void>;
}

/** Starts one on a free port of 127.0.0.1. Requests have no body. */
export async function fakeMaster(
  answer: (request: Request) => Answer | Promise<Answer>,
): Promise<FakeMaster> {
  const requests: Request[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    sockets.add(socket);
    socket.setNoDelay();
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    let head = "";
    socket.on("data", async (chunk: Buffer) => {
      head += chunk.toString("latin1");
      for (let end = head.indexOf("\r\n\r\n"); end >= 0; end = head.indexOf("\r\n\r\n")) {
        const [method = "", path = ""] = head.slice(0, head.indexOf("\r\n")).split(" ");
        head = head.slice(end + 4);
        requests.push({ method, path });
        send(socket, await answer({ method, path }));
      }
    });
  });
  await listen(server);
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no TCP address");
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    connections: () => connections,
    open: () => sockets.size,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function send(socket: Socket, answer: Answer): void {
  if (answer === "silence") return;
  if (answer === "hang up") {
    socket.destroy();
    return;
  }
  if ("raw" in answer) {
    socket.write(answer.raw);
    if (answer.end) socket.end();
    return;
  }
  const body = Buffer.from(answer.body);
  socket.write(
    `HTTP/1.1 ${answer.status} Recorded\r\nServer: cinatra\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  socket.write(body);
}

/** Listens on a free port of 127.0.0.1. */
export function listen(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
}

/** The answer of `/query_key` for replicas. */
export function keyAnswer(
  replicas: readonly { size: bigint; address: bigint; endpoint: string; protocol?: string }[],
): Answer {
  const data = replicas.map(
    ({ size, address, endpoint, protocol = "tcp" }) =>
      `{"size_":${size},"buffer_address_":${address},"protocol_":${JSON.stringify(protocol)},"transport_endpoint_":${JSON.stringify(endpoint)}}`,
  );
  return { status: 200, body: `{"success":true,"data":[${data.join(",")}]}` };
}

/** The answer of `/query_key` for an error. */
export function keyError(code: number, message: string): Answer {
  return {
    status: 404,
    body: `{"success":false,"error_code":${code},"error_message":${JSON.stringify(message)}}`,
  };
}
