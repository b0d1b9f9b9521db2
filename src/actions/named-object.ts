/** The objects that a user names on the command line, such as `vaultconnection/vault`. Pure. */
import type { Resource } from "../apimachinery/objects.ts";
import { BINDING_COMPOSITIONS, SECRET_BINDINGS, VAULT_CONNECTIONS } from "../apimachinery/resources.ts";
import { similarName } from "../apimachinery/suggest-names.ts";

export interface NamedObject {
  readonly resource: Resource;
  readonly name: string;
}

/** The kinds that can be synced, each with its short name. */
const KINDS: readonly (readonly [Resource, string])[] = [
  [SECRET_BINDINGS, "sb"],
  [BINDING_COMPOSITIONS, "bc"],
  [VAULT_CONNECTIONS, "vc"],
];
const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

/** How a user may write each kind: as kubectl accepts it. */
const resources = new Map(
  KINDS.flatMap(([resource, short]) => {
    const { group, kind, plural } = resource;
    const names = [kind.toLowerCase(), plural, `${plural}.${group}`, short];
    return names.map((name) => [name, resource] as const);
  }),
);

/** `NAME` of a SecretBinding, or `KIND/NAME`. Throws Error. */
export function namedObject(text: string): NamedObject {
  const [, kind = "secretbinding", name = ""] = /^(?:([^/]*)\/)?(.*)$/s.exec(text) ?? [];
  const resource = resources.get(kind.toLowerCase());
  const singular = KINDS.map(([{ kind: each }]) => each.toLowerCase());
  if (resource === undefined) {
    const suggested = similarName(kind.toLowerCase(), singular);
    const hint = suggested === undefined ? "" : ` Did you mean ${suggested}/${name}?`;
    throw new Error(`The kind is one of ${singular.join(", ")}.${hint}`);
  }
  if (name.length > 253 || !NAME.test(name))
    throw new Error("Set it to the name of one object, and -n to its namespace.");
  return { resource, name };
}

/** As kubectl prints it, such as `secretbinding.inlay.dev/harbor-s3`. */
export const textOf = ({ resource: { kind, group }, name }: NamedObject): string =>
  `${kind.toLowerCase()}.${group}/${name}`;
