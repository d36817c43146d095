import type { CommandModule } from "./command.js";

/** A command, or a group of commands, as the root help shows it. Nothing of it is loaded before it is addressed. */
export type CommandEntry = LazyCommand | CommandGroup;

/** A command with its own file. */
export interface LazyCommand {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<CommandModule>;
}

/** Commands that share a first word. */
export interface CommandGroup {
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly LazyCommand[];
}

/** Every command, in the order of the help. A new command is one file and one entry here. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "demo",
    summary: "save, look up, load and verify the KV blocks of a real prompt",
    load: () => import("./commands/demo.js"),
  },
  {
    name: "hash",
    summary: "block hashes of token ids, as vLLM computes them",
    load: () => import("./commands/hash.js"),
  },
  {
    name: "key",
    summary: "build store keys, or take them apart (key build, key parse)",
    commands: [
      {
        name: "build",
        summary: "store keys of block hashes",
        load: () => import("./commands/key-build.js"),
      },
      {
        name: "parse",
        summary: "what a store key says",
        load: () => import("./commands/key-parse.js"),
      },
    ],
  },
  {
    name: "chunks",
    summary: "token ranges that are stored as one object each, with their hashes",
    load: () => import("./commands/chunks.js"),
  },
  {
    name: "layout",
    summary: "memory segments and keys of blocks, from tensor geometry",
    load: () => import("./commands/layout.js"),
  },
  {
    name: "lookup",
    summary: "how much of a prompt a store or a running engine holds",
    load: () => import("./commands/lookup.js"),
  },
  {
    name: "validate",
    summary: "check JSON against a wire type of a vLLM release",
    load: () => import("./commands/validate.js"),
  },
  {
    name: "conformance",
    summary: "run golden vector files against this implementation",
    load: () => import("./commands/conformance.js"),
  },
  {
    name: "doctor",
    summary: "what is there and what is missing: addon, compiler, Python, Mooncake, cluster",
    load: () => import("./commands/doctor.js"),
  },
  {
    name: "build",
    summary: "compile the native addon of this package",
    load: () => import("./commands/build.js"),
  },
];
