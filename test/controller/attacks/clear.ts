/** Deletes what a tenant has made, because the removal of a test's namespace leaves such objects, which take room in etcd. */
import { unlessGone } from "../api.ts";
import type { TestNamespace } from "../test-namespace.ts";

const LARGE = [
  ["v1", "configmaps"],
  ["v1", "secrets"],
  ["rbac.authorization.k8s.io/v1", "roles"],
] as const;

export async function clear(tenant: TestNamespace): Promise<void> {
  await tenant.remove();
  for (const [apiVersion, plural] of LARGE) await tenant.api.delete(tenant.path(apiVersion, plural)).catch(unlessGone);
}
