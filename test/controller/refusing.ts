/** Installs a policy that refuses writes, until the returned function removes it. */
import assert from "node:assert/strict";
import { eventually } from "./eventually.ts";
import type { TestNamespace } from "./test-namespace.ts";

const POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

interface Writes {
  operations: string[];
  apiGroups: string[];
  resources: string[];
}

/**
 * Refuses such writes in the team's namespace for which the CEL expression `isFine` is false. Returns once `probe` is refused.
 */
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
