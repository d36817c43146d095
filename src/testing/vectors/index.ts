import { chunkHandlers } from "./chunk.js";
import { coordinatorHandlers } from "./coordinator.js";
import { eventsHandlers } from "./events.js";
import type { VectorHandlers } from "./handler.js";
import { hashHandlers } from "./hash.js";
import { keyHandlers } from "./key.js";
import { layoutHandlers } from "./layout.js";
import { lookupHandlers } from "./lookup.js";
import { requestHandlers } from "./request.js";

/** The handlers of every op that this implementation knows. */
export const vectorHandlers: VectorHandlers = {
  ...hashHandlers,
  ...keyHandlers,
  ...chunkHandlers,
  ...coordinatorHandlers,
  ...lookupHandlers,
  ...eventsHandlers,
  ...layoutHandlers,
  ...requestHandlers,
};
