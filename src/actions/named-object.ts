/** The objects that a user names on the command line, such as `vaultconnection/vault`. Pure. */
import type { Resource } from "../apimachinery/objects.ts";
import { RECONCILED } from "../apimachinery/resources.ts";
import { similarName } from "../apimachinery/suggest-names.ts";

export interface NamedObject {
  readonly resource: Resource;
  readonly name: string;
}

const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

/** How a user may write each kind: as kubectl accepts it. */
const resources = new Map(
  RECONCILED.flatMap((resource) => {
    const { group, kind, plural } = resource;
    // The initials, as in the CRDs.
    const short = kind.replace(/[a-z]/g, "").toLowerCase();
    const names = [kind.toLowerCase(), plural, `${plural}.${group}`, short];
    return names.map((name) => [name, resource] as const);
  }),
);

/** `NAME` of a SecretBinding, or `KIND/NAME`. Throws Error. */
export function namedObject(text: string): NamedObject {
  const [, kind = "secretbinding", name = ""] = /^(?:([^/]*)\/)?(.*)$/s.exec(text) ?? [];
  const resource = resources.get(kind.toLowerCase());
  const singular = RECONCILED.map(({ kind: each }) => each.toLowerCase());
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
