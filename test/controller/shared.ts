/** The shared controller and audit log of a test process. setup.ts and the first test set them. */
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

/** The audit log of the shared control plane's API server. */
export function auditLog(): AuditLog {
  if (log === undefined) throw new Error("only a test that has a control plane has an audit log");
  return log;
}

/** Only setup.ts calls this. */
export function shareAuditLog(auditLog: AuditLog): void {
  log = auditLog;
}
