import type { Addon, NativeCancellation } from "../../native/addon.js";
import type { Deadline } from "../shared/deadline.js";

/** A deadline as the addon's calls take it: milliseconds, and what an abort cancels. Ends with the call. */
export class NativeLimit implements Disposable {
  /** The last arguments of a call. */
  readonly arguments: readonly [deadlineMs: number | undefined, cancellation: NativeCancellation | undefined];
  readonly #forget: () => void;

  constructor(addon: Addon, deadline: Deadline) {
    const { ms, signal } = deadline;
    const deadlineMs = ms === Number.POSITIVE_INFINITY ? undefined : Math.ceil(deadline.left);
    if (signal === undefined) {
      this.arguments = [deadlineMs, undefined];
      this.#forget = () => {};
      return;
    }
    const cancellation = addon.cancellationCreate();
    this.arguments = [deadlineMs, cancellation];
    // Not by the deadline, which waits for the event loop: the native call looks at the flag itself.
    const cancel = (): void => addon.cancellationCancel(cancellation);
    signal.addEventListener("abort", cancel, { once: true });
    this.#forget = () => signal.removeEventListener("abort", cancel);
  }

  [Symbol.dispose](): void {
    this.#forget();
  }
}
