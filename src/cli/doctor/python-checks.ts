import { type PythonFacts, pythonFacts } from "../../store/mooncake/python-facts.js";
import { type Finding, missing, ok, skipped } from "./finding.js";

type Environment = Readonly<Record<string, string | undefined>>;

/** Python, Mooncake's package and the libraries of the system. `needed`: the store that was asked for runs on them. */
export async function pythonChecks(
  python: string,
  environment: Environment,
  needed: boolean,
): Promise<Finding[]> {
  let facts: PythonFacts;
  try {
    facts = await pythonFacts(python, environment);
  } catch (error) {
    const reason = (error as Error).message.split("\n", 1)[0]!;
    return [
      missing("Python", needed, `${python} does not work: ${reason}`, [
        "Install Python 3.10 or later: apt-get install python3 python3-venv",
        "Or name the Python that has Mooncake's package: MOONCAKE_KV_PYTHON=/path/to/python",
      ]),
      ...["Mooncake package", "system libraries", "CUDA"].map((subject) => skipped(subject, "needs Python")),
    ];
  }
  return [
    ok("Python", `${facts.python}, ${facts.executable}`),
    checkWheel(facts, needed),
    checkLibraries(facts, needed),
    checkCuda(facts),
  ];
}

function checkWheel({ wheel, executable }: PythonFacts, needed: boolean): Finding {
  const name = [wheel.name, wheel.version].filter(Boolean).join(" ");
  if (wheel.problem === "") return ok("Mooncake package", `${name || "of unknown version"}, ${wheel.folder}`);
  const remedies =
    wheel.folder === ""
      ? [
          `${executable} -m pip install mooncake-transfer-engine-non-cuda (in a virtual environment, where the system's Python refuses)`,
          "Is it in another Python? MOONCAKE_KV_PYTHON=/path/to/python",
        ]
      : ["Mend what the message names: mostly a library of the system, see there"];
  return missing("Mooncake package", needed, `${name} can't be imported: ${wheel.problem}`.trim(), remedies);
}

function checkLibraries({ libraries }: PythonFacts, needed: boolean): Finding {
  const absent = libraries.filter(({ problem }) => problem !== "");
  if (absent.length === 0) return ok("system libraries", libraries.map(({ name }) => name).join(", "));
  return missing("system libraries", needed, absent.map(({ problem }) => problem).join("; "), [
    `apt-get install ${absent.map((library) => library.package).join(" ")}`,
  ]);
}

function checkCuda({ cuda }: PythonFacts): Finding {
  if (cuda.problem === "" && cuda.devices > 0)
    return ok("CUDA", `${cuda.devices} device${cuda.devices === 1 ? "" : "s"}`);
  return skipped("CUDA", `no device (${cuda.problem || "the driver sees none"}); nothing here needs one`);
}
