import type { Release } from "../../release.js";
import { UsageError } from "../usage-error.js";

/** The options that describe a LoRA adapter. */
export interface LoraOptions {
  readonly release: Release;
  readonly loraName?: string | undefined;
  readonly loraPath?: string | undefined;
}

/**
 * Checks that name and path of an adapter come together: releases from vllm-0.31 on hash both.
 *
 * @throws UsageError.
 */
export function checkLora({ release, loraName, loraPath }: LoraOptions): void {
  if (loraPath !== undefined && loraName === undefined)
    throw new UsageError("--lora-path without a LoRA name; add --lora-name");
  if (loraName !== undefined && loraPath === undefined && release !== "vllm-0.27")
    throw new UsageError(
      `--lora-name without a path; ${release} hashes both: add --lora-path, as the engine has it`,
    );
}
