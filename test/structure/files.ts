import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";

/** All files of the repository, committed or about to be, relative to its root. */
export function repositoryFiles(): string[] {
  const listed = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "-z"], {
    encoding: "utf8",
    maxBuffer: 1 << 26,
  });
  return listed.split("\0").filter((file) => file !== "" && existsSync(file));
}
