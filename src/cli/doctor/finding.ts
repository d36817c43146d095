/** What one check found. */
export interface Finding {
  /** What was looked at, in a word or two. */
  readonly subject: string;
  /** `warning`: not as it should be, but nothing that was asked for needs it. `skipped`: it could not be looked at. */
  readonly status: "ok" | "missing" | "warning" | "skipped";
  /** What is there, or what is wrong, in one line. */
  readonly detail: string;
  /** What to do; for `missing` and `warning`. */
  readonly remedies?: readonly string[] | undefined;
}

/** Something is as it should be. */
export function ok(subject: string, detail: string): Finding {
  return { subject, status: "ok", detail };
}

/** Something is not there. `needed` makes it a failure of the whole examination. */
export function missing(
  subject: string,
  needed: boolean,
  detail: string,
  remedies: readonly string[],
): Finding {
  return { subject, status: needed ? "missing" : "warning", detail, remedies };
}

/** Something could not be looked at. */
export function skipped(subject: string, detail: string): Finding {
  return { subject, status: "skipped", detail };
}
