/**
 * Nothing that the controller did in this run went round the binding's account, and none of its own rights is too many:
 * by the API server's own audit log, which knows no exception.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject, Api } from "../controller/api.ts";
import type { AuditedRequest } from "../controller/audit.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { Named, type ServedKind } from "../controller/named.ts";
import { newNeighbours } from "../controller/neighbours.ts";
import { reloaderFile } from "../controller/reloader.ts";
import { CONTROLLER, loggedUntilNow } from "../controller/requests.ts";
import { describeRight, isAdmitted, isBy, type Right, rightsIn, rightsOf } from "../controller/rights.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { newTeam, type Team } from "../controller/team.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");
const REVIEWS = "authorization.k8s.io/selfsubjectaccessreviews";
/** Whatever is installed, for the cluster or for a namespace, has this account. */
const CONTROLLERS = /^system:serviceaccount:([^:]+):inlay-controller$/;
/** As the account for Reloader's annotations, which stands beside the controller. */
const isReloading = ({ user, as }: AuditedRequest) => as === user.replace(/controller$/, "reloader");
/** What RBAC lets everybody ask who is authenticated. */
const DESCRIBES_THE_API = /^\/(api|apis|openapi\/v3)([/?]|$)/;
const OPENED = "inlay.dev/aggregate-to-controller";
/** The API server goes by a role for a moment after it has changed. */
const LAG_MS = 5_000;

/** A text that sorts after every time. */
const NEVER = "~";

interface Term {
  from: string;
  until: string;
}

/** Of a role or binding of the cluster, unless a namespace is given. */
const isAbout = (request: AuditedRequest, verb: string, plural: string, name: string, namespace = "") =>
  request.verb === verb &&
  request.resource === `rbac.authorization.k8s.io/${plural}` &&
  request.namespace === namespace &&
  request.name === name &&
  request.code < 300;

/** When that was done to a role or binding the next time, and the API server went by it for certain. */
function whenNext(
  all: readonly AuditedRequest[],
  since: string,
  ...about: [verb: string, plural: string, name: string, namespace?: string]
): string {
  const times = all.filter((each) => each.at > since && isAbout(each, ...about)).map(({ at }) => at);
  const [next = NEVER] = times.sort();
  return next === NEVER ? next : moved(next, LAG_MS);
}

const moved = (at: string, ms: number) => new Date(Date.parse(at) + ms).toISOString();

const describeRequest = ({ verb, resource, namespace, name, as, uri, at }: AuditedRequest) =>
  `${at} ${verb} ${resource || uri} ${namespace}/${name}${as === undefined ? "" : ` as ${as}`}`;

/** Each is told once. */
const assertNone = (requests: readonly AuditedRequest[]) =>
  assert.deepEqual(
    [...new Map(requests.map((each) => [describeRequest({ ...each, at: "" }), describeRequest(each)])).values()],
    [],
  );

describe("in the whole run the controller", function () {
  this.timeout("2m");
  let team: Team;
  let requests: AuditedRequest[];
  let own: AuditedRequest[];
  let impersonated: AuditedRequest[];
  /** As an account that is nobody's but Inlay's. */
  let reloading: AuditedRequest[];
  let rights: Right[];
  /** Of that account, by its role. */
  let reloaders: Right[];
  /** The controller's own, to act as it. */
  let opening: Right[];
  let named: Named;
  /** Rights that there were for some time, such as to watch a kind that the platform opened. */
  let lent: (Term & { right: Right })[];
  /** When the controller lacked a right, since a test took it away or ended the API server. */
  let without: Term[];

  before("has done all that it does, at least once", async () => {
    const { both } = await newNeighbours();
    const labels = { "kubernetes.io/metadata.name": both.reader.namespace };
    await both.grant("bucket", { from: [{ namespaceSelector: { matchLabels: labels } }] });
    await both.reader.bind("harbor-s3", both.spec());
    await both.reader.until("harbor-s3", "Synced");
    await stopSharedController();
    const controller = new ControllerProcess(controlPlane(), "--leader-elect");
    team = await newTeam({ controller: false });
    try {
      await controller.start();
      await team.boundHarbor({ onRelease: "Remove" });
      await team.unbind("harbor-s3");
      await eventually(async () => assert.notDeepEqual(await team.events("harbor-s3"), []));
    } finally {
      await controller.stop();
    }
    await loggedUntilNow(team);

    const log = auditLog();
    const all = [...(await log.since(0)), ...(await log.watchesSince(0))];
    requests = all.filter(({ user }) => CONTROLLERS.test(user));
    own = requests.filter(({ as, lacks }) => as === undefined && lacks !== "impersonation");
    impersonated = requests.filter((each) => each.as !== undefined && !isReloading(each));
    reloading = requests.filter(isReloading);
    rights = rightsIn(await readFile(join(deploy, "manifests", "10-controller-role.yaml"), "utf8"));
    const shipped = parseAllDocuments(await readFile(reloaderFile, "utf8")).map((document) => document.toJS());
    const rightsOfKind = (kind: string): Right[] =>
      shipped.filter((each) => each.kind === kind).flatMap(({ rules }) => rules.flatMap(rightsOf));
    [reloaders, opening] = [rightsOfKind("ClusterRole"), rightsOfKind("Role")];
    named = new Named(await log.written("SecretBinding"), await servedKinds(team.api));
    lent = (await log.written("ClusterRole"))
      .filter(({ object }) => object.metadata.labels?.[OPENED] === "true")
      .flatMap(({ at: from, object }) => {
        const until = whenNext(all, from, "delete", "clusterroles", object.metadata.name);
        return object.rules.flatMap(rightsOf).map((right: Right) => ({ right, from, until }));
      });
    const ofController: [plural: string, name: string, namespace?: string][] = [
      ["clusterrolebindings", "inlay-controller"],
      ["rolebindings", "inlay-controller", "inlay-system"],
    ];
    without = ofController.flatMap((about) =>
      all
        .filter((each) => isAbout(each, "delete", ...about))
        .map(({ at: from }) => ({ from, until: whenNext(all, from, "create", ...about) })),
    );
    // An API server that begins anew refuses all until it has read the roles.
    const begun = all.filter(
      ({ user, verb, uri }) => user === "system:apiserver" && verb === "list" && uri.endsWith("/clusterrolebindings"),
    );
    without.push(...begun.map(({ at }) => ({ from: moved(at, -LAG_MS), until: moved(at, LAG_MS) })));
  });

  it("had the rights that are shipped and no others, but for accounts that tests opened", async () => {
    const RBAC = "/apis/rbac.authorization.k8s.io/v1";
    const ofController = (bindings: AnyObject) =>
      bindings.items.filter(({ subjects = [] }: AnyObject) =>
        subjects.some(
          ({ kind, namespace, name }: AnyObject) =>
            kind === "ServiceAccount" && CONTROLLER === `system:serviceaccount:${namespace}:${name}`,
        ),
      );
    const wide = ofController(await team.api.get(`${RBAC}/clusterrolebindings`));
    assert.deepEqual(wide.map(({ roleRef }: AnyObject) => roleRef.name).sort(), [
      "inlay-controller",
      "inlay-shared-watches",
    ]);
    const { rules } = await team.api.get(`${RBAC}/clusterroles/inlay-controller`);
    const granted: Right[] = rules.flatMap(rightsOf);
    for (const { metadata, roleRef } of ofController(await team.api.get(`${RBAC}/rolebindings`))) {
      assert.equal(roleRef.kind, "Role");
      const role = await team.api.find(`${RBAC}/namespaces/${metadata.namespace}/roles/${roleRef.name}`);
      const inRole: Right[] = (role?.rules ?? []).flatMap(rightsOf);
      if (metadata.namespace === "inlay-system") granted.push(...inRole);
      else assert.ok(inRole.every(({ resource, name }) => resource === "serviceaccounts" && name !== undefined));
    }
    assert.deepEqual(granted.map(describeRight).sort(), rights.map(describeRight).sort());
  });

  it("used every right of its own", () => {
    const admitted = requests.filter((each) => each.user === CONTROLLER && isAdmitted(each));
    assert.deepEqual(rights.filter((right) => !admitted.some((each) => isBy(right, each))).map(describeRight), []);
  });

  it("was refused none that it asked for, but where a test took it away", () => {
    const isMeant = ({ resource, at }: AuditedRequest) =>
      without.some(({ from, until }) => from <= at && at <= until) ||
      lent.some(({ right, from }) => right.resource === resource && from <= at);
    assertNone(own.filter((each) => each.lacks === "a right" && !isMeant(each) && !isOtherAccount(each)));
  });

  it("asked for nothing as itself but what its role grants, the platform opened, or describes the API", () => {
    assertNone(own.filter((each) => !isAllowed(each)));
    assert.ok(own.length > 0);
  });

  it("acted as the account for Reloader's annotations by the role that is shipped for it alone, and used every right of it", () => {
    const isOwn = (right: Right, each: AuditedRequest) => isBy(right, { ...each, as: undefined });
    const isMeant = (each: AuditedRequest) =>
      each.resource === REVIEWS || each.lacks !== undefined || reloaders.some((right) => isOwn(right, each));
    assertNone(reloading.filter((each) => !isMeant(each)));
    // That it may act as accounts of its name is for the admission policy, which asks for it.
    const used = reloading.filter(isAdmitted);
    const unused = reloaders.filter(
      (right) => right.verb !== "impersonate" && !used.some((each) => isOwn(right, each)),
    );
    // A part of the tests alone says nothing of it.
    if (reloading.length > 0) assert.deepEqual(unused.map(describeRight), []);
    for (const { resource } of reloading.filter(({ verb }) => ["create", "update", "delete"].includes(verb)))
      assert.ok([REVIEWS, "inlay.dev/secretbindings", "batch/jobs"].includes(resource), resource);
  });

  it("acted as nobody but the accounts of bindings, with the groups of an account and no others", () => {
    for (const each of impersonated) {
      const [, , namespace] = each.as?.split(":") ?? [];
      assert.deepEqual([...each.asGroups].sort(), [
        "system:authenticated",
        "system:serviceaccounts",
        `system:serviceaccounts:${namespace}`,
      ]);
    }
    assertNone(impersonated.filter((each) => !named.isAccount(each)));
    assert.ok(impersonated.length > 0);
  });

  it("did nothing as an account but what a binding of that account names", () => {
    assertNone(impersonated.filter((each) => !isNamed(each)));
  });

  it("would be found out if it went round that", () => {
    const read = impersonated.find(
      ({ verb, resource, namespace }) => verb === "get" && resource === "secrets" && namespace === team.namespace,
    );
    assert.ok(read !== undefined && isNamed(read));
    for (const change of [
      { name: "another" },
      { namespace: "kube-system" },
      { verb: "patch" },
      { verb: "list", name: "", namespace: "" },
      { resource: "configmaps" },
      { as: "system:serviceaccount:kube-system:inlay" },
      { at: "2000-01-01T00:00:00.000000Z" },
    ]) {
      assert.equal(isNamed({ ...read, ...change }), false, JSON.stringify(change));
    }
    for (const change of [{}, { verb: "list" }, { resource: "configmaps" }, { resource: "secrets", verb: "patch" }]) {
      assert.equal(isAllowed({ ...read, as: undefined, ...change }), false, JSON.stringify(change));
    }
  });

  const isNamed = (request: AuditedRequest) =>
    request.resource === REVIEWS ? named.isAccount(request) : named.isFor(request);

  /** As itself, wherever it is installed: one for a namespace has the same rights, there. */
  function isAllowed(request: AuditedRequest): boolean {
    const { user, verb, resource, namespace, uri, at } = request;
    if (resource === "") return verb === "get" && DESCRIBES_THE_API.test(uri);
    if (resource === REVIEWS) return verb === "create";
    if (user !== CONTROLLER && namespace !== CONTROLLERS.exec(user)?.[1]) return false;
    if (rights.some((right) => isBy(right, request)) || isOtherAccount(request)) return true;
    if (namespace === CONTROLLERS.exec(user)?.[1] && opening.some((right) => isBy(right, request))) return true;
    const isTry = request.lacks !== undefined;
    return lent.some(({ right, from, until }) => isBy(right, request) && from <= at && (isTry || at <= until));
  }

  /** An account of another name than `inlay` is open to it where a Role in its namespace says so. */
  function isOtherAccount(request: AuditedRequest): boolean {
    const { verb, resource, namespace, name, at } = request;
    const account = { ...request, as: `system:serviceaccount:${namespace}:${name}`, at };
    return resource === "serviceaccounts" && ["get", "list", "watch"].includes(verb) && named.isAccount(account);
  }
});

/** Every kind that is served now, or was by a CRD, by group and kind. */
async function servedKinds(api: Api): Promise<Map<string, ServedKind[]>> {
  const kinds = new Map<string, ServedKind[]>();
  const note = (kind: string, served: ServedKind) => kinds.set(kind, [...(kinds.get(kind) ?? []), served]);
  const { groups } = await api.get("/apis");
  const versions = groups.flatMap((group: AnyObject) =>
    group.versions.map(({ groupVersion }: AnyObject) => `/apis/${groupVersion}`),
  );
  for (const path of ["/api/v1", ...versions]) {
    const list = await api.find(path);
    const [group] = path === "/api/v1" ? [""] : path.split("/").slice(2);
    for (const { kind, name, namespaced } of list?.resources ?? []) {
      if (!name.includes("/")) note(`${group}/${kind}`, { plural: name, namespaced });
    }
  }
  for (const { object } of await auditLog().written("CustomResourceDefinition")) {
    const { group, names, scope } = object.spec;
    note(`${group}/${names.kind}`, { plural: names.plural, namespaced: scope === "Namespaced" });
  }
  return kinds;
}
