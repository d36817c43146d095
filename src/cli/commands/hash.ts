import type { Command } from "commander";
import {
  type BlobBlockHashes,
  BlockHasher,
  DEFAULT_HASH_ALGORITHM,
  type HashAlgorithm,
  type HashRequest,
} from "../../hash/index.js";
import { DEFAULT_RELEASE, type Release } from "../../release.js";
import type { CommandContext } from "../command.js";
import { readHashRequest } from "../input/hash-request.js";
import { checkLora } from "../input/lora.js";
import { checkNoneHash } from "../input/none-hash.js";
import { readInput } from "../input/read-input.js";
import { unshareableRoot } from "../input/shared-root.js";
import { jsonText } from "../json.js";
import {
  addFileOption,
  addJsonOption,
  algorithmOption,
  type FileOption,
  hexOption,
  type JsonOption,
  releaseOption,
  wholeOption,
} from "../options.js";
import { count } from "../text.js";
import { UsageError } from "../usage-error.js";

interface HashOptions extends JsonOption, FileOption {
  readonly release: Release;
  readonly algorithm: HashAlgorithm;
  readonly blockSize: number;
  readonly seed?: string | undefined;
  readonly noneHash?: Uint8Array | undefined;
  readonly lookahead: number;
  readonly loraName?: string | undefined;
  readonly loraPath?: string | undefined;
  readonly cacheSalt?: string | undefined;
  readonly privateRoot?: true | undefined;
  readonly verbose?: true | undefined;
}

/** Where the root of the chain came from. */
type SeedSource = "--seed" | "PYTHONHASHSEED" | "--none-hash" | "default" | "random";

const PRIVATE_ROOT = ". --private-root hashes from a random root all the same";

const HELP = `
Token ids: as arguments, in a file or on stdin; with spaces or commas between them, as a JSON array, or as a JSON
object with the fields of vLLM's request, all but the first optional:
  {"prompt_token_ids": [1, 2, 3], "lora_request": {"lora_name": "a", "lora_path": "/p"}, "cache_salt": "s",
   "mm_features": [{"identifier": "id", "mm_position": {"offset": 5, "length": 10}}],
   "prompt_embeds": {"data": "<hex>", "rows": 4}, "prompt_is_token_ids": [true, false]}

Prints one line a full block: START END HASH. A tail shorter than a block has no hash.

Hashes match an engine only if release, algorithm, block size and seed do. As the engine does, this command takes
PYTHONHASHSEED from the environment; --seed replaces it. --verbose and --json say which seed and root were used.`;

/** `mooncake-kv hash` */
export function define(command: Command, context: CommandContext): void {
  command
    .argument("[tokens...]", "token ids")
    .addOption(releaseOption().default(DEFAULT_RELEASE))
    .addOption(algorithmOption().default(DEFAULT_HASH_ALGORITHM))
    .addOption(wholeOption("--block-size <tokens>", "tokens of one hashed block", 1).default(16))
    .option("--seed <text>", "PYTHONHASHSEED of the engine (default: that of the environment)")
    .addOption(hexOption("--none-hash <hex>", "root of the chain, where it is known").conflicts("seed"))
    .addOption(
      wholeOption("--lookahead <tokens>", "tokens after a block that its hash covers too").default(0),
    )
    .option("--lora-name <name>", "name of the LoRA adapter")
    .option("--lora-path <path>", "path of the LoRA adapter")
    .option("--cache-salt <text>", "cache salt of the request")
    .option("--private-root", "allow a root that no other process can compute")
    .option("-v, --verbose", "begin with the settings, as lines that start with #");
  addJsonOption(addFileOption(command, "token ids"))
    .addHelpText("after", HELP)
    .action((tokens: readonly string[], options: HashOptions) => run(tokens, options, context));
}

async function run(tokens: readonly string[], options: HashOptions, context: CommandContext): Promise<void> {
  checkNoneHash(options);
  // What the options leave out of an adapter may stand in the input.
  if (options.loraName !== undefined) checkLora(options);
  const seed = options.noneHash ? undefined : (options.seed ?? context.env["PYTHONHASHSEED"]);
  const hasher = await BlockHasher.create({
    release: options.release,
    algorithm: options.algorithm,
    blockSize: options.blockSize,
    seed,
    ...(options.noneHash && { noneHash: options.noneHash }),
    numHashLookaheadTokens: options.lookahead,
    rootSharing: "private",
  });
  if (!hasher.shareable && !options.privateRoot) throw unshareableRoot(hasher, PRIVATE_ROOT);
  const input = await readInput(context, { args: tokens, file: options.file, what: "token ids" });
  const session = hasher.session(withOptions(readHashRequest(input), options));
  session.advance();
  const { hashes } = session;
  const settings = {
    release: hasher.release,
    algorithm: hasher.algorithm,
    block_size: hasher.blockSize,
    seed: hasher.seed ?? null,
    seed_source: seedSource(options, seed, hasher),
    none_hash: Buffer.from(hasher.noneHash).toString("hex"),
    num_tokens: session.numTokens,
  };
  if (options.json) {
    const listed = mapped(hexOf(hashes), (hash, block) => (block === 0 ? `"${hash}"` : `,"${hash}"`));
    await context.stdout.write(`${jsonText(settings).slice(0, -1)},"block_hashes":[`);
    for (const text of listed) await context.stdout.write(text);
    await context.stdout.line("]}");
    return;
  }
  if (options.verbose)
    await context.stdout.lines(
      Object.entries(settings).map(([name, value]) => `# ${name} ${JSON.stringify(value)}`),
    );
  await context.stdout.lines(
    mapped(
      hexOf(hashes),
      (hash, block) => `${block * hasher.blockSize} ${(block + 1) * hasher.blockSize} ${hash}`,
    ),
  );
  if (hashes.length === 0)
    await context.stderr.line(
      `mooncake-kv: no hashes: ${count(session.numTokens, "token")} fill no block of ${hasher.blockSize}`,
    );
}

/** The request with what the options say about it; an option wins. */
function withOptions(request: HashRequest, { loraName, loraPath, cacheSalt }: HashOptions): HashRequest {
  const lora = request.loraRequest;
  const name = loraName ?? lora?.loraName;
  const path = loraPath ?? (loraName === undefined ? lora?.loraPath : undefined);
  if (path !== undefined && name === undefined)
    throw new UsageError("--lora-path without a LoRA name; add --lora-name");
  return {
    ...request,
    ...(name !== undefined && {
      loraRequest: { loraName: name, ...(path !== undefined && { loraPath: path }) },
    }),
    ...(cacheSalt !== undefined && { cacheSalt }),
  };
}

/** The hashes as hex, one after the other: there may be millions. */
function* hexOf(hashes: BlobBlockHashes): Generator<string> {
  for (let index = 0; index < hashes.length; index++) yield Buffer.from(hashes.at(index)!).toString("hex");
}

function* mapped(texts: Iterable<string>, map: (text: string, index: number) => string): Generator<string> {
  let index = 0;
  for (const text of texts) yield map(text, index++);
}

function seedSource(options: HashOptions, seed: string | undefined, hasher: BlockHasher): SeedSource {
  if (options.noneHash) return "--none-hash";
  if (options.seed !== undefined) return "--seed";
  if (seed !== undefined) return "PYTHONHASHSEED";
  return hasher.shareable ? "default" : "random";
}
