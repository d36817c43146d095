/** What a shared library of 64-bit Linux says of itself. */
export interface ElfFacts {
  /** As Node names it: `x64`, `arm64`; otherwise the number in the file. */
  readonly arch: string;
  /** The libraries it needs. */
  readonly needed: readonly string[];
  /** Version names it needs of other libraries, as `GLIBC_2.17`. */
  readonly versions: readonly string[];
  /** The symbols that others may use. */
  readonly exported: readonly string[];
}

const MACHINES: Readonly<Record<number, string>> = { 62: "x64", 183: "arm64" };
const DYNAMIC = 6;
const DYNAMIC_SYMBOLS = 11;
const NEEDED_VERSIONS = 0x6ffffffe;
const NEEDED = 1n;

interface Section {
  readonly type: number;
  /** The section that goes with it: for all that are read here, the one of the strings. */
  readonly link: number;
  /** For needed versions: how many libraries. */
  readonly info: number;
  readonly bytes: Buffer;
}

/**
 * Reads the headers and the dynamic sections.
 *
 * @throws Error for anything but a little-endian 64-bit ELF file with sections.
 */
export function readElf(file: Buffer): ElfFacts {
  if (file.length < 64 || file.toString("latin1", 0, 6) !== "\x7fELF\x02\x01")
    throw new Error("not a little-endian 64-bit ELF file");
  const sections = readSections(file);
  const machine = file.readUInt16LE(18);
  return {
    arch: MACHINES[machine] ?? String(machine),
    needed: readNeeded(sections),
    versions: readVersions(sections),
    exported: readExported(sections),
  };
}

function readSections(file: Buffer): Section[] {
  const start = Number(file.readBigUInt64LE(40));
  const size = file.readUInt16LE(58);
  const count = file.readUInt16LE(60);
  return Array.from({ length: count }, (_, index) => {
    const header = file.subarray(start + index * size, start + (index + 1) * size);
    const type = header.readUInt32LE(4);
    const offset = Number(header.readBigUInt64LE(24));
    const bytes = Number(header.readBigUInt64LE(32));
    return {
      type,
      link: header.readUInt32LE(40),
      info: header.readUInt32LE(44),
      // Type 8 has a size, but nothing in the file.
      bytes: file.subarray(offset, offset + (type === 8 ? 0 : bytes)),
    };
  });
}

function readNeeded(sections: readonly Section[]): string[] {
  return ofType(sections, DYNAMIC).flatMap(({ bytes, link }) => {
    const names: string[] = [];
    for (let at = 0; at < bytes.length; at += 16)
      if (bytes.readBigInt64LE(at) === NEEDED)
        names.push(text(sections, link, Number(bytes.readBigUInt64LE(at + 8))));
    return names;
  });
}

function readVersions(sections: readonly Section[]): string[] {
  return ofType(sections, NEEDED_VERSIONS).flatMap(({ bytes, link, info }) => {
    const names: string[] = [];
    for (let library = 0, at = 0; library < info; library++) {
      for (
        let version = 0, entry = at + bytes.readUInt32LE(at + 8);
        version < bytes.readUInt16LE(at + 2);
        version++
      ) {
        names.push(text(sections, link, bytes.readUInt32LE(entry + 8)));
        entry += bytes.readUInt32LE(entry + 12);
      }
      at += bytes.readUInt32LE(at + 12);
    }
    return names;
  });
}

function readExported(sections: readonly Section[]): string[] {
  return ofType(sections, DYNAMIC_SYMBOLS).flatMap(({ bytes, link }) => {
    const names: string[] = [];
    for (let at = 0; at < bytes.length; at += 24) {
      const local = bytes.readUInt8(at + 4) >> 4 === 0;
      const undefinedHere = bytes.readUInt16LE(at + 6) === 0;
      if (!local && !undefinedHere) names.push(text(sections, link, bytes.readUInt32LE(at)));
    }
    return names;
  });
}

function ofType(sections: readonly Section[], type: number): Section[] {
  return sections.filter((section) => section.type === type);
}

function text(sections: readonly Section[], section: number, offset: number): string {
  const { bytes } = sections[section]!;
  return bytes.toString("latin1", offset, bytes.indexOf(0, offset));
}
