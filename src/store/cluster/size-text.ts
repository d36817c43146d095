const UNITS = ["KiB", "MiB", "GiB", "TiB"] as const;

/** A size for people: `64 MiB`, `2 TiB`, `1.5 GiB`, `15000000 bytes` where no unit fits within two decimals. */
export function sizeText(bytes: bigint): string {
  for (let power = UNITS.length; power >= 1; power--) {
    const unit = 1n << BigInt(10 * power);
    if (bytes >= unit && (bytes * 100n) % unit === 0n)
      return `${Number((bytes * 100n) / unit) / 100} ${UNITS[power - 1]}`;
  }
  return bytes === 1n ? "1 byte" : `${bytes} bytes`;
}
