import { chunkHandlers } from "./chunk.js";
import { configHandlers } from "./config.js";
import { connectorConfigHandlers } from "./connector-config.js";
import { coordinatorHandlers } from "./coordinator.js";
import { engineHandlers } from "./engine.js";
import { eventIndexHandlers } from "./event-index.js";
import { eventsHandlers } from "./events.js";
import type { VectorHandlers } from "./handler.js";
import { hashHandlers } from "./hash.js";
import { keyHandlers } from "./key.js";
import { layoutHandlers } from "./layout.js";
import { lookupHandlers } from "./lookup.js";
import { requestHandlers } from "./request.js";
import { schedulerHandlers } from "./scheduler.js";
import { workerHandlers } from "./worker.js";

/** The handlers of every op that this implementation knows. */
export const vectorHandlers: VectorHandlers = {
  ...hashHandlers,
  ...keyHandlers,
  ...chunkHandlers,
  ...coordinatorHandlers,
  ...lookupHandlers,
  ...eventsHandlers,
  ...eventIndexHandlers,
  ...schedulerHandlers,
  ...workerHandlers,
  ...configHandlers,
  ...connectorConfigHandlers,
  ...engineHandlers,
  ...layoutHandlers,
  ...requestHandlers,
};
