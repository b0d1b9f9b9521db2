/** Targets that a binding makes: what is special about one comes in, the entry, its rights and the object go out. */
import type { AnyObject } from "./api.ts";
import { harborCluster } from "./harbor.ts";
import { secretText } from "./leak-detector.ts";
import { createNamespace, type Rule, type TestNamespace } from "./test-namespace.ts";

/** Says which binding made an object. */
export const LABEL = "inlay.dev/created-by";
export const accessKey = { path: "spec.storage.spec.s3.accesskey", from: { source: "bucket", key: "accessKeyID" } };

export const ownRules = (verbs: string[]): Rule[] => [
  { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"] },
  { apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs },
  { apiGroups: [""], resources: ["configmaps"], verbs },
];
/** All that making, keeping and deleting takes. */
export const ALL = ["get", "list", "watch", "patch", "create", "delete"];

/** A team whose account may do that to what is made. */
export const newMaker = (verbs = ALL) => createNamespace({ rules: ownRules(verbs) });

/** The manifest of a HarborCluster, with other values for some of its spec. */
export function manifest(spec: object = {}, metadata: object = { labels: { tier: "prod" } }): AnyObject {
  const harbor = harborCluster("") as AnyObject;
  return { metadata, spec: { ...harbor.spec, ...spec } };
}

/** A target that is made: HarborCluster `harbor` with its access key. */
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

/** Makes the Secret and the binding `harbor`, and waits until the object is there. Returns it. */
export async function makeHarbor(team: TestNamespace, target: object = {}): Promise<AnyObject> {
  await team.secret("bucket", { accessKeyID: secretText("access") });
  await team.bind("harbor", specOf(made(target)));
  await team.until("harbor", "Synced");
  return team.api.get(team.harborPath());
}

/** A target that is made: ConfigMap `place`. */
export function configMap(more: object = {}): AnyObject {
  return { apiVersion: "v1", kind: "ConfigMap", name: "place", create: { manifest: {} }, ...more };
}
