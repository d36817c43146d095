import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { fileURLToPath } from "node:url";
import type { MooncakeStoreOptions } from "../../../src/store/mooncake/options.js";
import { type MooncakeStore, openStore } from "../../../src/store/open-store.js";

/** Where Python finds the stand-in for Mooncake's wheel. */
export const FAKE: string = fileURLToPath(new URL("../../helpers/mooncake/fake", import.meta.url));

/** Somebody who listens, as a master does: enough for a store to open. */
export class FakeMaster implements AsyncDisposable {
  readonly address: string;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.address = `127.0.0.1:${(server.address() as { port: number }).port}`;
  }

  static async start(): Promise<FakeMaster> {
    const server = createServer((socket) => socket.on("error", () => {}));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new FakeMaster(server);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** A store over the stand-in: a real sidecar process, and no cluster. */
export function openFake(
  master: FakeMaster,
  options: MooncakeStoreOptions = {},
  environment: Readonly<Record<string, string>> = {},
): Promise<MooncakeStore> {
  return openStore({
    backend: "mooncake",
    master: master.address,
    python: "python3",
    staging: "1MiB",
    ...options,
    environment: { PYTHONPATH: FAKE, ...environment },
  });
}
