/**
 * Jobs that wait for a few runners, oldest first. It takes no more than it has room for: who is refused must say what
 * became of the job.
 */
export class JobQueue<Job> {
  readonly #runners: number;
  readonly #capacity: number;
  readonly #run: (job: Job) => Promise<void>;
  readonly #waiting: Job[] = [];
  #next = 0;
  #running = 0;
  readonly #idle: (() => void)[] = [];

  /**
   * @param run does one job; what it rejects with is lost, so it must not.
   * @param runners jobs that run at the same time.
   * @param capacity jobs that may wait besides.
   */
  constructor(run: (job: Job) => Promise<void>, runners: number, capacity: number) {
    this.#run = run;
    this.#runners = runners;
    this.#capacity = capacity;
  }

  /** Jobs that wait or run. */
  get size(): number {
    return this.#waiting.length - this.#next + this.#running;
  }

  /** Adds a job; false when there is no room for it. It starts after the caller's own code, never during this call. */
  push(job: Job): boolean {
    if (this.#waiting.length - this.#next >= this.#capacity) return false;
    this.#waiting.push(job);
    queueMicrotask(() => this.#start());
    return true;
  }

  /** Resolves once nothing waits or runs. */
  drained(): Promise<void> {
    if (this.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #start(): void {
    while (this.#running < this.#runners && this.#next < this.#waiting.length) {
      this.#running++;
      void this.#run(this.#take()).then(this.#ended, this.#ended);
    }
  }

  readonly #ended = (): void => {
    this.#running--;
    this.#start();
    if (this.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
  };

  #take(): Job {
    const job = this.#waiting[this.#next++]!;
    // Cut off what was taken once it is the larger half, so that taking costs the same however many wait.
    if (this.#next * 2 > this.#waiting.length) {
      this.#waiting.splice(0, this.#next);
      this.#next = 0;
    }
    return job;
  }
}
