/**
 * Namespaces in which a binding of many features has exactly the permissions that `inlay rbac` prints for it, or all of them but one
 * verb, and what the binding does there.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { untilMay } from "./access.ts";
import { type AnyObject, Api, unlessGone } from "./api.ts";
import { eventually } from "./eventually.ts";
import { secretText } from "./leak-detector.ts";
import { applyObjects, pathOf } from "./manifests.ts";
import { createNamespace, harborTarget, type TestNamespace } from "./test-namespace.ts";
import { deployment } from "./workloads.ts";

/** A part of what a binding can do: its spec, and the objects that it needs. */
export interface Feature {
  spec(team: TestNamespace): AnyObject;
  prepare(team: TestNamespace): Promise<unknown>;
  /** Changes the sources. */
  rotate(team: TestNamespace): Promise<unknown>;
  /** Why the change has not arrived. */
  missing(team: TestNamespace): Promise<string | undefined>;
}

/** A namespace, and the verb that its accounts lack. */
export interface Trial {
  lacks: string;
  team: TestNamespace;
  objects: AnyObject[];
}

const BINDING = "all";

export async function newTeam(feature: Feature): Promise<TestNamespace> {
  const team = await createNamespace({ account: false, rules: [] });
  await feature.prepare(team);
  return team;
}

/** The binding as a user would write it into a file. */
export const bindingOf = (team: TestNamespace, feature: Feature): AnyObject => ({
  apiVersion: "inlay.dev/v1alpha1",
  kind: "SecretBinding",
  metadata: { name: BINDING, namespace: team.namespace },
  spec: feature.spec(team),
});

/** The same manifests for another namespace, once for each verb of each rule, without that verb. */
export function reduced(manifests: readonly AnyObject[]): { lacks: string; manifests: AnyObject[] }[] {
  return manifests.flatMap(({ kind, metadata, rules = [] }, position) =>
    rules.flatMap((rule: AnyObject, at: number) =>
      rule.verbs.map((verb: string) => {
        const verbs = rule.verbs.filter((each: string) => each !== verb);
        const rest = verbs.length === 0 ? rules.toSpliced(at, 1) : rules.with(at, { ...rule, verbs });
        const names = rule.resourceNames === undefined ? "" : ` ${rule.resourceNames}`;
        return {
          lacks: `${kind} ${metadata.name}: ${verb} ${rule.resources}${names}`,
          manifests: manifests.with(position, { ...manifests[position], rules: rest }),
        };
      }),
    ),
  );
}

export function renamed<T>(manifests: T, from: string, to: string): T {
  return JSON.parse(JSON.stringify(manifests).replaceAll(new RegExp(`\\b${from}\\b`, "g"), to));
}

/** Waits until the last of the rules is effective. */
export async function permit(team: TestNamespace, manifests: readonly AnyObject[]): Promise<void> {
  await applyObjects(team.api, manifests);
  const role = manifests.findLast(({ kind, rules }) => kind === "Role" && rules.length > 0);
  const bound = manifests.find(({ kind, roleRef }) => kind === "RoleBinding" && roleRef.name === role.metadata.name);
  const [rule] = role.rules;
  const [resource, subresource] = rule.resources[0].split("/");
  const [{ namespace, name }] = bound.subjects;
  await untilMay(`system:serviceaccount:${namespace}:${name}`, {
    verb: rule.verbs[0],
    group: rule.apiGroups[0],
    resource,
    ...(subresource && { subresource }),
    namespace: role.metadata.namespace,
    ...(rule.resourceNames && { name: rule.resourceNames[0] }),
  });
}

/** Why the binding has not written and rolled out `revision`. */
export async function notDone(team: TestNamespace, revision: number): Promise<string | undefined> {
  const { metadata, status } = await team.binding(BINDING);
  const conditions: AnyObject[] = status?.conditions ?? [];
  const reasonOf = (wanted: string) => {
    const found = conditions.find(({ type }) => type === wanted);
    return found?.observedGeneration === metadata.generation ? found?.reason : "none";
  };
  if (reasonOf("Ready") !== "Synced") return `Ready: ${reasonOf("Ready")}`;
  if (reasonOf("RolledOut") !== "RolledOut") return `RolledOut: ${reasonOf("RolledOut")}`;
  return status.rollout?.revision === revision ? undefined : `revision ${status.rollout?.revision}`;
}

/** Inlay abandons a release after a minute, and then keeps the Secret that it created. */
export async function notReleased(team: TestNamespace): Promise<string | undefined> {
  if (await team.api.find(team.bindingPath(BINDING))) return "the binding is still there";
  return (await team.api.find(`${team.path("v1", "secrets")}/copy`)) && "the copy is still there";
}

const accountOf = (team: TestNamespace, feature: Feature) => {
  const { serviceAccountName: name = "inlay" } = feature.spec(team);
  return { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace: team.namespace } };
};

/** Inlay impersonates no account that was deleted. */
export async function releaseWithoutAccount(team: TestNamespace, feature: Feature): Promise<void> {
  await team.api.delete(await pathOf(team.api, accountOf(team, feature))).catch(unlessGone);
  await team.api.delete(team.bindingPath(BINDING));
}

export async function notWaiting(team: TestNamespace): Promise<string | undefined> {
  const binding = await team.api.find(team.bindingPath(BINDING));
  if (binding === undefined) return "the binding is gone";
  const ready = binding.status.conditions.find(({ type }: AnyObject) => type === "Ready");
  return ready.reason === "ServiceAccountNotFound" ? undefined : `Ready: ${ready.reason}`;
}

export const release = (team: TestNamespace, feature: Feature): Promise<unknown> =>
  applyObjects(team.api, [accountOf(team, feature)]);

/** Deletes cluster-wide objects, which are not removed with the namespaces. */
export async function forget(manifests: readonly AnyObject[]): Promise<void> {
  const api = new Api(controlPlane());
  for (const each of manifests.filter(({ metadata }) => metadata.namespace === undefined))
    await api.delete(await pathOf(api, each)).catch(unlessGone);
}

/** Reads a Secret, writes a HarborCluster, creates a Secret, and restarts and runs a CronJob. */
export const usual: Feature = {
  spec: () => ({
    sources: [{ secret: { name: "bucket" } }],
    targets: [
      harborTarget({ accesskey: { from: { source: "bucket", key: "token" } } }),
      {
        apiVersion: "v1",
        kind: "Secret",
        name: "copy",
        create: { manifest: {} },
        fields: [{ path: "data.token", from: { source: "bucket", key: "token" } }],
      },
    ],
    rollout: { targets: [{ kind: "CronJob", name: "report" }], runCronJobs: true },
  }),
  prepare: async (team) => {
    await Promise.all([usual.rotate(team), team.harbor()]);
    const { template } = (deployment("app", { env: { bucket: ["token"] } }) as AnyObject).spec;
    const [{ readinessProbe: _, ...container }] = template.spec.containers;
    const pods = { ...template, spec: { containers: [container], restartPolicy: "Never" } };
    await team.api.create(team.path("batch/v1", "cronjobs"), {
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name: "report" },
      spec: { schedule: "0 0 1 1 *", jobTemplate: { spec: { template: pods } } },
    });
  },
  rotate: (team) => team.secret("bucket", { token: secretText("token") }),
  missing: async (team) => {
    const token = async (name: string): Promise<string> =>
      (await team.api.get(`${team.path("v1", "secrets")}/${name}`)).data.token;
    const value = await token("bucket");
    if ((await token("copy")) !== value) return "the copy is outdated";
    const isWritten = (await team.s3()).accesskey === Buffer.from(value, "base64").toString();
    return isWritten ? undefined : "HarborCluster harbor is outdated";
  },
};

/** Waits until all that a stage shows is there. */
export const until = (problem: () => Promise<string | undefined>, withinMs?: number): Promise<void> =>
  eventually(async () => assert.equal(await problem(), undefined), withinMs);
