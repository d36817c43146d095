/**
 * What the emitters see: the types of one release, with nothing left of JSON Schema and nothing of any target
 * language. Names are the wire's, in snake_case; an emitter turns them into its own.
 */
export interface ReleaseModel {
  readonly release: string;
  readonly families: readonly FamilyModel[];
}

/** The types of one schema file. */
export interface FamilyModel {
  readonly name: string;
  readonly description: string;
  readonly types: readonly TypeModel[];
}

/** A type with named members. */
export interface TypeModel {
  readonly name: string;
  readonly family: string;
  readonly description: string;
  /** The vLLM symbol that the type mirrors. */
  readonly vllm: string;
  /**
   * On the wire: a map of names, or a list in the order of the members. `tagged` is one of the types in `options`, each
   * of which has a member `type` that says which it is; it has no members of its own.
   */
  readonly form: "object" | "tuple" | "tagged";
  readonly options?: readonly string[] | undefined;
  /**
   * How MessagePack has the type where it may be a map or a list: what is written; both are read. In a list, the tag of
   * a tagged option comes first. Absent: a map.
   */
  readonly packed?: "map" | "list" | undefined;
  readonly members: readonly MemberModel[];
  readonly rules: readonly RuleModel[];
  /** The frames of the binary form; absent where there is none. */
  readonly binary?: readonly BinaryFrame[] | undefined;
}

/** One member of a type. */
export interface MemberModel {
  /** Name on the wire. */
  readonly name: string;
  readonly description: string;
  readonly shape: Shape;
  /** Whether the wire may leave it out; then `fallback` stands for it. */
  readonly optional: boolean;
  readonly fallback?: unknown;
  /** Set where vLLM writes the member also where it is the fallback. */
  readonly written?: true | undefined;
}

/** What the values of a member look like. */
export type Shape =
  | { readonly kind: "boolean" }
  | { readonly kind: "integer"; readonly minimum: number; readonly maximum: number }
  | { readonly kind: "float" }
  | { readonly kind: "uint64" }
  | { readonly kind: "text"; readonly minLength: number }
  | { readonly kind: "choice"; readonly values: readonly string[] }
  | { readonly kind: "bytes"; readonly minLength: number }
  /** A 64-bit integer or bytes. */
  | { readonly kind: "uint64OrBytes" }
  /** Null, a boolean, a number, text, bytes, or a list of these. */
  | { readonly kind: "any" }
  | { readonly kind: "list"; readonly items: Shape }
  | { readonly kind: "set"; readonly items: Shape }
  | { readonly kind: "map"; readonly key: Shape; readonly value: Shape }
  | { readonly kind: "nullable"; readonly of: Shape }
  | { readonly kind: "reference"; readonly name: string }
  /** Null on every wire, and no member at all in a language: what vLLM keeps inside one process. */
  | { readonly kind: "absent" };

/** A condition between the members of one type. Members are named as on the wire. */
export type RuleModel =
  /** Lists of equal length. */
  | { readonly kind: "equal-length"; readonly members: readonly string[] }
  /** The first is less than the second, unless one of them is null. */
  | { readonly kind: "less"; readonly members: readonly [string, string] }
  /** The first is a multiple of the second, unless one of them is null. */
  | { readonly kind: "multiple"; readonly members: readonly [string, string] }
  /** A condition that only the schema can say, in words. */
  | { readonly kind: "words"; readonly text: string };

/** One frame: its parts lie back to back, with no padding. */
export type BinaryFrame = readonly BinaryPart[];

/** A part of a binary frame. */
export type BinaryPart =
  /** Constant ASCII text. */
  | { readonly kind: "tag"; readonly text: string }
  | { readonly kind: "member"; readonly member: string; readonly encoding: BinaryEncoding };

/**
 * How a member lies in a frame. Integers are unsigned and big-endian; `flag` is one byte, 1 or 0; `rest` is all that
 * is left of the frame: bytes as they are, or a list of types one behind the other.
 */
export type BinaryEncoding = "uint8" | "uint16be" | "uint32be" | "uint64be" | "flag" | "rest";

/** The widths of the integer encodings, in bytes. */
export const INTEGER_WIDTHS: Readonly<Record<string, number>> = {
  uint8: 1,
  uint16be: 2,
  uint32be: 4,
  uint64be: 8,
};
