/** Bytes as lower-case hex and back, as the platform does it fastest. */
export { fromHex, toHex } from "#platform";
