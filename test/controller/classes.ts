/** SecretProviderClasses for tests, and pods that mount them. No driver runs: tests write the Secrets themselves. */
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "./api.ts";
import { applyFile } from "./manifests.ts";
import type { TestNamespace } from "./test-namespace.ts";

export const CLASS_GROUP = "secrets-store.csi.x-k8s.io";
const file = join(import.meta.dirname, "..", "demand", "crds", "secretproviderclass.yaml");

const statusFile = join(import.meta.dirname, "secretproviderclasspodstatus.yaml");

export const installClasses = () => applyFile(new Api(controlPlane()), file);

/** Installs both kinds: classes, and the driver's reports about the pods that mount them. */
export async function installPodStatuses(): Promise<void> {
  await installClasses();
  await applyFile(new Api(controlPlane()), statusFile);
}

/** The volume of a pod that mounts a class. */
export const classVolume = (secretProviderClass: string) => ({
  name: "store",
  csi: { driver: "secrets-store.csi.k8s.io", readOnly: true, volumeAttributes: { secretProviderClass } },
});

export const classesPath = (team: TestNamespace) => team.path(`${CLASS_GROUP}/v1`, "secretproviderclasses");

/** Creates a class whose driver writes those keys into Secrets. */
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

export const podStatusesPath = (team: TestNamespace) =>
  team.path(`${CLASS_GROUP}/v1`, "secretproviderclasspodstatuses");

/** Reports what a pod has mounted of a class, as the driver does: the id and version of each object. */
export async function report(
  team: TestNamespace,
  podName: string,
  secretProviderClassName: string,
  versions: Record<string, string>,
): Promise<void> {
  const name = `${podName}-${team.namespace}-${secretProviderClassName}`;
  const objects = Object.entries(versions).map(([id, version]) => ({ id, version }));
  const status = { podName, secretProviderClassName, mounted: true, targetPath: "/pods", objects };
  const path = podStatusesPath(team);
  if (await team.api.find(`${path}/${name}`)) await team.api.merge(`${path}/${name}`, { status });
  else
    await team.api.create(path, {
      apiVersion: `${CLASS_GROUP}/v1`,
      kind: "SecretProviderClassPodStatus",
      metadata: { name },
      status,
    });
}

/** Deletes the report of a pod, as when the pod is deleted. */
export const unreport = (team: TestNamespace, podName: string, secretProviderClassName: string) =>
  team.api.delete(`${podStatusesPath(team)}/${podName}-${team.namespace}-${secretProviderClassName}`);
