import { packageRoot, versionOfPackage } from "../../src/native/locations.js";
import { ARCHITECTURES, prebuild, problemsOf } from "./check.js";

// Looks at the addons that the package brings along, before it is packed.
//   node --import tsx scripts/prebuilds/main.ts [--required]
// What is wrong goes to stderr. Only with --required, as before publishing, it is a failure.

const root = packageRoot();
const problems = ARCHITECTURES.flatMap((arch) =>
  problemsOf(prebuild(root, arch), arch, versionOfPackage(root) ?? ""),
);
for (const problem of problems) console.error(`prebuilt addons: ${problem}`);
if (problems.length > 0) {
  const required = process.argv.includes("--required");
  console.error(
    `prebuilt addons: npm run build:prebuilds makes them; ${required ? "nothing is published without" : "this package goes without, and its users must compile"}`,
  );
  if (required) process.exitCode = 1;
}
