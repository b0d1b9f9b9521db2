/** SecretProviderClasses for tests, and pods that mount them. No driver runs: tests write the Secrets themselves. */
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "./api.ts";
import { applyFile } from "./manifests.ts";
import type { TestNamespace } from "./test-namespace.ts";

export const CLASS_GROUP = "secrets-store.csi.x-k8s.io";
const file = join(import.meta.dirname, "..", "demand", "crds", "secretproviderclass.yaml");

export const installClasses = () => applyFile(new Api(controlPlane()), file);

/** The volume of a pod that mounts a class. */
export const classVolume = (secretProviderClass: string) => ({
  name: "store",
  csi: { driver: "secrets-store.csi.k8s.io", readOnly: true, volumeAttributes: { secretProviderClass } },
});

export const classesPath = (team: TestNamespace) => team.path(`${CLASS_GROUP}/v1`, "secretproviderclasses");

/** Makes a class that has those keys written into Secrets. */
export const newClass = (team: TestNamespace, name: string, secrets: Record<string, string[]>): Promise<AnyObject> =>
  team.api.create(classesPath(team), {
    apiVersion: `${CLASS_GROUP}/v1`,
    kind: "SecretProviderClass",
    metadata: { name },
    spec: { provider: "vault", secretObjects: secretObjects(secrets) },
  });

export const secretObjects = (secrets: Record<string, string[]>) =>
  Object.entries(secrets).map(([secretName, keys]) => ({
    secretName,
    type: "Opaque",
    data: keys.map((key) => ({ key, objectName: key })),
  }));
