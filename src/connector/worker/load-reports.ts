/** What has become of the loads of a rank since it was last asked. */
export class LoadReports {
  readonly #byRequest: boolean;
  /** Loads of each request that wait or run, and whether one of its loads has lost a block. */
  readonly #open = new Map<string, { loads: number; failed: boolean }>();
  readonly #finished = new Set<string>();
  readonly #failed = new Set<string>();
  readonly #invalidBlockIds = new Set<number>();

  /** @param byRequest whether block ids are unique in one group only, so that failures are reported by request. */
  constructor(byRequest: boolean) {
    this.#byRequest = byRequest;
  }

  /** A load of a request begins. What has ended, but was not told yet, is told together with it. */
  begin(reqId: string): void {
    const open = this.#open.get(reqId);
    if (open !== undefined) open.loads++;
    else this.#open.set(reqId, { loads: 1, failed: this.#failed.delete(reqId) });
    this.#finished.delete(reqId);
  }

  /** Blocks that a load did not fill. It must not have ended. */
  lost(reqId: string, blockIds: ArrayLike<number>): void {
    if (this.#byRequest) this.#open.get(reqId)!.failed = true;
    else for (let i = 0; i < blockIds.length; i++) this.#invalidBlockIds.add(blockIds[i]!);
  }

  /** A load has ended. Its request is reported once no other load of it is open. */
  end(reqId: string): void {
    const open = this.#open.get(reqId)!;
    if (--open.loads > 0) return;
    this.#open.delete(reqId);
    this.#finished.add(reqId);
    if (open.failed) this.#failed.add(reqId);
  }

  /** The requests whose loads have all ended since the last call. */
  takeFinished(): Set<string> {
    return take(this.#finished);
  }

  /** Those among them that have lost blocks, where failures are reported by request. */
  takeFailed(): Set<string> {
    return take(this.#failed);
  }

  /** The blocks that were not filled since the last call. */
  takeInvalidBlockIds(): Set<number> {
    return take(this.#invalidBlockIds);
  }
}

function take<T>(set: Set<T>): Set<T> {
  const taken = new Set(set);
  set.clear();
  return taken;
}
