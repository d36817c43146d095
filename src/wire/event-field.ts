import { RELEASES, type Release } from "../release.js";

/** How a member of an event lies on the wire. */
export type EventFieldKind =
  /** A list of block hashes. */
  | "hashes"
  /** One block hash. */
  | "hash"
  /** A list of numbers below 2^32. */
  | "tokens"
  /** A number of 0 or more. */
  | "integer"
  | "text"
  /** A list of lists of anything; a list may be null. */
  | "anyLists"
  /** A list of lists of numbers. */
  | "integerLists";

/** A member of an event. */
export interface EventField {
  /** Name on the wire. */
  readonly name: string;
  /** Name in TypeScript. */
  readonly member: string;
  /** How its value lies on the wire. */
  readonly kind: EventFieldKind;
  /** Whether null is a value of it. */
  readonly nullable: boolean;
  /** `always`: never left out. `written`: vLLM writes it even when null, old engines lack it. `optional`: null is left out. */
  readonly presence: "always" | "written" | "optional";
  /** First release that has it; absent where all have. */
  readonly since?: Release | undefined;
  /** Last release that has it; absent where the newest has it. */
  readonly until?: Release | undefined;
}

/** A kind of event: its members in the order of the list form, and what makes an event of their values. */
export interface EventKind {
  /** The members, in the order of the list form. */
  readonly fields: readonly EventField[];
  /** @param values of the members, in the order of `fields`. */
  build(values: readonly unknown[]): object;
}

/** Whether a release has a field. */
export function hasField(release: Release, { since, until }: EventField): boolean {
  const at = RELEASES.indexOf(release);
  return (
    (since === undefined || at >= RELEASES.indexOf(since)) &&
    (until === undefined || at <= RELEASES.indexOf(until))
  );
}
