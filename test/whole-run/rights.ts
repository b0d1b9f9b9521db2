/**
 * Checks by the API server's audit log that Inlay did nothing without the account of a binding, and records which permissions it
 * used. After each test file, it reads the new part of the log.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { AnyObject, Api } from "../controller/api.ts";
import type { AuditedRequest, AuditLog, Written } from "../controller/audit.ts";
import { objectsIn } from "../controller/manifests.ts";
import { Named, type ServedKind } from "../controller/named.ts";
import { describeRight, isAdmitted, isBy, type Right, rightsIn, rightsOf } from "../controller/rights.ts";
import { AGGREGATED, Composing, type RightTerm } from "./composing.ts";

const manifests = join(import.meta.dirname, "..", "..", "deploy", "manifests");
const CONTROLLER = "system:serviceaccount:inlay-system:inlay-controller";
const REVIEWS = ["authorization.k8s.io/selfsubjectaccessreviews", "authorization.k8s.io/selfsubjectrulesreviews"];
/** The account of every installation, for the cluster or for a namespace. */
const CONTROLLERS = /^system:serviceaccount:([^:]+):inlay-controller$/;
/** The paths that RBAC permits to every authenticated user. */
const DESCRIBES_THE_API = /^\/(api|apis|openapi\/v3|readyz)([/?]|$)/;
/** The default account of compositions. A namespaced installation has none. */
const COMPOSITIONS = "system:serviceaccount:inlay-system:inlay-compositions";
const OPENED = "inlay.dev/aggregate-to-controller";
/** The time for which the API server may use the former state of a role. */
const LAG_MS = 5_000;
/** A text that sorts after every time. */
const NEVER = "~";

interface Term {
  from: string;
  until: string;
}

/** Whether a request is made as the account for Reloader's annotations, which is in the controller's namespace. */
const isReloading = ({ user, as }: AuditedRequest) => as === user.replace(/controller$/, "reloader");

const isComposing = ({ user, as }: AuditedRequest) => user === CONTROLLER && as === COMPOSITIONS;

/** A namespaced installation may not read how the versions of a kind convert, unless it has that permission. */
const isAboutVersions = ({ user, verb, resource }: AuditedRequest) =>
  user !== CONTROLLER && verb === "get" && resource === "apiextensions.k8s.io/customresourcedefinitions";

/** A namespaced installation reports OutOfScope on compositions, if it has the permission to read them. */
const isAboutCompositions = ({ user, resource }: AuditedRequest) =>
  user !== CONTROLLER && resource.startsWith("inlay.dev/bindingcompositions");

/** A namespaced installation checks the policies, if it has the permission to read them. */
const isAboutPolicies = ({ user, verb, resource }: AuditedRequest) =>
  user !== CONTROLLER && verb === "get" && resource.startsWith("admissionregistration.k8s.io/validatingadmissionpolic");

/**
 * The shipped permissions: of the controller, of the accounts for annotations and compositions, to impersonate these, and to read
 * the URLs of receivers.
 */
export interface ShippedRights {
  controller: Right[];
  reloader: Right[];
  opening: Right[];
  compositions: Right[];
  openingCompositions: Right[];
  notifying: Right[];
}

export async function shippedRights(): Promise<ShippedRights> {
  const controller = rightsIn(await readFile(join(manifests, "10-controller-role.yaml"), "utf8"));
  const [reloader, opening] = await rightsOfAccount("reloader.yaml");
  const [compositions, openingCompositions] = await rightsOfAccount("compositions.yaml");
  const [, notifying] = await rightsOfAccount("notifications.yaml");
  return { controller, reloader, opening, compositions, openingCompositions, notifying };
}

/** The permissions of the account in a manifest, and those to impersonate it. */
async function rightsOfAccount(manifest: string): Promise<[own: Right[], opening: Right[]]> {
  const shipped = await objectsIn(join(manifests, "optional", manifest));
  const ofKind = (kind: string): Right[] =>
    shipped.filter((each) => each.kind === kind).flatMap(({ rules = [] }) => rules.flatMap(rightsOf));
  return [ofKind("ClusterRole"), ofKind("Role")];
}

export interface UsedRights {
  rights: string[];
  reloaderRights: string[];
  compositionRights: string[];
}

/** Whether a request changed that ClusterRole or ClusterRoleBinding, or the namespaced kind if a namespace is given. */
const isAbout = (request: AuditedRequest, verb: string, plural: string, name: string, namespace = "") =>
  request.verb === verb &&
  request.resource === `rbac.authorization.k8s.io/${plural}` &&
  request.namespace === namespace &&
  request.name === name &&
  request.code < 300;

/** The time of the next such change after `since`, plus the time after which it is certainly effective. */
function whenNext(
  all: readonly AuditedRequest[],
  since: string,
  ...about: [verb: string, plural: string, name: string, namespace?: string]
): string {
  const times = all.filter((each) => each.at >= since && isAbout(each, ...about)).map(({ at }) => at);
  const [first] = times.sort();
  return first === undefined ? NEVER : moved(first, LAG_MS);
}

const moved = (at: string, ms: number) => new Date(Date.parse(at) + ms).toISOString();

const describeRequest = ({ verb, resource, namespace, name, as, uri, at }: AuditedRequest) =>
  `${at} ${verb} ${resource || uri} ${namespace}/${name}${as === undefined ? "" : ` as ${as}`}`;

/** Lists each request once. */
const assertNone = (what: string, requests: readonly AuditedRequest[]) =>
  assert.deepEqual(
    [...new Map(requests.map((each) => [describeRequest({ ...each, at: "" }), describeRequest(each)])).values()],
    [],
    what,
  );

export class RightsCheck {
  readonly #api: Api;
  readonly #log: AuditLog;
  readonly #rights: ShippedRights;
  #mark: number;
  /** The state of all files so far: permissions over time, and starts of API servers. */
  readonly #terms: AuditedRequest[] = [];
  readonly #roles: Written[] = [];
  readonly #kinds = new Map<string, ServedKind[]>();
  readonly #named = new Named([], this.#kinds);
  readonly #composing: Composing;
  #lent: RightTerm[] = [];
  #without: Term[] = [];

  /** Takes the log after `mark` into account. */
  constructor(api: Api, log: AuditLog, rights: ShippedRights, mark = 0) {
    this.#mark = mark;
    this.#api = api;
    this.#log = log;
    this.#rights = rights;
    this.#composing = new Composing(this.#kinds, rights.compositions);
  }

  /** Reads and checks the log since the last call. Returns the permissions that were used. */
  async check(): Promise<UsedRights> {
    const mark = this.#mark;
    this.#mark = await this.#log.mark();
    const all = [...(await this.#log.since(mark)), ...(await this.#log.watchesSince(mark))];
    await this.#learn(mark, all);
    const requests = all.filter(({ user }) => CONTROLLERS.test(user));
    const own = requests.filter(({ as, lacks }) => as === undefined && lacks !== "impersonation");
    const reloading = requests.filter(isReloading);
    const composing = requests.filter(isComposing);
    const impersonated = requests.filter((each) => each.as !== undefined && !isReloading(each) && !isComposing(each));

    assertNone(
      "refused, though no test took the right away",
      own.filter(
        (each) =>
          each.lacks === "a right" && !this.#isMeant(each) && !this.#isOtherAccount(each) && !isAboutVersions(each),
      ),
    );
    assertNone(
      "asked as itself for what its role does not grant",
      own.filter((each) => !this.isAllowed(each)),
    );
    assertNone(
      "acted as the account for annotations beyond its role",
      reloading.filter((each) => !this.#isForReloading(each)),
    );
    assertNone(
      "acted as the account for compositions beyond bindings, claims and its roles",
      composing.filter((each) => !this.isForComposing(each) || !hasGroupsOfAccount(each)),
    );
    assertNone(
      "acted as an account that no binding and no connection has",
      impersonated.filter((each) => !this.#named.isAccount(each) || !hasGroupsOfAccount(each)),
    );
    assertNone(
      "did as an account what no binding and no connection of that account names",
      impersonated.filter((each) => !this.isNamed(each)),
    );

    const admitted = requests.filter((each) => each.user === CONTROLLER && isAdmitted(each));
    const { controller, reloader, compositions, openingCompositions } = this.#rights;
    const used = (rights: Right[], by: AuditedRequest[]) =>
      rights.filter((right) => by.some((each) => isBy(right, each))).map(describeRight);
    const asItself = (by: AuditedRequest[]) => by.filter(isAdmitted).map((each) => ({ ...each, as: undefined }));
    return {
      rights: used(controller, admitted),
      reloaderRights: used(reloader, asItself(reloading)),
      compositionRights: [
        ...used(compositions, asItself(composing)),
        ...used(openingCompositions, composing.filter(isAdmitted)),
      ],
    };
  }

  /** Whether a request as the account for compositions is permitted. */
  isForComposing(request: AuditedRequest): boolean {
    if (REVIEWS.includes(request.resource)) return request.verb === "create";
    return this.#composing.isFor(request);
  }

  /** Whether a binding or VaultConnection of the account names the object of the request at its time. */
  isNamed(request: AuditedRequest): boolean {
    return REVIEWS.includes(request.resource) ? this.#named.isAccount(request) : this.#named.isFor(request);
  }

  /**
   * Whether the controller may make the request as itself. A namespaced installation has the same permissions in its namespace.
   */
  isAllowed(request: AuditedRequest): boolean {
    const { user, verb, resource, namespace, uri, at } = request;
    const { controller, opening, notifying } = this.#rights;
    if (resource === "") return verb === "get" && DESCRIBES_THE_API.test(uri);
    if (REVIEWS.includes(resource)) return verb === "create";
    if ([isAboutVersions, isAboutCompositions, isAboutPolicies].some((isAbout) => isAbout(request))) return true;
    const own = CONTROLLERS.exec(user)?.[1];
    if (user !== CONTROLLER && namespace !== own) return false;
    if (controller.some((right) => isBy(right, request)) || this.#isOtherAccount(request)) return true;
    if (namespace === own && [...opening, ...notifying].some((right) => isBy(right, request))) return true;
    const isTry = request.lacks !== undefined;
    return this.#lent.some(({ right, from, until }) => isBy(right, request) && from <= at && (isTry || at <= until));
  }

  /** Whether a test has removed a permission of the controller, or given it one for some time, such as to watch a kind. */
  #isMeant({ resource, at }: AuditedRequest): boolean {
    return (
      this.#without.some(({ from, until }) => from <= at && at <= until) ||
      this.#lent.some(({ right, from }) => right.resource === resource && from <= at)
    );
  }

  #isForReloading(request: AuditedRequest): boolean {
    const { resource, verb, lacks } = request;
    const writes = ["create", "update", "delete"].includes(verb);
    if (writes && ![...REVIEWS, "inlay.dev/secretbindings", "batch/jobs"].includes(resource)) return false;
    if (REVIEWS.includes(resource) || lacks !== undefined) return true;
    return this.#rights.reloader.some((right) => isBy(right, { ...request, as: undefined }));
  }

  /** The controller may read an account with another name than `inlay` if a Role in its namespace permits it. */
  #isOtherAccount(request: AuditedRequest): boolean {
    const { verb, resource, namespace, name } = request;
    const account = { ...request, as: `system:serviceaccount:${namespace}:${name}` };
    return resource === "serviceaccounts" && ["get", "list", "watch"].includes(verb) && this.#named.isAccount(account);
  }

  /** Records kinds, bindings, connections and roles since a mark. */
  async #learn(mark: number, all: readonly AuditedRequest[]): Promise<void> {
    await this.#learnKinds(mark);
    this.#named.take(await this.#log.written("SecretBinding", mark));
    this.#named.takeConnections(await this.#log.written("VaultConnection", mark));
    this.#roles.push(...(await this.#log.written("ClusterRole", mark)));
    this.#terms.push(
      ...all.filter(
        ({ resource, user }) =>
          resource.startsWith("rbac.authorization.k8s.io/") && (user === "system:apiserver" || !CONTROLLERS.test(user)),
      ),
    );
    this.#lent = this.#aggregatedBy(OPENED);
    this.#composing.take(await this.#log.written("BindingComposition", mark), this.#aggregatedBy(AGGREGATED));
    const ofController: [plural: string, name: string, namespace?: string][] = [
      ["clusterrolebindings", "inlay-controller"],
      ["rolebindings", "inlay-controller", "inlay-system"],
    ];
    this.#without = ofController.flatMap((about) =>
      this.#terms
        .filter((each) => isAbout(each, "delete", ...about))
        .map(({ at: from }) => ({ from, until: whenNext(this.#terms, from, "create", ...about) })),
    );
    // An API server that starts denies everything until it has read the roles.
    const begun = this.#terms.filter(
      ({ user, verb, uri }) => user === "system:apiserver" && verb === "list" && uri.endsWith("/clusterrolebindings"),
    );
    this.#without.push(...begun.map(({ at }) => ({ from: moved(at, -LAG_MS), until: moved(at, LAG_MS) })));
  }

  /** The permissions of all ClusterRoles with a label, from the time of each write until the deletion. */
  #aggregatedBy(label: string): RightTerm[] {
    const labelled = this.#roles.filter(({ object }) => object.metadata.labels?.[label] === "true");
    return labelled.flatMap(({ at: from, object }) => {
      const until = whenNext(this.#terms, from, "delete", "clusterroles", object.metadata.name);
      return (object.rules ?? []).flatMap(rightsOf).map((right: Right) => ({ right, from, until }));
    });
  }

  /** Records every kind that is served now, or was served by a CRD, by group and kind. */
  async #learnKinds(mark: number): Promise<void> {
    const note = (kind: string, served: ServedKind) => {
      const known = this.#kinds.get(kind) ?? [];
      const isKnown = known.some(
        ({ plural, namespaced }) => plural === served.plural && namespaced === served.namespaced,
      );
      if (!isKnown) this.#kinds.set(kind, [...known, served]);
    };
    const { groups } = await this.#api.get("/apis");
    const versions = groups.flatMap((group: AnyObject) =>
      group.versions.map(({ groupVersion }: AnyObject) => `/apis/${groupVersion}`),
    );
    await Promise.all(
      ["/api/v1", ...versions].map(async (path: string) => {
        const list = await this.#api.find(path);
        const [group] = path === "/api/v1" ? [""] : path.split("/").slice(2);
        for (const { kind, name, namespaced } of list?.resources ?? []) {
          if (!name.includes("/")) note(`${group}/${kind}`, { plural: name, namespaced });
        }
      }),
    );
    for (const { object } of await this.#log.written("CustomResourceDefinition", mark)) {
      const { group, names, scope } = object.spec;
      note(`${group}/${names.kind}`, { plural: names.plural, namespaced: scope === "Namespaced" });
    }
  }
}

function hasGroupsOfAccount({ as, asGroups }: AuditedRequest): boolean {
  const [, , namespace] = as?.split(":") ?? [];
  const groups = ["system:authenticated", "system:serviceaccounts", `system:serviceaccounts:${namespace}`];
  return [...asGroups].sort().join() === groups.join();
}
