/** Reads from a pod what the leader needs to know of a replica, and computes which of its labels are wrong. Pure. */
import type { KubeObject } from "../../apimachinery/objects.ts";

export const ACTIVE = "inlay-active";
export const VERSION = "inlay-version";
const HASH = "pod-template-hash";
const LABEL_VALUE = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

export interface Replica {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** The same for all pods of a Deployment, whatever their ReplicaSet. */
  readonly group: string;
  readonly labels: Readonly<Labels>;
  /** Where to ask for its version; undefined while it does not run, or if no port has the name `health`. */
  readonly address: { host: string; port: number } | undefined;
}

export interface Labels {
  [ACTIVE]?: string | undefined;
  [VERSION]?: string | undefined;
}

interface PodSpec {
  containers?: { ports?: { name?: string; containerPort: number }[] }[];
}

interface PodStatus {
  phase?: string;
  podIP?: string;
}

export function replicaOf(pod: KubeObject): Replica {
  const { name, uid, resourceVersion, labels = {} } = pod.metadata;
  const { containers = [] } = (pod["spec"] ?? {}) as PodSpec;
  const { phase, podIP } = (pod["status"] ?? {}) as PodStatus;
  const health = containers.flatMap(({ ports = [] }) => ports).find((port) => port.name === "health");
  return {
    name,
    uid,
    resourceVersion,
    group: groupOf(pod),
    labels: { [ACTIVE]: labels[ACTIVE], [VERSION]: labels[VERSION] },
    address: phase === "Running" && podIP && health ? { host: podIP, port: health.containerPort } : undefined,
  };
}

/**
 * The name of a ReplicaSet is that of its Deployment and the hash in the labels of its pods. Every other pod is a group of its
 * own.
 */
function groupOf({ metadata }: KubeObject): string {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  const suffix = `-${metadata.labels?.[HASH]}`;
  const isOfDeployment = owner?.kind === "ReplicaSet" && owner.name?.endsWith(suffix) === true;
  return isOfDeployment ? `Deployment ${owner.name?.slice(0, -suffix.length)}` : `Pod ${metadata.uid}`;
}

/** A version as the value of a label; undefined if it can't be one. */
export function labelOf(version: string): string | undefined {
  const label = version.replaceAll("+", "-");
  return LABEL_VALUE.test(label) ? label : undefined;
}

/** The labels that are missing or wrong; undefined if there are none. A label that is wanted as undefined is not changed. */
export function missingLabels({ labels }: Replica, wanted: Labels): Record<string, string> | undefined {
  const missing = ([ACTIVE, VERSION] as const).flatMap((key) => {
    const value = wanted[key];
    return value === undefined || value === labels[key] ? [] : [[key, value] as const];
  });
  return missing.length === 0 ? undefined : Object.fromEntries(missing);
}
