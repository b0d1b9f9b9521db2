/**
 * Finds out from the Leases, which every controller holds while it runs, where the controller is and whether it runs, so that an outdated
 * status is not taken as current.
 */
import { DEFAULT_NAMESPACE, LEASE_NAME } from "../api/installation.ts";
import type { KubeObject } from "../apimachinery/objects.ts";
import type { Advice } from "../apimachinery/problem.ts";
import { LEASES } from "../apimachinery/resources.ts";
import type { Reader } from "./reading.ts";
import { ageOf } from "./text.ts";

/** A leader renews its Lease about once a second, but the clock of this machine may differ from its clock. */
const STALE_MS = 60_000;

interface RunningController {
  /** The namespace of the Lease that was renewed last. Undefined if the user may read no Lease. */
  readonly namespace?: string;
  /** What to do if no controller renews its Lease. Undefined if one does, or if that can't be known. */
  readonly advice?: Advice;
}

interface Lease {
  readonly namespace: string;
  readonly renewTime: string;
}

/** `namespace` is that of the binding, in which a controller for this namespace alone runs. */
export async function findController(reader: Reader, namespace: string, now: number): Promise<RunningController> {
  const leases = (await leasesOf(reader, namespace)).sort(
    (one, other) => Date.parse(other.renewTime) - Date.parse(one.renewTime),
  );
  const [last] = leases;
  if (last === undefined) return {};
  if (now - Date.parse(last.renewTime) < STALE_MS) return { namespace: last.namespace };
  const advice = {
    reason: "ControllerNotRunning",
    message: `no controller has renewed the Lease ${last.namespace}/${LEASE_NAME} for ${ageOf(last.renewTime, now)}, so nothing is written or restarted; check its pods with:`,
    command: podsCommand(last.namespace),
  };
  return { namespace: last.namespace, advice };
}

/** Lists the controller's pods: in all namespaces if its namespace is not known. */
export const podsCommand = (namespace: string | undefined): string =>
  `kubectl get pods ${namespace === undefined ? "-A" : `-n ${namespace}`} -l app.kubernetes.io/name=inlay`;

/** The Leases in all namespaces if the user may list them, otherwise those in the namespaces where a controller usually runs. */
async function leasesOf(reader: Reader, namespace: string): Promise<Lease[]> {
  const all = await reader.list({ resource: LEASES, fields: `metadata.name=${LEASE_NAME}`, form: "whole" }, leaseOf);
  if (all.state === "Found") return all.it;
  const readings = await Promise.all(
    [...new Set([DEFAULT_NAMESPACE, namespace])].map((each) =>
      reader.get({ resource: LEASES, namespace: each, name: LEASE_NAME }, leaseOf, "whole"),
    ),
  );
  return readings.flatMap((reading) => (reading.state === "Found" ? (reading.it ?? []) : []));
}

function leaseOf({ metadata: { namespace = "" }, spec }: KubeObject): Lease | undefined {
  const { renewTime } = (spec ?? {}) as { renewTime?: string };
  return renewTime === undefined ? undefined : { namespace, renewTime };
}
