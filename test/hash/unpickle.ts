/**
 * Reads a block's pickle back, opcode by opcode, with the memo and the frames checked: an independent inverse of the
 * encoder. Bytes come back as `b:hex`, integers as bigint, tuples as arrays; a back-reference gives the very same
 * array or a text again.
 */
export function unpickle(pickle: Uint8Array): unknown {
  const data = Buffer.from(pickle);
  const stack: unknown[] = [];
  const marks: number[] = [];
  const memo: unknown[] = [];
  let at = 0;
  let frameEnd = -1;
  const need = (condition: boolean, what: string) => {
    if (!condition) throw new Error(`${what} at ${at}`);
  };
  const take = (count: number) => {
    need(at + count <= data.length, "truncated");
    at += count;
    return data.subarray(at - count, at);
  };
  const count = (width: number) =>
    width === 8 ? Number(take(8).readBigUInt64LE()) : take(width).readUIntLE(0, width);
  const tuple = (size: number) => stack.push(stack.splice(stack.length - size, size));
  const long = (bytes: Buffer) => {
    let value = 0n;
    for (const byte of Buffer.from(bytes).reverse()) value = (value << 8n) | BigInt(byte);
    return BigInt.asIntN(bytes.length * 8, value);
  };
  need(take(2).toString("hex") === "8005", "no protocol 5");
  for (;;) {
    const opcode = take(1)[0]!;
    if (opcode === 0x95) {
      need(frameEnd < at, "a frame in a frame");
      const size = count(8);
      need(size >= 4, "a frame below 4 bytes");
      frameEnd = at + size;
      continue;
    }
    if (opcode === 0x2e) break;
    else if (opcode === 0x4e) stack.push(null);
    else if (opcode === 0x4b) stack.push(BigInt(count(1)));
    else if (opcode === 0x4d) stack.push(BigInt(count(2)));
    else if (opcode === 0x4a) stack.push(BigInt(take(4).readInt32LE()));
    else if (opcode === 0x8a) stack.push(long(take(count(1))));
    else if (opcode === 0x8b) stack.push(long(take(count(4))));
    else if (opcode === 0x43) stack.push(`b:${take(count(1)).toString("hex")}`);
    else if (opcode === 0x42) stack.push(`b:${take(count(4)).toString("hex")}`);
    else if (opcode === 0x8c) stack.push(`t:${take(count(1)).toString("hex")}`);
    else if (opcode === 0x58) stack.push(`t:${take(count(4)).toString("hex")}`);
    else if (opcode === 0x28) marks.push(stack.length);
    else if (opcode === 0x29) stack.push([]);
    else if (opcode >= 0x85 && opcode <= 0x87) tuple(opcode - 0x84);
    else if (opcode === 0x74) tuple(stack.length - marks.pop()!);
    else if (opcode === 0x94) memo.push(stack.at(-1));
    else if (opcode === 0x68 || opcode === 0x6a) {
      const index = count(opcode === 0x68 ? 1 : 4);
      need(index < memo.length, `reference ${index} of ${memo.length}`);
      need(opcode === 0x68 || index > 0xff, "a long reference to a low index");
      stack.push(memo[index]);
    } else need(false, `unknown opcode ${opcode}`);
    if (frameEnd >= 0) need(at <= frameEnd || stack.length > 0, "an opcode across the end of a frame");
  }
  need(at === data.length, "bytes after the end");
  need(stack.length === 1 && marks.length === 0, "not one value");
  if (frameEnd >= 0) need(frameEnd === at, "the last frame does not end with the pickle");
  return stack[0];
}
