/** Workloads with updateStrategy OnDelete: creates a team with one, and a binding that replaces its pods. */
import assert from "node:assert/strict";
import type { AnyObject } from "./api.ts";
import { eventually } from "./eventually.ts";
import { secretText } from "./leak-detector.ts";
import { createNamespace, type Rule, type TestNamespace } from "./test-namespace.ts";
import { deployment, rolloutRules, Workloads } from "./workloads.ts";

export const mayReplace: Rule[] = [
  { apiGroups: [""], resources: ["pods"], verbs: ["list"] },
  { apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"] },
];
const STAMP = /^1-[0-9a-f]{6}-[0-9a-f]{10}$/;

export interface Replaced {
  team: TestNamespace;
  shop: Workloads;
  rotate(): Promise<void>;
}

/** Creates a team with a workload whose pods run, and a binding that replaces them. */
export async function newReplaced(
  plural: string,
  kind: string,
  spec: object,
  count: number,
  more: Rule[] = mayReplace,
): Promise<Replaced> {
  const team = await createNamespace({ rules: [...rolloutRules, ...more] });
  const shop = new Workloads(team);
  const rotate = () => team.secret("bucket", { token: secretText("token") });
  await rotate();
  const { selector, template } = (deployment("app", { env: { bucket: ["token"] } }) as AnyObject).spec;
  await team.api.create(team.path("apps/v1", plural), {
    apiVersion: "apps/v1",
    kind,
    metadata: { name: "app" },
    spec: { selector, template, updateStrategy: { type: "OnDelete" }, ...spec },
  });
  await eventually(async () => assert.equal((await podsOf(team)).filter(isReady).length, count), 30_000);
  const rollout = { consumersOf: ["bucket"], replacePods: true };
  await team.bind("rolls", { sources: [{ secret: { name: "bucket" } }], rollout });
  await shop.rolledOut("rolls", 0);
  return { team, shop, rotate };
}

export const newReplacedSet = (replicas: number, more?: Rule[]): Promise<Replaced> =>
  newReplaced("statefulsets", "StatefulSet", { serviceName: "app", replicas }, replicas, more);

/** The pods that are not being deleted. */
export async function podsOf(team: TestNamespace): Promise<AnyObject[]> {
  const { items } = await team.api.get(team.path("v1", "pods"));
  return items.filter(({ metadata }: AnyObject) => metadata.deletionTimestamp === undefined);
}

export const uidsOf = (pods: readonly AnyObject[]): string[] => pods.map(({ metadata }) => metadata.uid).sort();

export const isReady = ({ status }: AnyObject): boolean =>
  status.conditions?.some(({ type, status: is }: AnyObject) => type === "Ready" && is === "True") ?? false;

/** Whether a pod was created by the first rollout. */
export const isStamped = ({ metadata }: AnyObject): boolean =>
  STAMP.test(metadata.annotations?.["inlay.dev/rollout"] ?? "");
