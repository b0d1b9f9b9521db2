/** Argo Rollouts for tests. No controller rolls them out; they have no replicas, so they count as rolled out. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "./api.ts";
import { eventually } from "./eventually.ts";
import type { TestNamespace } from "./test-namespace.ts";

const [group, version, plural, kind] = ["argoproj.io", "v1alpha1", "rollouts", "Rollout"];
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

export async function installRollouts(): Promise<void> {
  const api = new Api(controlPlane());
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  await api.create(CRDS, {
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, listKind: `${kind}List`, plural, singular: "rollout" },
      versions: [{ name: version, served: true, storage: true, schema, subresources: { status: {} } }],
    },
  });
  await eventually(async () => assert.ok(await api.find(`/apis/${group}/${version}/${plural}`)));
}

/** Other tests install another version of this kind. */
export async function removeRollouts(): Promise<void> {
  const api = new Api(controlPlane());
  const path = `${CRDS}/${plural}.${group}`;
  await api.delete(path);
  await eventually(async () => assert.equal(await api.find(path), undefined));
}

export const rolloutsPath = (team: TestNamespace) => team.path(`${group}/${version}`, plural);

/** Creates one with these annotations and this pod template. */
export function newRollout(
  team: TestNamespace,
  name: string,
  annotations: object,
  template: object,
): Promise<AnyObject> {
  return team.api.create(rolloutsPath(team), {
    apiVersion: `${group}/${version}`,
    kind,
    metadata: { name, annotations },
    spec: { selector: { matchLabels: { app: "app" } }, template, replicas: 0 },
  });
}
