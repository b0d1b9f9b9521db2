/** A team with a Secret, a HarborCluster and a binding, for tests of impersonation. */
import type { AnyObject } from "./api.ts";
import { secretText } from "./leak-detector.ts";
import { createNamespace, harborTarget, type TestNamespace } from "./test-namespace.ts";

/** "Within seconds", on a busy machine. */
export const SECONDS = 10_000;

export const accessKey = { accesskey: { from: { source: "bucket", key: "accessKeyID" } } };

/** The spec of a binding, with more fields of it and of its target. */
export const spec = (more: object = {}, target: object = {}) => ({
  sources: [{ secret: { name: "bucket" } }],
  targets: [harborTarget(accessKey, target)],
  ...more,
});

/** Also returns the value in the Secret. */
export async function newRegistry(
  options: Parameters<typeof createNamespace>[0] = {},
): Promise<{ team: TestNamespace; value: string }> {
  const team = await createNamespace(options);
  const value = secretText("access");
  await team.secret("bucket", { accessKeyID: value });
  await team.harbor();
  return { team, value };
}

/** The message of the condition Ready. */
export const messageOf = (binding: AnyObject): string => binding.status.conditions[0].message;
