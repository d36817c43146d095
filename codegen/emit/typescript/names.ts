/** `group_id` -> `groupId`. */
export function memberName(wireName: string): string {
  return wireName.replace(/_([a-z0-9])/g, (_match, letter: string) => letter.toUpperCase());
}

/** `KeyMetadata` -> `keyMetadata`, `KVEvent` -> `kvEvent`: the start of a function's or a constant's name. */
export function valueName(typeName: string): string {
  return typeName.replace(/^[A-Z]+(?=[A-Z][a-z]|$)|^[A-Z]/, (head) => head.toLowerCase());
}

/** `KeyMetadata` -> `KeyMetadataJson`: the type as it stands in JSON. */
export function wireTypeName(typeName: string): string {
  return `${typeName}Json`;
}

/** `KeyMetadata` -> `keyMetadataValidator`: the constant that holds a type's validator. */
export function validatorName(typeName: string): string {
  return `${valueName(typeName)}Validator`;
}

/** `vllm-0.33` -> `vllm033`. */
export function releaseName(release: string): string {
  return release.replace(/[^a-z0-9]/g, "");
}

/** `KeyMetadata` -> `keyMetadataSubject`: the constant that names a type in errors. */
export function subjectName(typeName: string): string {
  return `${valueName(typeName)}Subject`;
}
