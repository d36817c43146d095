import { CODE } from "../../store/shared/codes.js";
import type { SetupArguments } from "./world.js";

const SMALLEST_SEGMENT = 16 << 20;
const PROTOCOLS: ReadonlySet<string> = new Set(["tcp", "rdma"]);

/** What Mooncake's `setup` answers to its arguments alone, before it speaks to anybody: 0 or a code. */
export function setupCode({ host, segment, proto }: SetupArguments): number {
  if (host === "") return CODE.INVALID_PARAMS;
  if (segment !== undefined && segment !== 0 && segment < SMALLEST_SEGMENT) return CODE.INVALID_PARAMS;
  if (proto !== undefined && !PROTOCOLS.has(proto)) return -1;
  return 0;
}
