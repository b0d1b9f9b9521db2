/** The one controller of a run of the tests, and the one audit log: setup.ts and the first test put them in. */
import type { ControlPlane } from "../control-plane/control-plane.ts";
import type { AuditLog } from "./audit.ts";
import { ControllerProcess } from "./controller.ts";

let controller: ControllerProcess | undefined;
let log: AuditLog | undefined;

export function sharedController(controlPlane: ControlPlane): ControllerProcess {
  controller ??= new ControllerProcess(controlPlane);
  return controller;
}

export async function stopSharedController(): Promise<void> {
  await controller?.stop();
}

/** What the shared control plane's API server was asked. */
export function auditLog(): AuditLog {
  if (log === undefined) throw new Error("only a test that has a control plane has an audit log");
  return log;
}

/** For setup.ts alone. */
export function shareAuditLog(auditLog: AuditLog): void {
  log = auditLog;
}
