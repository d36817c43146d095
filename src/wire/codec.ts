import { describe, isMooncakeKvError } from "../errors.js";
import { packMessage, unpackMessage } from "./message-pack.js";
import { type PackedShape, packedToJson } from "./packed-shape.js";
import { failureError, type SchemaValidator, type Subject, schemaError } from "./schema-error.js";
import { jsonForm, packedForm, type WireForm } from "./wire.js";

/** Options of every codec call. */
export interface CodecOptions {
  /** Whether to check against the schema; the default. `false` is for data that the caller made and checked itself. */
  readonly validate?: boolean | undefined;
}

/** Options of `fromBinary`. */
export interface BinaryOptions extends CodecOptions {
  /**
   * Whether to read as loosely as vLLM's own reader: further frames are ignored, and an integer that has a frame to
   * itself may have any number of bytes. Off by default.
   */
  readonly lenient?: boolean | undefined;
}

/**
 * Turns the values of one type of one release into JSON and MessagePack and back.
 *
 * Every method throws a MooncakeKvError `ERR_SCHEMA` that names the type, the path, the offending value and the rule.
 */
export interface Codec<Value, Json> extends Subject {
  /** The same JSON value, known to keep to the schema. */
  validate(json: unknown): Json;
  /** The JSON form, with every property. It shares no lists with the value. */
  toJson(value: Value, options?: CodecOptions): Json;
  /** The value of a parsed JSON text; what is left out gets its default. */
  fromJson(json: unknown, options?: CodecOptions): Value;
  /** The value as MessagePack. */
  toMessagePack(value: Value, options?: CodecOptions): Uint8Array;
  /** The value of MessagePack bytes; what is left out gets its default. */
  fromMessagePack(bytes: Uint8Array, options?: CodecOptions): Value;
}

/** A codec of a type that also has a fixed binary form: one frame, or a list of frames. */
export interface BinaryCodec<Value, Json, Wire> extends Codec<Value, Json> {
  /** The frame or frames; a frame that is one member's bytes shares their memory. */
  toBinary(value: Value, options?: CodecOptions): Wire;
  /** The value; its bytes are views of the frames. */
  fromBinary(wire: Wire, options?: BinaryOptions): Value;
}

/** What the generator writes out for a type. */
export interface CodecParts<Value, Json> {
  /** What errors call the type. */
  readonly subject: Subject;
  /** Checks a JSON value. */
  readonly validator: SchemaValidator;
  /** The value in wire names, in JSON or MessagePack form. */
  readonly toWire: (value: Value, form: WireForm) => unknown;
  /** The value of a checked JSON form. */
  readonly fromJson: (json: Json) => Value;
  /** Where MessagePack differs from JSON; absent where it does not. */
  readonly packed?: PackedShape | undefined;
}

/** What the generator writes out for the binary form of a type. */
export interface BinaryParts<Value, Wire> {
  /** The frames of a value. */
  readonly toBinary: (value: Value) => Wire;
  /** The value of frames. */
  readonly fromBinary: (wire: Wire, lenient: boolean) => Value;
  /** Whether the frames' own limits imply the schema's, so that no further check is needed. */
  readonly exact: boolean;
}

/** A codec made of its parts. */
export function defineCodec<Value, Json>(parts: CodecParts<Value, Json>): Codec<Value, Json> {
  const { subject, validator } = parts;
  const validate = (json: unknown): Json =>
    guarded(subject, json, () => {
      // To a validator, a Date or a Map is an object without properties; JSON has neither.
      const kind = Object.prototype.toString.call(json);
      if (typeof json === "object" && !/^\[object (?:Object|Array|Null)\]$/.test(kind))
        throw schemaError(subject, "$", `${describe(json)} is refused: expected a JSON value`, {
          value: json,
        });
      if (!validator(json)) throw failureError(subject, validator.errors ?? []);
      return json as Json;
    });
  const toWire = (value: Value, form: WireForm): unknown =>
    guarded(subject, value, () => parts.toWire(value, form));
  const toJson = (value: Value, options: CodecOptions = {}): Json => {
    const json = toWire(value, jsonForm);
    return options.validate === false ? (json as Json) : validate(json);
  };
  const fromJson = (json: unknown, options: CodecOptions = {}): Value => {
    const checked = options.validate === false ? (json as Json) : validate(json);
    return guarded(subject, json, () => parts.fromJson(checked));
  };
  return {
    ...subject,
    validate,
    toJson,
    fromJson,
    toMessagePack(value, options = {}) {
      if (options.validate !== false) toJson(value);
      return guarded(subject, value, () => packMessage(toWire(value, packedForm), subject));
    },
    fromMessagePack(bytes, options = {}) {
      const json = guarded(subject, bytes, () =>
        packedToJson(unpackMessage(bytes, subject), parts.packed, subject),
      );
      return fromJson(json, options);
    },
  };
}

/** A codec with a binary form, made of its parts. */
export function defineBinaryCodec<Value, Json, Wire>(
  parts: CodecParts<Value, Json>,
  binary: BinaryParts<Value, Wire>,
): BinaryCodec<Value, Json, Wire> {
  const codec = defineCodec(parts);
  return {
    ...codec,
    toBinary(value, options = {}) {
      if (!binary.exact && options.validate !== false) codec.toJson(value);
      return guarded(parts.subject, value, () => binary.toBinary(value));
    },
    fromBinary(wire, options = {}) {
      const value = guarded(parts.subject, wire, () => binary.fromBinary(wire, options.lenient === true));
      if (!binary.exact && options.validate !== false) codec.toJson(value);
      return value;
    },
  };
}

/** Whatever goes wrong inside is told as a problem of the value. */
function guarded<Result>(subject: Subject, value: unknown, run: () => Result): Result {
  try {
    return run();
  } catch (error) {
    if (isMooncakeKvError(error)) throw error;
    const problem = `${describe(value)} is not a value of this type (${(error as Error).message})`;
    throw schemaError(subject, "$", problem, { value }, { cause: error });
  }
}
