import type { MemberModel, ReleaseModel, Shape, TypeModel } from "../../../src/wire/model.js";
import { memberName } from "./names.js";

/** The tagged type whose options are the events. */
const EVENT_TYPE = "KVCacheEvent";

/** A member in every release that has it. */
interface MemberHistory {
  readonly member: MemberModel;
  readonly since: string;
  readonly until: string;
}

/**
 * `event-fields.ts`: the members of each event in every release, as the hand-made reader and writer of events need them,
 * which take events by the thousands straight into typed arrays.
 */
export function eventFieldsModule(models: readonly ReleaseModel[]): string {
  const releases = models.map(({ release }) => release);
  return [
    'import type { EventKind } from "../../src/wire/event-field.js";',
    "",
    "/** What lies on the wire of each kind of event, in every release. */",
    "export const EVENT_KINDS: Readonly<Record<string, EventKind>> = {",
    ...eventNames(models).flatMap((name) => {
      const members = history(models, name);
      return [
        `  ${name}: {`,
        "    fields: [",
        ...members.map((member) => `      ${fieldOf(name, member, releases)},`),
        "    ],",
        `    build: (${members.length > 0 ? "values" : ""}) => ({`,
        `      type: ${JSON.stringify(name)},`,
        ...members.map(({ member }, index) => `      ${memberName(member.name)}: values[${index}],`),
        "    }),",
        "  },",
      ];
    }),
    "};",
    "",
  ].join("\n");
}

/** The events of all releases, the newest release's order first. */
function eventNames(models: readonly ReleaseModel[]): string[] {
  const names = models.toReversed().flatMap((model) => typeNamed(model, EVENT_TYPE)?.options ?? []);
  return [...new Set(names)];
}

function typeNamed({ families }: ReleaseModel, name: string): TypeModel | undefined {
  return families.flatMap(({ types }) => types).find((type) => type.name === name);
}

/**
 * The members of an event but for its tag. In the list form a member is known by its place, so that releases can only
 * have added members behind the others.
 */
function history(models: readonly ReleaseModel[], name: string): MemberHistory[] {
  const members: (MemberHistory & { until: string })[] = [];
  for (const model of models) {
    const own = typeNamed(model, name)?.members.filter((member) => member.name !== "type") ?? [];
    for (const [index, member] of own.entries()) {
      const known = members[index];
      if (known === undefined) members.push({ member, since: model.release, until: model.release });
      else if (known.member.name === member.name) known.until = model.release;
      else
        throw new Error(`${model.release} has ${name}.${member.name} where another has ${known.member.name}`);
    }
  }
  return members;
}

function fieldOf(
  event: string,
  { member, since, until }: MemberHistory,
  releases: readonly string[],
): string {
  const nullable = member.shape.kind === "nullable";
  const shape = member.shape.kind === "nullable" ? member.shape.of : member.shape;
  return JSON.stringify({
    name: member.name,
    member: memberName(member.name),
    kind: kindOf(shape, `${event}.${member.name}`),
    nullable,
    presence: member.optional ? (member.written ? "written" : "optional") : "always",
    ...(since !== releases[0] ? { since } : {}),
    ...(until !== releases.at(-1) ? { until } : {}),
  });
}

function kindOf(shape: Shape, where: string): string {
  switch (shape.kind) {
    case "integer":
      return "integer";
    case "text":
      return "text";
    case "uint64OrBytes":
      return "hash";
    case "list":
      return listKindOf(shape.items, where);
    default:
      throw new Error(`no event can have ${where}, which is ${shape.kind}`);
  }
}

function listKindOf(items: Shape, where: string): string {
  const inner = items.kind === "nullable" ? items.of : items;
  if (inner.kind === "uint64OrBytes") return "hashes";
  if (inner.kind === "integer" && inner.maximum < 2 ** 32) return "tokens";
  if (inner.kind === "list" && inner.items.kind === "any") return "anyLists";
  if (inner.kind === "list" && inner.items.kind === "integer") return "integerLists";
  throw new Error(`no event can have ${where}, a list of ${inner.kind}`);
}
