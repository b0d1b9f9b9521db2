/** What Inlay promises with each GitOps tool: tests of both tools use these steps. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { root, runSection, shell } from "../e2e/pages.ts";
import { harborCrd, shipped } from "./files.ts";
import type { Repository } from "./git.ts";
import type { World } from "./world.ts";

export const BINDING = "/apis/inlay.dev/v1alpha1/namespaces/registry/secretbindings/harbor-s3";
export const HARBOR = "/apis/goharbor.io/v1beta1/namespaces/registry/harborclusters/harbor";
const SECRETS = "/api/v1/namespaces/registry/secrets";

/** The kinds that deploy/ has, except for those whose status the cluster changes. */
const KINDS =
  "crd,serviceaccount,configmap,secret,service,deployment,clusterrole,clusterrolebinding,role,rolebinding,flowschema," +
  "validatingadmissionpolicy,validatingadmissionpolicybinding";
const COLUMNS = "KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name,VERSION:.metadata.resourceVersion";

/** The version of every object of Inlay. */
export async function versionsOf({ cluster }: World): Promise<string[]> {
  const { stdout } = await cluster.kubectl("get", KINDS, "-A", "-o", `custom-columns=${COLUMNS}`, "--no-headers");
  return stdout.split("\n").filter((line) => line.includes("inlay"));
}

/** Creates the namespace `registry`, the kind HarborCluster, and the Secret that the binding reads. Returns the access key. */
export async function prepareRegistry({ cluster, api }: World): Promise<string> {
  await cluster.kubectl("apply", "-f", harborCrd);
  await cluster.kubectl("create", "namespace", "registry");
  const accessKeyID = secretText("access");
  await api.create(SECRETS, { metadata: { name: "bucket" }, stringData: { accessKeyID } });
  return accessKeyID;
}

export async function rotate({ api }: World): Promise<string> {
  const accessKeyID = secretText("rotated");
  await api.merge(`${SECRETS}/bucket`, { stringData: { accessKeyID } });
  return accessKeyID;
}

export async function untilAccessKey({ api }: World, wanted: string | undefined): Promise<void> {
  await eventually(async () => assert.equal((await api.get(HARBOR)).spec.storage.spec.s3.accesskey, wanted));
}

/** The binding of the pages, as it is in git. */
export const binding = (
  path = "spec.storage.spec.s3.accesskey",
  annotations: object = {},
  target: object = {},
): string =>
  JSON.stringify({
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretBinding",
    metadata: { name: "harbor-s3", namespace: "registry", annotations },
    spec: {
      sources: [{ secret: { name: "bucket" } }],
      targets: [
        {
          apiVersion: "goharbor.io/v1beta1",
          kind: "HarborCluster",
          name: "harbor",
          onRelease: "Remove",
          fields: [{ path, from: { source: "bucket", key: "accessKeyID" } }],
          ...target,
        },
      ],
    },
  });

/** The binding of compositions/replicator, and a copy that it adopts. */
export const COPIES = "/apis/inlay.dev/v1alpha1/namespaces/registry-login/secretbindings/login-replicated";
export const COPY = "/api/v1/namespaces/copy-a/secrets/login";

/** Creates what compositions/replicator needs by its page. Returns its composition, and the same with the annotation for its deletion. */
export async function prepareCopies({ cluster }: World): Promise<{ composition: string; annotated: string }> {
  const place = { cluster, folder: root };
  for (const heading of ["## Try it without the replicator", "## 2. Give permissions in the namespaces"])
    await runSection("compositions/replicator/README.md", heading, {}, place);
  // It is not supported, so the composition would not be Ready.
  await cluster.kubectl("delete", "secret", "digits", "--namespace=registry-login");
  const { "composition.yaml": composition = "" } = shipped("compositions/replicator", "");
  const annotated = composition.replace("metadata:\n", '$&  annotations: { inlay.dev/delete-copies: "true" }\n');
  return { composition, annotated };
}

/** What `inlay gitops` prints for the files in a folder of a repository, as YAML. */
export function printed(tool: string, folder: string, world: World, repository: Repository): Promise<string> {
  const { env, place } = world.reader(repository);
  return shell(`npx inlay gitops ${tool} -f ${folder} -f "$INLAY/samples/harbor/crd" -o yaml`, env, place);
}

/** What must survive the removal of what installs Inlay, each with its uid. */
export async function survivors({ api }: World): Promise<AnyObject> {
  const paths = [
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/secretbindings.inlay.dev",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/bindingcompositions.inlay.dev",
    "/api/v1/namespaces/inlay-system",
    "/api/v1/namespaces/inlay-system/secrets/inlay-digest-key",
    BINDING,
    HARBOR,
  ];
  const objects = await Promise.all(paths.map((path) => api.get(path)));
  return objects.map(({ kind, metadata }) => ({
    kind,
    name: metadata.name,
    uid: metadata.uid,
    deleted: metadata.deletionTimestamp,
  }));
}
