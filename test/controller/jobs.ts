/** Jobs for tests, which KWOK's node completes at once. */
import assert from "node:assert/strict";
import type { KubeObject } from "../../src/apimachinery/objects.ts";
import { copyName, copyOf, jobToCreate, originalOf } from "../../src/workloads/jobs.ts";
import type { AnyObject } from "./api.ts";
import { eventually } from "./eventually.ts";
import type { Rule, TestNamespace } from "./test-namespace.ts";
import { deployment } from "./workloads.ts";

export const STAMP = /^\d+-[0-9a-f]{6}-[0-9a-f]{10}$/;

/** The permissions of an account to recreate Jobs. */
export const mayRecreate: Rule = {
  apiGroups: ["batch"],
  resources: ["jobs"],
  verbs: ["get", "list", "watch", "create", "delete"],
};

export const jobs = (team: TestNamespace, name = "") => `${team.path("batch/v1", "jobs")}${name && `/${name}`}`;
export const jobOf = (team: TestNamespace, name = "migrate"): Promise<AnyObject> => team.api.get(jobs(team, name));
export const isComplete = ({ status }: AnyObject): boolean =>
  status.conditions?.some(({ type, status: is }: AnyObject) => type === "Complete" && is === "True") ?? false;
export const ended = (team: TestNamespace, name = "migrate") =>
  eventually(async () => assert.ok(isComplete(await jobOf(team, name))), 30_000);

/** Its pods read the key `token` of the Secret `bucket`. */
export function newJob(
  team: TestNamespace,
  name: string,
  spec: object = {},
  metadata: object = {},
): Promise<AnyObject> {
  const { template } = (deployment("app", { env: { bucket: ["token"] } }) as AnyObject).spec;
  const [{ readinessProbe: _, ...container }] = template.spec.containers;
  const pods = { ...template, spec: { containers: [container], restartPolicy: "Never" } };
  const labels = { app: name };
  return team.api.create(jobs(team), {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name, labels, ...metadata },
    spec: { template: pods, ...spec },
  });
}

/** Creates a Job in the name of another Job's copy, as a user who may only create Jobs. Returns its uid. */
export function forgeCopy(team: TestNamespace, job: KubeObject, forge: (copy: AnyObject) => void): Promise<string> {
  const copy: AnyObject = structuredClone(copyOf(job));
  forge(copy);
  return createAsMallory(team, copyName(job.metadata.uid), copy);
}

/** The same in the name of a Job, with all its fields but the image. */
export function forgeJob(team: TestNamespace, job: KubeObject): Promise<string> {
  const forged: AnyObject = jobToCreate(structuredClone(copyOf(job)), originalOf(job), "inlay.dev/rollout", "forged");
  forged["spec"].template.spec.containers[0].image = "forged";
  return createAsMallory(team, job.metadata.name, forged);
}

async function createAsMallory(team: TestNamespace, name: string, { metadata, ...below }: AnyObject): Promise<string> {
  const account = "mallory";
  const rule: Rule = { apiGroups: ["batch"], resources: ["jobs"], verbs: ["create"] };
  await team.grant([rule], { account, role: account });
  const mallory = team.api.as(`system:serviceaccount:${team.namespace}:${account}`);
  const job = { apiVersion: "batch/v1", kind: "Job", ...below, metadata: { ...metadata, name } };
  return (await mallory.create(jobs(team), job))["metadata"].uid;
}

/** The names of all Jobs and of their copies. */
export async function names(team: TestNamespace): Promise<string[]> {
  const { items } = await team.api.get(jobs(team));
  return items.map(({ metadata }: AnyObject) => metadata.name).sort();
}
