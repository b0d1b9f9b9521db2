/**
 * What bindings ever named, and since when: every SecretBinding that was stored comes in, and whether a request that was
 * made as an account is for something that a binding of that account names goes out.
 */
import { nameMatcher } from "../../src/model/glob.ts";
import type { AnyObject } from "./api.ts";
import type { AuditedRequest, Written } from "./audit.ts";

/** What may be done to what a binding names: a source is read, a target patched too, and one that is made all. */
const VERBS = {
  source: ["get", "list", "watch"],
  target: ["get", "list", "watch", "patch"],
  made: ["get", "list", "watch", "patch", "create", "delete"],
};

export interface ServedKind {
  plural: string;
  namespaced: boolean;
}

interface Place {
  /** Group and plural, as the audit log has it. */
  resource: string;
  /** Whether it may be in that namespace; in `""` is what belongs to the cluster. */
  isIn: (namespace: string) => boolean;
  /** Whether all of the kind may be listed at once, in all namespaces. */
  isAnywhere: boolean;
  isCalled: (name: string) => boolean;
}

interface Name extends Place {
  since: string;
  /** The binding's. */
  key: string;
  use: keyof typeof VERBS;
}

export class Named {
  /** By the namespace of the bindings. */
  readonly #names = new Map<string, Name[]>();
  /** By account: the bindings for which it acts, and since when. */
  readonly #accounts = new Map<string, { key: string; since: string }[]>();
  readonly #kinds: ReadonlyMap<string, ServedKind>;

  /** `kinds` are by group and kind: `apps/Deployment`. */
  constructor(bindings: readonly Written[], kinds: ReadonlyMap<string, ServedKind>) {
    this.#kinds = kinds;
    for (const { at, object } of bindings) this.#take(at, object);
  }

  /** Whether the account is that of a binding by then. */
  isAccount({ as = "", at }: AuditedRequest): boolean {
    return this.#accounts.get(as)?.some(({ since }) => since <= at) ?? false;
  }

  /** Whether a binding of the account names by then what the request is for, and for a use that needs that verb. */
  isFor(request: AuditedRequest): boolean {
    const { as = "", at, verb, resource } = request;
    // To the API server, a Namespace is in itself.
    const where = resource === "namespaces" ? "" : request.namespace;
    const keys = new Set(this.#accounts.get(as)?.flatMap(({ key, since }) => (since <= at ? [key] : [])));
    return (this.#names.get(namespaceOf(as)) ?? []).some(
      (name) =>
        name.since <= at &&
        name.resource === resource &&
        keys.has(name.key) &&
        VERBS[name.use].includes(verb) &&
        isAt(name, { ...request, namespace: where }),
    );
  }

  #take(since: string, { metadata, spec }: AnyObject): void {
    const { namespace } = metadata;
    const key = `${namespace}/${metadata.name}`;
    const account = `system:serviceaccount:${namespace}:${spec.serviceAccountName}`;
    this.#accounts.set(account, [...(this.#accounts.get(account) ?? []), { key, since }]);
    const names = this.#names.get(namespace) ?? [];
    this.#names.set(namespace, names);
    for (const source of spec.sources) names.push({ since, key, use: "source", ...sourceAt(source, namespace) });
    for (const target of spec.targets) {
      const use = target.create === undefined ? "target" : "made";
      const kind = this.#kinds.get(`${groupOf(target.apiVersion)}/${target.kind}`);
      // Nobody can ask for what was never served.
      if (kind !== undefined) names.push({ since, key, use, ...targetAt(target, kind, namespace) });
      if (target.namespaceSelector !== undefined) names.push({ since, key, use: "source", ...NAMESPACES });
    }
  }
}

/** Which namespaces there are is asked to find those that a target chooses. */
const NAMESPACES: Place = {
  resource: "namespaces",
  isIn: (namespace) => namespace === "",
  isAnywhere: true,
  isCalled: () => true,
};

function sourceAt({ secret, configMap, object }: AnyObject, own: string): Place {
  const { name, namespace = own } = secret ?? configMap ?? object;
  const where = object?.scope === "Cluster" ? "" : namespace;
  const resource = secret ? "secrets" : configMap ? "configmaps" : resourceOf(object.apiVersion, object.resource);
  return { resource, isIn: (each) => each === where, isAnywhere: where === "", isCalled: (each) => each === name };
}

function targetAt(target: AnyObject, { plural, namespaced }: ServedKind, own: string): Place {
  const { apiVersion, name, namespace = own, selector, namespaceSelector } = target;
  const isChosen = nameMatcher(namespaceSelector?.names);
  const where = namespaced ? namespace : "";
  return {
    resource: resourceOf(apiVersion, plural),
    isIn: namespaceSelector === undefined ? (each) => each === where : isChosen,
    isAnywhere: !namespaced || namespaceSelector !== undefined,
    isCalled: selector === undefined ? (each) => each === name : nameMatcher(selector.names),
  };
}

function isAt({ isIn, isAnywhere, isCalled }: Place, { verb, namespace, name }: AuditedRequest): boolean {
  if (name !== "") return isIn(namespace) && isCalled(name);
  return ["list", "watch"].includes(verb) && (namespace === "" ? isAnywhere : isIn(namespace));
}

const groupOf = (apiVersion: string) => (apiVersion.includes("/") ? (apiVersion.split("/")[0] ?? "") : "");
const resourceOf = (apiVersion: string, plural: string) => [groupOf(apiVersion), plural].filter(Boolean).join("/");
const namespaceOf = (account: string) => account.split(":")[2] ?? "";
