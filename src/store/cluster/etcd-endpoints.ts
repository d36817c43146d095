import { type HostPort, parseHostPort } from "./host-port.js";

/**
 * The members of an etcd cluster as Mooncake's etcd client takes them: `host:port`, each with its port, several of them
 * separated by `;` or `,`, with or without `http://` or `https://` before each. Mirrors `parseEtcdEndpoints` in Mooncake's
 * `etcd_wrapper.go`.
 *
 * @returns undefined when there is none, or one that no connection can be made to.
 */
export function parseEtcdEndpoints(text: string): HostPort[] | undefined {
  const members = text
    .split(/[;,]/)
    .map((member) => member.trim())
    .filter((member) => member !== "")
    .map((member) => parseHostPort(member.replace(/^https?:\/\//, "").replace(/\/$/, "")));
  if (members.length === 0 || members.includes(undefined)) return undefined;
  return members as HostPort[];
}
