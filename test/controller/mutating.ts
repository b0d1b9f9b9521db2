/** Installs a policy that changes writes, until the returned function removes it. */
import assert from "node:assert/strict";
import { eventually } from "./eventually.ts";
import type { TestNamespace } from "./test-namespace.ts";

const POLICIES = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";

export interface Mutation {
  operations: string[];
  apiGroups: string[];
  resources: string[];
  /** CEL: which writes it changes. */
  when: string;
  /** CEL: a list of JSONPatch. */
  patch: string;
}

/** Changes writes in the team's namespace. `isInForce` writes to another object, and passes once they are changed. */
export async function mutate(
  { api, namespace }: TestNamespace,
  name: string,
  { when, patch, ...writes }: Mutation,
  isInForce: () => Promise<unknown>,
): Promise<() => Promise<void>> {
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": namespace } };
  await api.create(POLICIES, {
    metadata: { name },
    spec: {
      failurePolicy: "Fail",
      reinvocationPolicy: "Never",
      matchConstraints: { namespaceSelector, resourceRules: [{ ...writes, apiVersions: ["*"] }] },
      matchConditions: [{ name: "when", expression: when }],
      mutations: [{ patchType: "JSONPatch", jsonPatch: { expression: patch } }],
    },
  });
  const bindings = POLICIES.replace("policies", "policybindings");
  await api.create(bindings, { metadata: { name }, spec: { policyName: name } });
  await eventually(isInForce, 30_000);
  return async () => {
    await api.delete(`${bindings}/${name}`);
    await api.delete(`${POLICIES}/${name}`);
    await eventually(() => assert.rejects(isInForce), 30_000);
  };
}
