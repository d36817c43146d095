/**
 * A text with an identity. Python pickles a second reference to the same object as a back-reference, so the digest
 * of a block depends on whether two equal texts are one object. A plain string stands for an object of its own, one
 * `SharedText` used twice for one object used twice.
 */
export class SharedText {
  /** The text itself. */
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * What can be hashed as part of a block: None (null), an integer, a text, bytes, or a tuple (array) of these. Bytes
 * and tuples have the identity of their JavaScript object.
 */
export type Hashable = null | number | bigint | string | SharedText | Uint8Array | readonly Hashable[];
