/** Bindings for unit tests: what a test is about comes in, a whole binding goes out. */

import type { SecretBinding } from "../../src/api/binding.ts";
import type { Identity } from "../../src/kube/identity.ts";
import type { Parts, Run } from "../../src/parts.ts";

/** Of the namespace registry, with the source bucket; as the API server fills in what is left out. */
export function bindingOf(spec: object = {}, status?: object): SecretBinding {
  return {
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretBinding",
    metadata: { name: "harbor-s3", namespace: "registry", uid: "uid-1", resourceVersion: "7", generation: 1 },
    spec: {
      serviceAccountName: "inlay",
      defaults: { onMissing: "Wait", onConflict: "Fail", mode: "Continuous" },
      sources: [{ secret: { name: "bucket" } }],
      targets: [],
      ...spec,
    },
    ...(status && { status }),
  } as unknown as SecretBinding;
}

/** A target that takes a key of the source bucket. */
export const harbor = (fields: object[] = [{ path: "spec.key", from: { source: "bucket", key: "key" } }]): object => ({
  apiVersion: "goharbor.io/v1beta1",
  kind: "HarborCluster",
  name: "harbor",
  fields,
});

/** A reconcile of a binding of which no source was read. */
export const runOf = (parts: Parts, binding: SecretBinding, identity: Identity): Run => ({
  parts,
  binding,
  identity,
  account: undefined,
  differ: undefined,
  seen: () => undefined,
  left: () => undefined,
  inputs: "",
  sourceUids: [],
});

export const KINDS = ["Deployment", "StatefulSet", "DaemonSet"];
