/**
 * Finds out from the Lease, which every controller holds while it runs, whether a controller runs, so that an outdated status is not taken
 * as current.
 */
import { DEFAULT_NAMESPACE, LEASE_NAME } from "../api/installation.ts";
import { LEASES } from "../apimachinery/resources.ts";
import type { Advice } from "./explanation.ts";
import type { Reader } from "./reading.ts";
import { ageOf } from "./text.ts";

/** A leader renews its Lease about once a second, but the clock of this machine may differ from its clock. */
const STALE_MS = 60_000;

/** What to do if the last leader no longer renews its Lease. Undefined if one does, or if that can't be known. */
export async function notRunning(reader: Reader, now: number): Promise<Advice | undefined> {
  const lease = await reader.get(
    { resource: LEASES, namespace: DEFAULT_NAMESPACE, name: LEASE_NAME },
    ({ spec }) => (spec as { renewTime?: string } | undefined)?.renewTime,
    "whole",
  );
  if (lease.state !== "Found" || lease.it === undefined || now - Date.parse(lease.it) < STALE_MS) return undefined;
  const where = `Lease ${DEFAULT_NAMESPACE}/${LEASE_NAME}`;
  return {
    reason: "ControllerNotRunning",
    message: `no controller has renewed the ${where} for ${ageOf(lease.it, now)}, so nothing is written or restarted; check its pods with:`,
    command: `kubectl get pods -n ${DEFAULT_NAMESPACE}`,
  };
}
