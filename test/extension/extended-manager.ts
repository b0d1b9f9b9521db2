/**
 * Runs the manager of Inlay in this process, with a controller beside the shipped ones. It uses an account with the
 * permissions of the controller and a few more. It adds the objects that it needs to the cluster, and removes them at the
 * end.
 */
import assert from "node:assert/strict";
import { Installation } from "../../src/api/installation.ts";
import { controllersOf, type RunningController, startController } from "../../src/manager/start-controller.ts";
import { freePorts } from "../control-plane/ports.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api, unlessGone } from "../controller/api.ts";
import { sumIn } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { applyObjects, deleteObjects } from "../controller/manifests.ts";
import { ClusterThingController, clusterThings } from "./cluster-thing.ts";
import { COUNTER_SCHEMA, withCounter } from "./counter.ts";

const SYSTEM = "inlay-system";
const ACCOUNT = "extended";
const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM}/leases/inlay-controller`;
const CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/secretbindings.inlay.dev";
const AUTHORS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/inlay-binding-authors";

/** The user name of the manager at the API server. */
export const USER = `system:serviceaccount:${SYSTEM}:${ACCOUNT}`;

const rbac = "rbac.authorization.k8s.io/v1";
const metadata = { name: ACCOUNT };
const subjects = [{ kind: "ServiceAccount", name: ACCOUNT, namespace: SYSTEM }];
const bound = (name: string) => ({
  apiVersion: rbac,
  kind: "ClusterRoleBinding",
  metadata: { name: `${ACCOUNT}-${name}` },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
  subjects,
});
const rule = (apiGroups: string[], resources: string[], verbs: string[]) => ({ apiGroups, resources, verbs });
const { group, plural } = clusterThings;
const accounts = [
  { apiVersion: "v1", kind: "ServiceAccount", metadata: { ...metadata, namespace: SYSTEM } },
  {
    apiVersion: rbac,
    kind: "ClusterRole",
    metadata,
    rules: [
      rule([group], [plural], ["list", "watch", "patch"]),
      rule([group], [`${plural}/status`], ["update"]),
      rule(["inlay.dev"], ["secretbindings"], ["create", "update", "delete"]),
      // deploy/policies/authors.yaml requires that the author of a binding may read its sources.
      rule([""], ["secrets"], ["get"]),
    ],
  },
  bound(ACCOUNT),
  bound("inlay-controller"),
  {
    apiVersion: rbac,
    kind: "RoleBinding",
    metadata: { ...metadata, namespace: SYSTEM },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "inlay-controller" },
    subjects,
  },
];

/** The content of apis/secretbindings.yaml with a source `counter`. */
function withCounterSource(spec: AnyObject): AnyObject {
  const extended = structuredClone(spec);
  const { items } = extended.versions[0].schema.openAPIV3Schema.properties.spec.properties.sources;
  items.properties.counter = COUNTER_SCHEMA;
  const [exactlyOne] = items["x-kubernetes-validations"];
  exactlyOne.rule = withCounter(exactlyOne.rule);
  return extended;
}

/** The content of deploy/policies/authors.yaml without a check of sources that are not objects. */
function withoutCounters(spec: AnyObject): AnyObject {
  const extended = structuredClone(spec);
  const [ungranted] = extended.variables;
  ungranted.expression = replaced(ungranted.expression, /filter\(source,/, "filter(source, !has(source.counter) &&");
  return extended;
}

/**
 * Replaces a part of a rule. It fails if the rule does not contain the part, since an unchanged rule would fail other
 * tests.
 */
function replaced(rule: string, part: RegExp, by: string): string {
  assert.match(rule, part);
  return rule.replace(part, by);
}

export class ExtendedManager {
  readonly #api: Api;
  readonly #port: number;
  readonly #running: RunningController;
  readonly #crd: AnyObject;
  readonly #authors: AnyObject;
  readonly things: ClusterThingController;

  /** Starts the manager while another replica holds the lease. */
  static async start(): Promise<ExtendedManager> {
    const api = new Api(controlPlane());
    await applyObjects(api, accounts);
    const [crd, authors] = await Promise.all([api.get(CRD), api.get(AUTHORS)]);
    await replaceSpec(api, CRD, withCounterSource(crd.spec));
    await replaceSpec(api, AUTHORS, withoutCounters(authors.spec));
    await holdLease(api);
    const kubeconfig = await controlPlane().kubeconfigForServiceAccount(SYSTEM, ACCOUNT);
    const [port = 0] = await freePorts(1);
    let things: ClusterThingController | undefined;
    const running = await startController(
      {
        kubeconfig,
        logLevel: "silent",
        installation: new Installation({ ownNamespace: SYSTEM }),
        healthPort: port,
        insecureMetrics: true,
        concurrency: 8,
        leaderElect: true,
        leaseNamespace: SYSTEM,
        onLost: () => assert.fail("it lost the lease"),
      },
      (services, concurrency) => {
        things = new ClusterThingController(services);
        return [...controllersOf(services, concurrency), things];
      },
    );
    assert.ok(things);
    return new ExtendedManager(api, port, running, things, crd.spec, authors.spec);
  }

  private constructor(
    api: Api,
    port: number,
    running: RunningController,
    things: ClusterThingController,
    crd: AnyObject,
    authors: AnyObject,
  ) {
    this.#api = api;
    this.#port = port;
    this.#running = running;
    this.things = things;
    this.#crd = crd;
    this.#authors = authors;
  }

  /** Releases the lease of the other replica. */
  async lead(): Promise<void> {
    await this.#api.merge(LEASE, { spec: { holderIdentity: "" } });
    await eventually(async () => assert.equal(await this.metric("leader_election_master_status"), 1));
  }

  get lease(): Promise<AnyObject> {
    return this.#api.get(LEASE).then(({ spec }) => spec);
  }

  /** Fetches a page of the health server: /livez, /readyz or /metrics. */
  async page(path: string): Promise<{ status: number; text: string }> {
    const answer = await fetch(`http://127.0.0.1:${this.#port}${path}`);
    return { status: answer.status, text: await answer.text() };
  }

  /** Adds up a metric over all its series whose labels contain `label`. */
  async metric(name: string, label = ""): Promise<number> {
    return sumIn((await this.page("/metrics")).text, name, label);
  }

  stop(): Promise<void> {
    return this.#running.stop();
  }

  /** Restores the cluster. Bindings with a counter must be deleted before. */
  async remove(): Promise<void> {
    await replaceSpec(this.#api, AUTHORS, this.#authors);
    await replaceSpec(this.#api, CRD, this.#crd);
    await deleteObjects(this.#api, accounts);
  }
}

const replaceSpec = (api: Api, path: string, value: AnyObject) =>
  api.jsonPatch(path, [{ op: "replace", path: "/spec", value }]);

/** A lease of a replica that does not stop for an hour. */
async function holdLease(api: Api): Promise<void> {
  const spec = { holderIdentity: "another-replica", leaseDurationSeconds: 3_600 };
  const name = LEASE.split("/").at(-1);
  const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name, namespace: SYSTEM }, spec };
  await api.remove(LEASE).catch(unlessGone);
  await api.create(LEASE.slice(0, LEASE.lastIndexOf("/")), lease);
}
