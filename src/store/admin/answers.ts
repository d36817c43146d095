import { HEALTH_LIMIT, SEGMENTS_LIMIT } from "./answer-limits.js";
import type { HttpAnswer } from "./http-client.js";
import { jsonObject } from "./json-answer.js";
import { byteCount, hexadecimal, list, object, text } from "./json-fields.js";

/** A mounted segment, as `/get_segments_detail` describes it. */
export interface AdminSegment {
  readonly name: string;
  /** Two decimal 64-bit numbers joined by "-". */
  readonly id: string;
  readonly clientId: string;
  readonly baseAddress: bigint;
  /** Bytes. */
  readonly size: bigint;
  /** Bytes of the objects in it. */
  readonly used: bigint;
  /** Bytes that objects can take. */
  readonly capacity: bigint;
  /** Where its owner answers handshakes: "host:port". */
  readonly endpoint: string;
  readonly protocol: string;
  /** OK, DRAINING, DRAINED, GRACEFULLY_UNMOUNTING, UNMOUNTING or UNDEFINED. */
  readonly status: string;
}

/** The answer of `/health`. */
export interface MasterHealth {
  readonly status: string;
  readonly role: string;
  readonly haState: string;
  readonly ready: boolean;
}

/** The segments of `/get_segments_detail`. */
export function readSegments(answer: HttpAnswer): AdminSegment[] {
  const body = jsonObject("/get_segments_detail", answer, SEGMENTS_LIMIT.values);
  return list(body, "segments").map((item) => {
    const segment = object(item, "a segment");
    return {
      name: text(segment, "segment_name"),
      id: text(segment, "segment_id"),
      clientId: text(segment, "client_id"),
      baseAddress: hexadecimal(segment, "base_address"),
      size: byteCount(segment, "size_bytes"),
      used: byteCount(segment, "allocator_used_bytes"),
      capacity: byteCount(segment, "allocator_capacity_bytes"),
      endpoint: text(segment, "te_endpoint"),
      protocol: text(segment, "protocol"),
      status: text(segment, "status"),
    };
  });
}

/** The answer of `/health`. */
export function readHealth(answer: HttpAnswer): MasterHealth {
  const body = jsonObject("/health", answer, HEALTH_LIMIT.values);
  return {
    status: text(body, "status"),
    role: text(body, "role"),
    haState: text(body, "ha_state"),
    ready: body.get("service_ready") === true,
  };
}
