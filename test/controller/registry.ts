/** A team with a Secret and a HarborCluster, and the binding of the one to the other, for tests of as whom Inlay acts. */
import type { AnyObject } from "./api.ts";
import { secretText } from "./leak-detector.ts";
import { createNamespace, harborTarget, type TestNamespace } from "./test-namespace.ts";

/** "Within seconds", on a machine that has other things to do. */
export const SECONDS = 10_000;

export const accessKey = { accesskey: { from: { source: "bucket", key: "accessKeyID" } } };

/** The spec of a binding, with more of it and more of its target. */
export const spec = (more: object = {}, target: object = {}) => ({
  sources: [{ secret: { name: "bucket" } }],
  targets: [harborTarget(accessKey, target)],
  ...more,
});

/** Returns the value in the Secret too. */
export async function newRegistry(
  options: Parameters<typeof createNamespace>[0] = {},
): Promise<{ team: TestNamespace; value: string }> {
  const team = await createNamespace(options);
  const value = secretText("access");
  await team.secret("bucket", { accessKeyID: value });
  await team.harbor();
  return { team, value };
}

/** What a binding says of its first target. */
export const messageOf = (binding: AnyObject): string => binding.status.targets[0].message;
