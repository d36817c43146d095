/** Why keys failed, in words: by position in the batch, for those of which the backend knows more than the code. */
export type FailureReasons = ReadonlyMap<number, string>;
