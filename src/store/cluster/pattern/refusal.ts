/** Why a pattern is not sent. It stays in this folder: `masterPattern` makes a verdict of it. */
export class Refusal extends Error {}
