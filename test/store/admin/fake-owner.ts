import { createServer, type Socket } from "node:net";
import { listen } from "./fake-master.js";

/** Ways in which an owner may misbehave. */
export interface OwnerBehaviour {
  /** Fields of the segment descriptor that differ. */
  readonly descriptor?: Record<string, unknown>;
  /** The whole answer to a handshake, instead of a good one. */
  readonly handshake?: Uint8Array | "silence" | "hang up";
  /** Called with every read; may answer it its own way and return true. */
  readonly onRead?: (socket: Socket, read: { address: bigint; size: bigint }) => boolean;
}

/** An owner of memory that speaks Mooncake's TCP transport, of which tests decide everything. */
export interface FakeOwner {
  /** Where it answers handshakes, as the master names it. */
  readonly endpoint: string;
  readonly reads: { address: bigint; size: bigint }[];
  /** Handshakes that were answered. */
  handshakes(): number;
  /** Connections to the data port that were made. */
  dataConnections(): number;
  /** Connections that are open, to both ports. */
  open(): number;
  /** Ends every connection to the data port. */
  dropConnections(): void;
  close(): Promise<void>;
}

/** Where the memory of a fake owner starts. */
export const OWNER_ADDRESS: bigint = 0x7fff_ffff_f000n;

/** Starts an owner that serves `memory` from `OWNER_ADDRESS` on. */
export async function fakeOwner(memory: Uint8Array, behaviour: OwnerBehaviour = {}): Promise<FakeOwner> {
  const reads: { address: bigint; size: bigint }[] = [];
  const sockets = new Set<Socket>();
  const dataSockets = new Set<Socket>();
  let handshakes = 0;
  let dataConnections = 0;
  const track = (socket: Socket, set: Set<Socket>): void => {
    set.add(socket);
    socket.setNoDelay();
    socket.on("close", () => set.delete(socket));
    socket.on("error", () => {});
  };
  const data = createServer((socket) => {
    dataConnections++;
    track(socket, dataSockets);
    let received = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      for (; received.length >= 24; received = received.subarray(24)) {
        const read = { size: received.readBigUInt64LE(0), address: received.readBigUInt64LE(8) };
        reads.push(read);
        if (received[16] !== 0x80) socket.destroy();
        else if (!behaviour.onRead?.(socket, read)) serve(socket, memory, read);
      }
    });
  });
  await listen(data);
  const shake = createServer((socket) => {
    track(socket, sockets);
    let received = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 9 || received.length < 8 + Number(received.readBigUInt64LE(0))) return;
      JSON.parse(received.subarray(9).toString());
      handshakes++;
      const { handshake } = behaviour;
      if (handshake === "silence") return;
      if (handshake === "hang up") socket.destroy();
      else
        socket.write(handshake ?? descriptorFrame({ ...descriptor(portOf(data)), ...behaviour.descriptor }));
    });
  });
  await listen(shake);
  return {
    endpoint: `127.0.0.1:${portOf(shake)}`,
    reads,
    handshakes: () => handshakes,
    dataConnections: () => dataConnections,
    open: () => sockets.size + dataSockets.size,
    dropConnections() {
      for (const socket of dataSockets) socket.destroy();
    },
    async close() {
      for (const socket of [...sockets, ...dataSockets]) socket.destroy();
      await Promise.all([data, shake].map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

/** A frame of the handshake. */
export function descriptorFrame(descriptor: unknown): Buffer {
  const body = Buffer.from(typeof descriptor === "string" ? descriptor : `${JSON.stringify(descriptor)}\n`);
  const head = Buffer.alloc(9);
  head.writeBigUInt64LE(BigInt(body.length + 1));
  head[8] = 1;
  return Buffer.concat([head, body]);
}

/** A status of the data port. */
export function statusWord(low: number, high: number = 0x4d435456): Buffer {
  const status = Buffer.alloc(8);
  status.writeUInt32LE(low, 0);
  status.writeUInt32LE(high, 4);
  return status;
}

function descriptor(dataPort: number): Record<string, unknown> {
  return {
    buffers: [],
    name: "127.0.0.1:1",
    protocol: "tcp",
    tcp_data_host: "127.0.0.1",
    tcp_data_port: dataPort,
    tcp_proto_version: 2,
  };
}

function serve(
  socket: Socket,
  memory: Uint8Array,
  { address, size }: { address: bigint; size: bigint },
): void {
  const start = Number(address - OWNER_ADDRESS);
  const end = start + Number(size);
  if (start < 0 || end > memory.length || size === 0n) {
    socket.end(statusWord(1));
    return;
  }
  socket.write(statusWord(0));
  socket.write(memory.subarray(start, end));
}

function portOf(server: ReturnType<typeof createServer>): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no TCP address");
  return address.port;
}
