/** Builds complete objects for unit tests: a test passes the fields that matter, the rest is as the API server sets it. */
import type { SecretBinding, Status, Target, TargetStatus } from "../../src/api/binding.ts";
import type { RolloutSpec } from "../../src/api/rollout.ts";
import { FieldPath } from "../../src/apimachinery/field-path.ts";
import type { KubeObject, ObjectMeta } from "../../src/apimachinery/objects.ts";
import type { WorkloadLookup } from "../../src/rollout/discover/lookups.ts";
import type { UsesOfKeys } from "../../src/rollout/discover/written-values.ts";
import type { Dependent } from "../../src/rollout/types.ts";
import type { Workload } from "../../src/workloads/workload.ts";
import { DEPLOYMENTS } from "./resources.ts";

type NamedTarget = Extract<Target, { name: string }>;
type SelectingTarget = Exclude<Target, NamedTarget>;

interface BindingParts {
  metadata?: Partial<ObjectMeta>;
  spec?: Partial<SecretBinding["spec"]>;
  status?: Status | undefined;
}

/** In the namespace registry, with the source bucket and no targets. */
export function bindingOf({ metadata, spec, status }: BindingParts = {}): SecretBinding {
  return {
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretBinding",
    metadata: {
      name: "harbor-s3",
      namespace: "registry",
      uid: "uid-1",
      resourceVersion: "7",
      generation: 1,
      ...metadata,
    },
    spec: {
      serviceAccountName: "inlay",
      defaults: { onMissing: "Wait", onConflict: "Fail", mode: "Continuous" },
      sources: [{ secret: { name: "bucket" } }],
      targets: [],
      ...spec,
    },
    ...(status && { status }),
  };
}

/** The HarborCluster harbor, with a field from a key of the source bucket. */
export const targetOf = (more: Partial<NamedTarget> = {}): NamedTarget => ({
  apiVersion: "goharbor.io/v1beta1",
  kind: "HarborCluster",
  name: "harbor",
  fields: [{ path: "spec.key", from: { source: "bucket", key: "key" } }],
  ...more,
});

/** Every HarborCluster of the binding's namespace. */
export const selectingTargetOf = (more: Partial<SelectingTarget> = {}): SelectingTarget => ({
  apiVersion: "goharbor.io/v1beta1",
  kind: "HarborCluster",
  selector: {},
  fields: [{ path: "spec.key", from: { source: "bucket", key: "key" } }],
  ...more,
});

/** The record of a target that is in sync. */
export const recordOf = (more: Partial<TargetStatus> = {}): TargetStatus => ({
  apiVersion: "goharbor.io/v1beta1",
  kind: "HarborCluster",
  namespace: "registry",
  name: "harbor",
  reason: "Synced",
  ...more,
});

interface ObjectParts {
  apiVersion?: string;
  kind?: string;
  metadata?: Partial<ObjectMeta>;
  [field: string]: unknown;
}

export const kubeObjectOf = ({ metadata, ...more }: ObjectParts = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", namespace: "registry", uid: "uid-1", resourceVersion: "1", ...metadata },
  ...more,
});

/** A workload without references that has rolled out. */
export const workloadDataOf = (more: Partial<Workload> = {}): Workload => ({
  references: [],
  progress: { state: "Done", message: "rolled out" },
  paused: false,
  onDelete: false,
  unprobed: [],
  owners: [],
  stamps: [],
  labels: {},
  ...more,
});

const TEMPLATE_ANNOTATION = FieldPath.parse('spec.template.metadata.annotations["inlay.dev/rollout"]');

interface DependentParts extends Partial<Omit<Dependent, "workload" | "version" | "ref">> {
  ref?: Partial<Dependent["ref"]>;
  version?: Partial<Dependent["version"]>;
  workload?: Partial<Workload>;
}

/** The Deployment core of the namespace registry. */
export const dependentOf = ({ ref, version, workload, ...more }: DependentParts = {}): Dependent => ({
  ref: { resource: DEPLOYMENTS, namespace: "registry", name: "core", ...ref },
  version: { uid: "uid-core", resourceVersion: "1", generation: 1, ...version },
  workload: workloadDataOf(workload),
  stampAt: TEMPLATE_ANNOTATION,
  isRestartField: false,
  step: 0,
  uses: new Set(["bucket/key"]),
  ...more,
});

export const rolloutSpecOf = (more: Partial<RolloutSpec> = {}): RolloutSpec => ({
  kinds: ["Deployment", "StatefulSet", "DaemonSet"],
  onFirstSync: "None",
  stamp: { annotation: "inlay.dev/rollout", value: "Revision" },
  timeout: "10m",
  ...more,
});

/** Deployments whose pods refer to the Secret bucket. */
export const lookupOf = (more: Partial<WorkloadLookup> = {}): WorkloadLookup => ({
  step: 0,
  resource: DEPLOYMENTS,
  paths: { template: "spec.template" },
  stampAt: TEMPLATE_ANNOTATION,
  namespace: "registry",
  find: { by: "reference", kind: "Secret", name: "bucket", uses: usesOfSource("bucket") },
  ...more,
});

/** The values behind keys that pods read directly from a source. */
export const usesOfSource =
  (source: string): UsesOfKeys =>
  (keys = ["*"]) =>
    keys.map((key) => `${source}/${key}`);
