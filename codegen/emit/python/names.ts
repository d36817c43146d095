/** `vllm-0.33` -> `vllm_0_33`: the module of a release. */
export function releaseModule(release: string): string {
  return release.replace(/[^a-z0-9]/g, "_");
}

const RESERVED: ReadonlySet<string> = new Set(
  "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield".split(
    " ",
  ),
);

/** The attribute that holds a member: its wire name, with an underscore behind a word that Python reserves. */
export function attributeName(wireName: string): string {
  return RESERVED.has(wireName) ? `${wireName}_` : wireName;
}
