/** A policy of the platform that refuses writes comes in, until it is lifted again. */
import assert from "node:assert/strict";
import { eventually } from "./eventually.ts";
import type { TestNamespace } from "./test-namespace.ts";

const POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

interface Writes {
  operations: string[];
  apiGroups: string[];
  resources: string[];
}

/** Refuses such writes in the team's namespace of which `isFine`, in CEL, is false; from when `probe` is refused by it. */
export async function refuse(
  { api, namespace }: TestNamespace,
  name: string,
  writes: Writes,
  isFine: string,
  probe: () => Promise<unknown>,
): Promise<() => Promise<void>> {
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": namespace } };
  await api.create(POLICIES, {
    metadata: { name },
    spec: {
      failurePolicy: "Fail",
      matchConstraints: { namespaceSelector, resourceRules: [{ ...writes, apiVersions: ["*"] }] },
      validations: [{ expression: isFine }],
    },
  });
  const bindings = POLICIES.replace("policies", "policybindings");
  await api.create(bindings, { metadata: { name }, spec: { policyName: name, validationActions: ["Deny"] } });
  await eventually(() => assert.rejects(probe, new RegExp(`ValidatingAdmissionPolicy '${name}'`)), 30_000);
  return async () => {
    await api.delete(`${bindings}/${name}`);
    await api.delete(`${POLICIES}/${name}`);
  };
}
