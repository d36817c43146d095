/** Schemes of stores that join a cluster. */
const JOINING = /^(?:mooncake|mooncake-native):[^?]*(?:\?(.*))?$/is;

/**
 * The URI for a command that only asks: it joins a cluster with no memory of its own, as a requester, whatever the
 * configuration says. Otherwise what engines put into that memory meanwhile would be lost when the command ends. A URI that
 * says `role` or `globalSegmentSize` itself stays as it is, and so do those of stores that join nothing.
 */
export function askOnly(uri: string): string {
  const match = JOINING.exec(uri);
  if (!match || givesMemoryItself(uri)) return uri;
  const query = match[1];
  const separator = query === undefined ? "?" : query === "" ? "" : "&";
  return `${uri}${separator}role=requester`;
}

/** Whether a store URI says how much memory its process gives to a cluster. */
export function givesMemoryItself(uri: string): boolean {
  const query = new URLSearchParams(JOINING.exec(uri)?.[1] ?? "");
  return query.has("role") || query.has("globalSegmentSize");
}
