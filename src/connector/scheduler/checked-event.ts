import {
  buildConnectorMetaCodec,
  requestChangedCodec,
  schedulerEventCodec,
  updateConnectorOutputCodec,
  type SchedulerEvent as WireEvent,
} from "../../../generated/typescript/index.js";
import type { SchedulerEvent } from "./scheduler-events.js";

/** What the schema gives to members that an event leaves out. */
const DEFAULTS: { readonly [Type in SchedulerEvent["type"]]?: object } = {
  RequestChanged: requestChangedCodec.fromJson({ type: "RequestChanged", req_id: "-" }),
  BuildConnectorMeta: buildConnectorMetaCodec.fromJson({ type: "BuildConnectorMeta" }),
  UpdateConnectorOutput: updateConnectorOutputCodec.fromJson({ type: "UpdateConnectorOutput" }),
};

/**
 * A copy of an event with everything that it left out, checked against the schema `connector-events`.
 *
 * @throws MooncakeKvError `ERR_SCHEMA` with the path of what is wrong, in the names of the schema.
 */
export function checkedEvent(event: SchedulerEvent): WireEvent {
  const isObject = typeof event === "object" && event !== null;
  const json = isObject
    ? schedulerEventCodec.toJson(complete(event) as WireEvent)
    : schedulerEventCodec.validate(event);
  return schedulerEventCodec.fromJson(json, { validate: false });
}

/** The event with the defaults of what is undefined in it. */
function complete(event: SchedulerEvent): object {
  const defaults = Object.hasOwn(DEFAULTS, event.type) ? DEFAULTS[event.type] : {};
  const said = Object.fromEntries(Object.entries(event).filter(([, value]) => value !== undefined));
  return { ...defaults, ...said };
}
