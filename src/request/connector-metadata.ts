import type { MooncakeStoreConnectorMetadata as Wire } from "../../generated/typescript/index.js";
import type { Release } from "../release.js";
import type { ReqMeta } from "./req-meta.js";

/**
 * What the scheduler tells the workers in one step: the jobs, and which requests are alive. Mirrors vLLM's
 * `MooncakeStoreConnectorMetadata`.
 */
export class MooncakeStoreConnectorMetadata<R extends Release = "vllm-0.33">
  implements Omit<Wire, "requests">
{
  /** The jobs, in the order in which they were added. */
  readonly requests: ReqMeta<R>[] = [];
  /** Requests that the scheduler still tracks. */
  readonly unfinishedRequestIds: ReadonlySet<string>;
  /** Requests that lost their blocks in this step. */
  readonly preemptedReqIds: ReadonlySet<string>;

  /** Copies both sets. */
  constructor(unfinishedRequestIds: Iterable<string>, preemptedReqIds: Iterable<string>) {
    this.unfinishedRequestIds = new Set(unfinishedRequestIds);
    this.preemptedReqIds = new Set(preemptedReqIds);
  }

  /** Adds a job behind the others. Mirrors `add_request`. */
  addRequest(reqMeta: ReqMeta<R>): void {
    this.requests.push(reqMeta);
  }
}
