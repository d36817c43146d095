import type { WireCase } from "./builders.js";
import { CONNECTOR_CASES } from "./connector.js";
import { CONNECTOR_EVENT_CASES } from "./connector-events.js";
import { EVENT_INDEX_CASES } from "./event-index.js";
import { EVENT_CASES } from "./events.js";
import { KEY_CASES } from "./key.js";
import { LAYOUT_CASES } from "./layout.js";
import { LOOKUP_CASES } from "./lookup.js";
import { REQUEST_CASES } from "./request.js";
import { STORE_CASES } from "./store.js";

export type { WireCase } from "./builders.js";
export { SMALLEST } from "./smallest.js";

/** Handwritten cases of every family. */
export const WIRE_CASES: readonly WireCase[] = [
  ...KEY_CASES,
  ...LOOKUP_CASES,
  ...REQUEST_CASES,
  ...CONNECTOR_CASES,
  ...LAYOUT_CASES,
  ...EVENT_CASES,
  ...EVENT_INDEX_CASES,
  ...CONNECTOR_EVENT_CASES,
  ...STORE_CASES,
];
