import type { Command } from "commander";
import { withoutPassword } from "../../store/cluster/redacted.js";
import type { MooncakeStoreOptions } from "../../store/index.js";
import { MOONCAKE_OPTIONS } from "../../store/mooncake/options.js";
import type { CommandContext } from "../command.js";
import { examine } from "../doctor/examine.js";
import type { Finding } from "../doctor/finding.js";
import { jsonText } from "../json.js";
import { addJsonOption, type JsonOption } from "../options.js";
import { printable } from "../text.js";
import { UsageError } from "../usage-error.js";

const HELP = `
Looks at the native addon, compiler, CMake, the optional npm packages, Python, Mooncake's Python package and the system
libraries that it needs, and at the cluster: configuration, master, metadata server, connection, segment, and one object that is put, read back and
removed. It gives no memory to the cluster for that: the object lies in the memory of others, and the report says where.

--store says what you want to use; without it that is "mooncake:", with the configuration that MOONCAKE_CONFIG_PATH or
MOONCAKE_MASTER names. With role or globalSegmentSize in it, doctor sees, too, whether this machine has that memory. For
"embedded:" only the addon is needed. Other stores are opened, and asked how they are.

Exit status: 0 when all that is needed is there, 1 when something is missing; each remedy has a number.`;

interface DoctorOptions extends JsonOption {
  readonly store: string;
  readonly log?: true | undefined;
}

/** `mooncake-kv doctor` */
export function define(command: Command, context: CommandContext): void {
  command.option("-s, --store <uri>", "what you want to use", "mooncake:");
  command.option("--log", "print what Mooncake logged, too");
  addJsonOption(command)
    .addHelpText("after", HELP)
    .action((options: DoctorOptions) => run(options, context));
}

async function run({ store: uri, json, log: wanted }: DoctorOptions, context: CommandContext): Promise<void> {
  const mooncake = mooncakeOptions(uri);
  const { findings, log } = await examine({ store: uri, mooncake, environment: context.env });
  // A report is passed on to others.
  const store = withoutPassword(uri);
  const healthy = findings.every(({ status }) => status !== "missing");
  if (!healthy) context.exitCode = 1;
  if (json) {
    const report = { healthy, store, findings: findings.map(withRemedies), ...(wanted ? { log } : {}) };
    await context.stdout.line(jsonText(report));
  } else {
    await context.stdout.lines(reportLines(findings, store));
    if (wanted) await context.stdout.lines(["", ...log.trimEnd().split("\n").map(printable)]);
  }
}

function withRemedies(finding: Finding): Finding & { readonly remedies: readonly string[] } {
  return { ...finding, remedies: finding.remedies ?? [] };
}

/** The options of a Mooncake store out of its URI; undefined for any other store. */
function mooncakeOptions(uri: string): MooncakeStoreOptions | undefined {
  const match = /^([a-z][a-z0-9-]*):([^?]*)(?:\?(.*))?$/is.exec(uri);
  if (!match)
    throw new UsageError(
      `${JSON.stringify(withoutPassword(uri))} is no store URI, as "mooncake:./mooncake.json"`,
    );
  const [, scheme = "", path = "", query = ""] = match;
  if (scheme.toLowerCase() !== "mooncake") return undefined;
  const options = Object.fromEntries(new URLSearchParams(query));
  for (const name of Object.keys(options))
    if (!(MOONCAKE_OPTIONS as readonly string[]).includes(name))
      throw new UsageError(
        `the mooncake store has no option ${JSON.stringify(name)}; it has ${MOONCAKE_OPTIONS.join(", ")}`,
      );
  return { ...(path === "" ? {} : { config: path }), ...options } as MooncakeStoreOptions;
}

const SIGNS: Readonly<Record<Finding["status"], string>> = {
  ok: "ok",
  missing: "MISSING",
  warning: "missing",
  skipped: "-",
};

/** One line a finding; the remedies follow, numbered over all findings. */
function reportLines(findings: readonly Finding[], store: string): string[] {
  const width = Math.max(...findings.map(({ subject }) => subject.length));
  const signs = Math.max(...findings.map(({ status }) => SIGNS[status].length));
  const lines = findings.map(
    ({ subject, status, detail }) => `${SIGNS[status].padEnd(signs)}  ${subject.padEnd(width)}  ${detail}`,
  );
  const missing = findings.filter(({ status }) => status === "missing");
  lines.push(
    "",
    missing.length === 0
      ? `${store} can be used`
      : `${store} can't be used: ${missing.map(({ subject }) => subject).join(", ")}`,
  );
  let number = 0;
  for (const { subject, remedies } of missing)
    for (const remedy of remedies ?? []) lines.push(`  ${++number}. ${subject}: ${remedy}`);
  return lines.map(printable);
}
