/** What a request asks for, in the words of RBAC: verb, resource and object. */
import type { Identity } from "./identity.ts";

/** The parts of a request that RBAC decides on. */
export interface Asked {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  identity: Identity;
}

/** The verbs that a method may have. The first one is assumed if the caller means another. */
const VERBS: Record<Asked["method"], readonly string[]> = {
  GET: ["get", "list", "watch"],
  POST: ["create"],
  PUT: ["update"],
  // An apply may create the object.
  PATCH: ["patch", "create"],
  DELETE: ["delete"],
};

/** The verb of the request: the one that the caller means, if the request can have it. */
export function verbOf({ method }: Asked, meant: string): string {
  const [first = meant] = VERBS[method];
  return VERBS[method].includes(meant) ? meant : first;
}

/** The object of the request; undefined if its path is none of a resource. */
export function objectOf({
  path,
}: Asked):
  | { resource: { group: string; version: string; plural: string }; namespace: string | undefined; name?: string }
  | undefined {
  const parts =
    /^\/(?:api|apis\/([^/]+))\/([^/]+)(?:\/namespaces\/([^/]+)(?=\/))?\/([^/?]+)(?:\/([^/?]+))?(?:\/([^/?]+))?/.exec(
      path,
    );
  if (parts === null) return undefined;
  const [, group = "", version = "", namespace, kind = "", name, subresource] = parts;
  const plural = subresource === undefined ? kind : `${kind}/${subresource}`;
  const named = name === undefined ? {} : { name: decodeURIComponent(name) };
  return { resource: { group, version, plural }, namespace, ...named };
}
