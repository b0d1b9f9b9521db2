/**
 * A namespace for each test, with an account and its permissions, and functions for what tests do there. It is removed at the end
 * of the test.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { assertNoValueInNamespace } from "../whole-run/leaks.ts";
import { type AnyObject, Api, unlessGone } from "./api.ts";
import type { AuditedRequest } from "./audit.ts";
import { Barrier, HARBORS, isOfBarrier, type Through } from "./barrier.ts";
import type { ControllerProcess } from "./controller.ts";
import { eventually } from "./eventually.ts";
import { harborCluster } from "./harbor.ts";
import { foundIn, secretText } from "./leak-detector.ts";
import { auditLog, sharedController } from "./shared.ts";

export interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
}

/** The permissions of an account to read Secrets, ConfigMaps and Services, and to write HarborClusters. */
export const usualRules: Rule[] = [
  { apiGroups: [""], resources: ["secrets", "configmaps", "services"], verbs: ["get", "list", "watch"] },
  { apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: ["get", "list", "watch", "patch"] },
];

/** How long a started controller may take to reconcile a binding: it also reconciles the bindings of earlier tests. */
export const RESTARTED_WITHIN_MS = 45_000;

const CONTROLLER = "system:serviceaccount:inlay-system:inlay-controller";

/** Kinds whose objects affect other objects, or that a controller watches in all namespaces. */
const ACTIVE = [
  ["inlay.dev/v1alpha1", "secretbindings"],
  ["inlay.dev/v1alpha1", "secretgrants"],
  ["inlay.dev/v1alpha1", "vaultconnections"],
  ["apps/v1", "deployments"],
  ["apps/v1", "statefulsets"],
  ["apps/v1", "daemonsets"],
  ["batch/v1", "cronjobs"],
  ["batch/v1", "jobs"],
] as const;

let count = 0;
let namespaces: TestNamespace[] = [];

/** Returns the namespaces that were created since the last call. setup.ts removes them at the end of their test or file. */
export function takeNamespaces(): TestNamespace[] {
  const taken = namespaces;
  namespaces = [];
  return taken;
}

/** Creates a namespace with the account `inlay`, and starts the controller if necessary. */
export async function createNamespace(
  options: { account?: boolean; rules?: Rule[]; controller?: boolean } = {},
): Promise<TestNamespace> {
  const team = new TestNamespace(`team-${++count}`);
  namespaces.push(team);
  await team.api.create("/api/v1/namespaces", { metadata: { name: team.namespace } });
  if (options.account ?? true) await team.createAccount();
  await team.grant(options.rules ?? usualRules);
  if (options.controller ?? true) await team.controller.start();
  return team;
}

/** Removes a namespace, and what would act in it. This needs no controller. */
export async function removeNamespace(api: Api, name: string): Promise<void> {
  const path = `/api/v1/namespaces/${name}`;
  const collection = (apiVersion: string, plural: string) => `/apis/${apiVersion}/namespaces/${name}/${plural}`;
  // From now on, the API server creates no objects there.
  await api.remove(path);
  const bindings = collection("inlay.dev/v1alpha1", "secretbindings");
  const confirmed = { metadata: { annotations: { "inlay.dev/delete-copies": "true" } } };
  for (const { metadata } of (await api.find(`${bindings}?labelSelector=inlay.dev/protects=true`))?.items ?? [])
    await api.merge(`${bindings}/${metadata.name}`, confirmed).catch(unlessGone);
  await Promise.all(ACTIVE.map(([apiVersion, plural]) => api.remove(collection(apiVersion, plural))));
  // A finalizer would wait for a controller, which need not run.
  for (const { metadata } of (await api.find(bindings))?.items ?? [])
    await api.merge(`${bindings}/${metadata.name}`, { metadata: { finalizers: null } }).catch(unlessGone);
  // The remaining objects affect nothing, and are deleted with the control plane. Kubernetes would need 80 requests to empty
  // the namespace.
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
  await api.replace(`${path}/finalize`, { ...namespace, spec: { finalizers: [] } }).catch(unlessGone);
}

export class TestNamespace {
  readonly namespace: string;
  readonly api = new Api(controlPlane());
  readonly controller: ControllerProcess = sharedController(controlPlane());
  #hasClusterRole = false;
  readonly #barriers = new Map<string, Barrier>();

  constructor(namespace: string) {
    this.namespace = namespace;
  }

  createAccount(name = "inlay"): Promise<AnyObject> {
    return this.api.create(this.path("v1", "serviceaccounts"), { metadata: { name } });
  }

  /** Grants the account these permissions in this namespace, or in another. They are effective when this returns. */
  async grant(rules: Rule[], { account = "inlay", role = "inlay", namespace = this.namespace } = {}): Promise<void> {
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
    await this.api.create(`${rbac}/roles`, { metadata: { name: role }, rules });
    await this.api.create(`${rbac}/rolebindings`, {
      metadata: { name: role },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: role },
      subjects: [{ kind: "ServiceAccount", name: account, namespace: this.namespace }],
    });
    await this.#untilMay(this.#user(account), rules, namespace);
  }

  /** Grants the account these permissions in the whole cluster. They are effective when this returns. */
  async grantInCluster(rules: Rule[]): Promise<void> {
    const rbac = "/apis/rbac.authorization.k8s.io/v1";
    const name = this.#clusterRole;
    this.#hasClusterRole = true;
    await this.api.create(`${rbac}/clusterroles`, { metadata: { name }, rules });
    await this.api.create(`${rbac}/clusterrolebindings`, {
      metadata: { name },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", name: "inlay", namespace: this.namespace }],
    });
    await this.#untilMay(this.#user("inlay"), rules);
  }

  /** Revokes the permissions in the whole cluster. They may be effective for a moment. */
  async revokeInCluster(): Promise<void> {
    for (const plural of ["clusterrolebindings", "clusterroles"])
      await this.api.remove(`/apis/rbac.authorization.k8s.io/v1/${plural}/${this.#clusterRole}`);
  }

  get #clusterRole(): string {
    return `${this.namespace}-inlay`;
  }

  /** Searches the objects of the namespace for values of Secrets, then removes it. */
  async remove(): Promise<void> {
    await assertNoValueInNamespace(this.api, this.namespace);
    await removeNamespace(this.api, this.namespace);
    if (this.#hasClusterRole) await this.revokeInCluster();
  }

  /** Revokes the permissions of a role. They are no longer effective when this returns. */
  async revoke(role = "inlay"): Promise<void> {
    const bindings = this.path("rbac.authorization.k8s.io/v1", "rolebindings");
    await this.api.delete(`${bindings}/${role}`);
    // The API server observes such bindings in order: when it knows a later one, it knows this deletion.
    const name = `later-${++count}`;
    await this.api.create(bindings, {
      metadata: { name },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
      subjects: [{ kind: "User", name, apiGroup: "rbac.authorization.k8s.io" }],
    });
    await this.#untilMay(name, [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get"] }], this.namespace);
    await this.api.delete(`${bindings}/${name}`);
  }

  #user(account: string): string {
    return `system:serviceaccount:${this.namespace}:${account}`;
  }

  /** Waits until a granted permission is effective at the API server. */
  async #untilMay(user: string, [rule]: Rule[], namespace = ""): Promise<void> {
    if (rule === undefined) return;
    const { apiGroups, resources, verbs, resourceNames } = rule;
    const [resource, subresource] = resources[0]?.split("/") ?? [];
    const [group, verb, name] = [apiGroups[0], verbs[0], resourceNames?.[0]];
    const resourceAttributes = { namespace, group, resource, subresource, verb, name };
    await eventually(async () => {
      const review = { spec: { user, resourceAttributes } };
      const { status } = await this.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review);
      assert.ok(status.allowed, `${user} may not ${verb} ${resource}`);
    });
  }

  /** Creates or updates a Secret. Omitted keys stay. */
  async secret(name: string, data: Record<string, string | Uint8Array>): Promise<void> {
    const encoded = Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
    );
    const path = this.path("v1", "secrets");
    if (await this.api.find(`${path}/${name}`)) await this.api.merge(`${path}/${name}`, { data: encoded });
    else await this.api.create(path, { metadata: { name }, data: encoded });
  }

  /** Creates a HarborCluster as in git, without access key and endpoint. */
  harbor(name = "harbor", s3: object = {}): Promise<AnyObject> {
    return this.api.create(this.path("goharbor.io/v1beta1", "harborclusters"), harborCluster(name, s3));
  }

  /** The fields in spec.storage.spec.s3 of a HarborCluster. */
  async s3(name = "harbor"): Promise<AnyObject> {
    return (await this.api.get(this.harborPath(name))).spec.storage.spec.s3;
  }

  harborPath(name = "harbor"): string {
    return `${this.path("goharbor.io/v1beta1", "harborclusters")}/${name}`;
  }

  /** Creates a SecretBinding. */
  bind(name: string, spec: object): Promise<AnyObject> {
    return this.api.create(this.path("inlay.dev/v1alpha1", "secretbindings"), {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "SecretBinding",
      metadata: { name },
      spec,
    });
  }

  /**
   * Creates the Secret `bucket`, the HarborCluster `harbor` and the binding `harbor-s3` of its access key. Returns the access
   * key.
   */
  async boundHarbor(target: object = {}): Promise<string> {
    const accessKey = secretText("access");
    await this.secret("bucket", { accessKeyID: accessKey });
    await this.harbor();
    await this.bind("harbor-s3", accessKeySpec(target));
    await this.until("harbor-s3", "Synced");
    return accessKey;
  }

  /** Changes the spec of a binding by a merge patch, which replaces lists. */
  rebind(name: string, spec: object): Promise<AnyObject> {
    return this.api.merge(this.bindingPath(name), { spec });
  }

  /** Deletes a binding and waits until it is gone. */
  async unbind(name: string, withinMs?: number): Promise<void> {
    await this.api.delete(this.bindingPath(name));
    await this.untilGone(this.bindingPath(name), withinMs);
  }

  /** Deletes a binding and removes its finalizer, for example because no controller runs. */
  async unbindByForce(name: string): Promise<void> {
    await this.api.delete(this.bindingPath(name));
    await this.api.merge(this.bindingPath(name), { metadata: { finalizers: null } }).catch(unlessGone);
    await this.untilGone(this.bindingPath(name));
  }

  async untilGone(path: string, withinMs?: number): Promise<void> {
    await eventually(async () => assert.equal(await this.api.find(path), undefined), withinMs);
  }

  /** Changes spec.storage.spec.s3 of a HarborCluster by a merge patch, as kubectl edit would. */
  editS3(s3: object, manager = "kubectl-edit", name = "harbor"): Promise<AnyObject> {
    return this.api.merge(this.harborPath(name), { spec: { storage: { spec: { s3 } } } }, manager);
  }

  /** Applies spec.storage.spec.s3 of a HarborCluster, as a GitOps tool would. */
  applyS3(s3: object, manager: string, force = false): Promise<AnyObject> {
    const spec = { storage: { spec: { s3 } } };
    const metadata = { name: "harbor" };
    const object = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", metadata, spec };
    return this.api.apply(this.harborPath(), object, manager, force);
  }

  /** The field manager of a binding. */
  manager(binding: string): string {
    return `inlay/${this.namespace}/${binding}`;
  }

  /**
   * The controller's requests about this namespace while `act` ran, and until it had processed the effects. For another kind than
   * HarborCluster, pass a barrier through that kind.
   */
  async requestsDuring(act: () => Promise<unknown>, through = HARBORS): Promise<AuditedRequest[]> {
    const barrier = this.#barrier(through);
    await barrier.prepare();
    const mark = await auditLog().mark();
    await act();
    await barrier.pass(this.controller);
    return (await auditLog().since(mark)).filter(
      (each) => each.user === CONTROLLER && each.namespace === this.namespace && !isOfBarrier(each),
    );
  }

  /**
   * Waits until the controller has processed all earlier changes here: to Secrets, bindings, and objects of one kind. What it has
   * not done by then, it will not do. The account `inlay` needs `usualRules`, or the same permissions for another kind.
   */
  async barrier({ through = HARBORS, controller = this.controller } = {}): Promise<void> {
    const barrier = this.#barrier(through);
    await barrier.prepare();
    await barrier.pass(controller);
  }

  #barrier(through: Through): Barrier {
    const barrier = this.#barriers.get(through.kind) ?? new Barrier(this, through);
    this.#barriers.set(through.kind, barrier);
    return barrier;
  }

  bindingPath(name: string): string {
    return `${this.path("inlay.dev/v1alpha1", "secretbindings")}/${name}`;
  }

  /** The current binding. Asserts that it contains no value of a Secret. */
  async binding(name: string): Promise<AnyObject> {
    const binding = await this.api.get(this.bindingPath(name));
    assert.deepEqual(foundIn(JSON.stringify(binding)), []);
    return binding;
  }

  /** Waits until the binding has that reason for its current spec, and returns it. */
  async until(name: string, reason: string, withinMs?: number): Promise<AnyObject> {
    return eventually(async () => {
      const binding = await this.binding(name);
      const ready = binding.status?.conditions?.find((condition: AnyObject) => condition.type === "Ready");
      const message = JSON.stringify(binding.status);
      assert.equal(ready?.reason, reason, message);
      assert.equal(ready.observedGeneration, binding.metadata.generation, message);
      return binding;
    }, withinMs);
  }

  /** The events of this namespace about a binding. */
  async events(name: string): Promise<{ type: string; reason: string; note: string }[]> {
    const { items } = await this.api.get(this.path("events.k8s.io/v1", "events"));
    return items.filter((event: AnyObject) => event.regarding.name === name);
  }

  path(apiVersion: string, plural: string): string {
    const root = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
    return `${root}/namespaces/${this.namespace}/${plural}`;
  }
}

/** A target entry for the HarborCluster `harbor`: fields below spec.storage.spec.s3, each from a key of a source. */
export function harborTarget(fields: Record<string, object>, more: object = {}): object {
  return {
    apiVersion: "goharbor.io/v1beta1",
    kind: "HarborCluster",
    name: "harbor",
    fields: Object.entries(fields).map(([field, value]) => ({ path: `spec.storage.spec.s3.${field}`, ...value })),
    ...more,
  };
}

/** The spec of a binding that writes the Secret bucket's access key into the HarborCluster `harbor`. */
export function accessKeySpec(target: object = {}): object {
  return {
    sources: [{ secret: { name: "bucket" } }],
    targets: [harborTarget({ accesskey: { from: { source: "bucket", key: "accessKeyID" } } }, target)],
  };
}

/** The managedFields of a manager in an object, in the form of fieldsV1. */
export function fieldsOf(object: AnyObject, manager: string): object | undefined {
  return object.metadata.managedFields.find((entry: AnyObject) => entry.manager === manager)?.fieldsV1;
}

/** The fieldsV1 of single fields below spec.storage.spec.s3. */
export function s3Fields(...names: string[]): object {
  const s3 = Object.fromEntries(names.map((name) => [`f:${name}`, {}]));
  return { "f:spec": { "f:storage": { "f:spec": { "f:s3": s3 } } } };
}
