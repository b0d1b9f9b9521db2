/** Targets that a binding creates: the entry of the binding, the permissions and the object. */
import type { AnyObject } from "./api.ts";
import { harborCluster } from "./harbor.ts";
import { secretText } from "./leak-detector.ts";
import { createNamespace, type Rule, type TestNamespace } from "./test-namespace.ts";

/** The label that names the binding which created an object. */
export const LABEL = "inlay.dev/created-by";
export const accessKey = { path: "spec.storage.spec.s3.accesskey", from: { source: "bucket", key: "accessKeyID" } };

export const ownRules = (verbs: string[]): Rule[] => [
  { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"] },
  { apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs },
  { apiGroups: [""], resources: ["configmaps"], verbs },
];
/** The verbs for creating, updating and deleting. */
export const ALL = ["get", "list", "watch", "patch", "create", "delete"];

/** Creates a team whose account has these verbs for the targets. */
export const newMaker = (verbs = ALL) => createNamespace({ rules: ownRules(verbs) });

/** The manifest of a HarborCluster, with other values for some of its spec. */
export function manifest(spec: object = {}, metadata: object = { labels: { tier: "prod" } }): AnyObject {
  const harbor = harborCluster("") as AnyObject;
  return { metadata, spec: { ...harbor.spec, ...spec } };
}

/** A target that the binding creates: HarborCluster `harbor` with its access key. */
export function made(more: object = {}): AnyObject {
  return {
    apiVersion: "goharbor.io/v1beta1",
    kind: "HarborCluster",
    name: "harbor",
    create: { manifest: manifest() },
    fields: [accessKey],
    ...more,
  };
}

export const bucket = [{ secret: { name: "bucket" } }];
export const specOf = (...targets: object[]) => ({ sources: bucket, targets });

/** Creates the Secret and the binding `harbor`, and waits until the target exists. Returns it. */
export async function makeHarbor(team: TestNamespace, target: object = {}): Promise<AnyObject> {
  await team.secret("bucket", { accessKeyID: secretText("access") });
  await team.bind("harbor", specOf(made(target)));
  await team.until("harbor", "Synced");
  return team.api.get(team.harborPath());
}

/** A target that the binding creates: ConfigMap `place`. */
export function configMap(more: object = {}): AnyObject {
  return { apiVersion: "v1", kind: "ConfigMap", name: "place", create: { manifest: {} }, ...more };
}
