import type { Command } from "commander";
import { isMooncakeKvError, MooncakeKvError } from "../errors.js";

/** Names of the API that an option or a member of the input calls otherwise. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  numHashLookaheadTokens: "--lookahead",
  dcpWorldSize: "--dcp-size",
  totalKvHeads: "--num-kv-heads",
  prefixMatchUnit: "--hash-block-size",
  schedulerBlockSize: "the common multiple of the groups' block sizes",
};

/** Members of the input, which has vLLM's names. */
const MEMBERS: readonly string[] = [
  ...[
    "promptTokenIds",
    "promptEmbeds",
    "promptIsTokenIds",
    "loraRequest",
    "loraName",
    "loraPath",
    "cacheSalt",
  ],
  ...["mmFeatures", "cachePrefix", "modelName", "storeNamespace", "tpRank", "pcpRank", "dcpRank", "ppRank"],
  ...["groupId", "blockSize", "hashBlockSize", "localTpSize", "storeTpSize", "numKvHeads", "numBlocks"],
  ...["blockIds", "shardIds", "storageAddress", "storageBytes", "elementSize", "tokenLen", "maskNum"],
  ...["chunkMask", "putStep", "putStepRank"],
];

/**
 * The error in the words of the command: what the API calls `noneHash` is `--none-hash` here, and what no option names is a
 * member of the input, `mm_features`. Texts in quotes are other people's and stay as they are.
 */
export function inTermsOfOptions(error: unknown, command: Command | undefined): unknown {
  if (command === undefined || !isMooncakeKvError(error)) return error;
  const names = new Map(
    command.options.map((option) => [option.attributeName(), option.long ?? option.short]),
  );
  const message = error.message
    .split(/("(?:[^"\\]|\\.)*")/)
    .map((part, index) => (index % 2 === 1 ? part : part.replace(WORD, (word) => term(word, names))))
    .join("");
  if (message === error.message) return error;
  const said = new MooncakeKvError(error.code, message, error.details, { cause: error });
  if (error.stack !== undefined) said.stack = error.stack;
  return said;
}

/** A path of members, as `loraRequest.loraName`, or a single name. */
const WORD = /(?<![\w./-])[a-z]+(?:[A-Z][a-z]*)+(?:\[\d+\])?(?:\.\w+)*(?![\w/])/g;

function term(word: string, options: ReadonlyMap<string, string | undefined>): string {
  const option = options.get(word) ?? (Object.hasOwn(OTHER_NAMES, word) ? OTHER_NAMES[word] : undefined);
  if (option !== undefined) return option;
  const [first = ""] = /^[a-zA-Z]+/.exec(word) ?? [];
  return MEMBERS.includes(first) ? word.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) : word;
}
