/**
 * Records what bindings and VaultConnections have ever named, and since when. Decides whether a request as an account is for
 * something that a binding or connection of that account names.
 */
import { nameMatcher } from "../../src/apimachinery/glob.ts";
import { WORKLOAD_KINDS } from "../../src/workloads/workload.ts";
import type { AnyObject } from "./api.ts";
import type { AuditedRequest, Written } from "./audit.ts";

/**
 * The verbs that each use permits: a source is read, a target is also patched, and a created target needs all. A workload that
 * restarts is known from its watch, and read only where it has changed since.
 */
const VERBS = {
  source: ["get", "list", "watch"],
  target: ["get", "list", "watch", "patch"],
  made: ["get", "list", "watch", "patch", "create", "delete"],
  workload: ["get", "list", "watch", "patch"],
  listed: ["list"],
  watched: ["list", "watch"],
  evicted: ["create"],
  job: ["get", "create", "delete"],
  run: ["create"],
  login: ["create"],
};

export interface ServedKind {
  plural: string;
  namespaced: boolean;
}

interface Place {
  /** Group and plural, as in the audit log. */
  resource: string;
  /** Whether the object may be in that namespace. The namespace `""` means cluster-scoped. */
  isIn: (namespace: string) => boolean;
  /** Whether a request may list all objects of the kind, in all namespaces. */
  isAnywhere: boolean;
  isCalled: (name: string) => boolean;
}

/** A text that sorts after every time. */
const NEVER = "~";

interface Name extends Place {
  since: string;
  /** The key of the binding or connection. */
  key: string;
  use: keyof typeof VERBS;
  /** For a login: the VaultConnection through which the account of a binding logs in. */
  through?: string;
}

/** Which kinds of workloads a step looks for, if it names none. */
const KINDS = ["Deployment", "StatefulSet", "DaemonSet"];

export class Named {
  /** What bindings and connections name, by their namespace and by group and plural. */
  readonly #names = new Map<string, Name[]>();
  /** By account: the bindings and connections that use it, and since when. */
  readonly #accounts = new Map<string, Map<string, string>>();
  /** The VaultConnections through which the accounts of bindings log in, and since when. */
  readonly #loginsOfBindings = new Map<string, string>();
  readonly #kinds: ReadonlyMap<string, readonly ServedKind[]>;

  /** `kinds` are all kinds that were ever served, by group and kind, such as `apps/Deployment`. More may be added later. */
  constructor(bindings: readonly Written[], kinds: ReadonlyMap<string, readonly ServedKind[]>) {
    this.#kinds = kinds;
    this.take(bindings);
  }

  /** Records more bindings, whose kinds are known by now. */
  take(bindings: readonly Written[]): void {
    for (const { at, object } of bindings) this.#take(at, object);
  }

  /** Records more VaultConnections. */
  takeConnections(connections: readonly Written[]): void {
    for (const { at, object } of connections) this.#takeConnection(at, object);
  }

  /** Whether a binding or connection used the account at the time of the request. */
  isAccount({ as = "", at }: AuditedRequest): boolean {
    for (const since of this.#accounts.get(as)?.values() ?? []) if (since <= at) return true;
    return false;
  }

  /** Whether a binding or connection of the account names the object of the request at its time, for a use with that verb. */
  isFor(request: AuditedRequest): boolean {
    const { as = "", at, verb, resource } = request;
    // The API server reports a Namespace as an object in itself.
    const where = resource === "namespaces" ? "" : request.namespace;
    const acts = this.#accounts.get(as);
    return (this.#names.get(`${namespaceOf(as)} ${resource}`) ?? []).some(
      (name) =>
        name.since <= at &&
        (acts?.get(name.key) ?? NEVER) <= at &&
        (name.through === undefined || (this.#loginsOfBindings.get(name.through) ?? NEVER) <= at) &&
        VERBS[name.use].includes(verb) &&
        isAt(name, { ...request, namespace: where }),
    );
  }

  #take(since: string, { metadata, spec }: AnyObject): void {
    const { namespace } = metadata;
    const key = `${namespace}/${metadata.name}`;
    this.#actsFor(key, since, namespace, spec);
    const note = (use: Name["use"], place: Place) => this.#note(namespace, { since, key, use, ...place });
    for (const { vault } of spec.sources) {
      if (vault === undefined) continue;
      const { name, namespace: where = namespace } = vault.connection;
      const login = { since, key, use: "login" as const, through: `${where}/${name}` };
      this.#note(namespace, { ...login, ...tokenOf(spec.serviceAccountName, namespace) });
    }
    // The source of a test's own kind has no object.
    const objects = spec.sources.filter(({ secret, configMap, object }: AnyObject) => secret ?? configMap ?? object);
    for (const source of objects) note("source", sourceAt(source, namespace));
    if (spec.sources.some(({ providerClass }: AnyObject) => providerClass)) note("watched", statusesIn(namespace));
    for (const target of spec.targets) {
      const use = target.create === undefined ? "target" : "made";
      const kinds = this.#kinds.get(`${groupOf(target.apiVersion)}/${target.kind}`) ?? [];
      for (const kind of kinds) note(use, targetAt(target, kind, namespace));
      if (target.namespaceSelector !== undefined) note("source", NAMESPACES);
    }
    // After a denied request, Inlay may ask whether the namespace exists.
    for (const { namespace: other } of [...objects.flatMap(Object.values), ...spec.targets])
      if (other !== undefined) note("source", { ...NAMESPACES, isAnywhere: false, isCalled: (each) => each === other });
    for (const group of spec.rollout?.steps ?? [spec.rollout ?? {}]) {
      for (const place of this.#workloadsOf(group, spec, namespace)) {
        note("workload", place);
        note("listed", { ...place, resource: "policy/poddisruptionbudgets" });
        // Their age shows whether the workload has the new values already.
        for (const resource of ["apps/replicasets", "apps/controllerrevisions"])
          note("listed", { ...place, resource, isCalled: () => true });
        if (group.consumersOf || group.consumersOfTargets)
          note("watched", { ...place, resource: "secrets-store.csi.x-k8s.io/secretproviderclasses" });
        if (spec.rollout.runCronJobs && place.resource === "batch/cronjobs")
          note("run", { ...place, resource: "batch/jobs", isCalled: () => true });
        if (place.resource === "batch/jobs") note("job", { ...place, isCalled: () => true });
        // Their age shows whether they have the new values although their restart was reverted.
        note("listed", { ...place, resource: "pods" });
        if (!spec.rollout.replacePods) continue;
        note("evicted", { ...place, resource: "pods/eviction", isCalled: () => true });
      }
    }
  }

  #takeConnection(since: string, { metadata, spec }: AnyObject): void {
    const { namespace, name } = metadata;
    const key = `VaultConnection ${namespace}/${name}`;
    this.#actsFor(key, since, namespace, spec);
    const { kubernetes, appRole, token } = spec.auth ?? {};
    for (const place of [spec.tls?.ca, appRole?.secretID, token]) {
      if (place !== undefined) this.#note(namespace, { since, key, use: "source", ...sourceAt(place, namespace) });
    }
    if (kubernetes?.as === "Connection")
      this.#note(namespace, { since, key, use: "login", ...tokenOf(spec.serviceAccountName, namespace) });
    if (kubernetes?.as === "Binding") keepEarliest(this.#loginsOfBindings, `${namespace}/${name}`, since);
  }

  #actsFor(key: string, since: string, namespace: string, { serviceAccountName }: AnyObject): void {
    const account = `system:serviceaccount:${namespace}:${serviceAccountName}`;
    const acts = this.#accounts.get(account) ?? new Map<string, string>();
    this.#accounts.set(account, acts);
    keepEarliest(acts, key, since);
  }

  #note(namespace: string, name: Name): void {
    const at = `${namespace} ${name.resource}`;
    const names = this.#names.get(at);
    if (names === undefined) this.#names.set(at, [name]);
    else names.push(name);
  }

  /** The places in which a rollout, or a step of it, finds workloads. */
  #workloadsOf(
    { consumersOf = [], consumersOfTargets, ownedByTargets, kinds = KINDS, targets = [] }: AnyObject,
    { sources, targets: written }: { sources: AnyObject[]; targets: AnyObject[] },
    own: string,
  ) {
    const wanted = new Set<string>(consumersOf);
    const read = sources.filter(({ name, secret, configMap, providerClass }) =>
      wanted.has(name ?? (secret ?? configMap ?? providerClass)?.name),
    );
    const among: AnyObject[] = read.map(({ secret, configMap }) => ({ namespace: (secret ?? configMap)?.namespace }));
    if (ownedByTargets) among.push({ namespace: own });
    if (consumersOfTargets) among.push(...written.filter(({ kind }) => kind === "Secret" || kind === "ConfigMap"));
    const all: AnyObject[] = among.flatMap(({ namespace = own, namespaceSelector }) =>
      kinds.map((kind: string) => ({ kind, namespace, namespaceSelector, selector: {} })),
    );
    return [...all, ...targets].flatMap((each) => {
      const { apiVersion = WORKLOAD_KINDS[each.kind as keyof typeof WORKLOAD_KINDS]?.apiVersion } = each;
      if (apiVersion === undefined) return [];
      const served = this.#kinds.get(`${groupOf(apiVersion)}/${each.kind}`) ?? [];
      return served.map((kind) => targetAt({ ...each, apiVersion }, kind, own));
    });
  }
}

/** The log has requests in the order in which they ended. */
function keepEarliest(times: Map<string, string>, key: string, since: string): void {
  const known = times.get(key);
  if (known === undefined || since < known) times.set(key, since);
}

/** An account may create a token of its own only. */
const tokenOf = (account: string, own: string): Place => ({
  resource: "serviceaccounts/token",
  isIn: (namespace) => namespace === own,
  isAnywhere: false,
  isCalled: (name) => name === account,
});

/** The reports of the driver about pods, for any class. */
const statusesIn = (own: string): Place => ({
  resource: "secrets-store.csi.x-k8s.io/secretproviderclasspodstatuses",
  isIn: (namespace) => namespace === own,
  isAnywhere: false,
  isCalled: () => true,
});

/** Inlay lists namespaces for a target with a namespaceSelector. */
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
  const isChosen = nameMatcher(namespaceSelector?.names, namespaceSelector?.exceptNames);
  const where = namespaced ? namespace : "";
  return {
    resource: resourceOf(apiVersion, plural),
    isIn: namespaceSelector === undefined ? (each) => each === where : isChosen,
    // Many bindings of an account may name a namespace each, so one list of all namespaces may serve them.
    isAnywhere: !namespaced || namespaceSelector !== undefined || namespace !== own,
    isCalled: selector === undefined ? (each) => each === name : nameMatcher(selector.names, selector.exceptNames),
  };
}

function isAt({ isIn, isAnywhere, isCalled }: Place, { verb, namespace, name }: AuditedRequest): boolean {
  const isCollected = ["list", "watch"].includes(verb) && (namespace === "" ? isAnywhere : isIn(namespace));
  if (name !== "") return (isIn(namespace) || isCollected) && isCalled(name);
  // The log has no name of a request that was denied before its body was read.
  return verb === "create" ? isIn(namespace) : isCollected;
}

const groupOf = (apiVersion: string) => (apiVersion.includes("/") ? (apiVersion.split("/")[0] ?? "") : "");
const resourceOf = (apiVersion: string, plural: string) => [groupOf(apiVersion), plural].filter(Boolean).join("/");
const namespaceOf = (account: string) => account.split(":")[2] ?? "";
