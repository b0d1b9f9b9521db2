/** The tools of a measurement: the cluster, a fast client, the controller, and the table for figures. */
import { join } from "node:path";
import type { ControlPlane } from "../test/control-plane/control-plane.ts";
import { AuditLog } from "../test/controller/audit.ts";
import { AUDIT_LOG, type Client } from "./cluster.ts";
import { BuiltController } from "./processes.ts";
import type { Table } from "./table.ts";
import { bindingPath } from "./world.ts";

export class Rig {
  readonly cluster: ControlPlane;
  readonly client: Client;
  readonly table: Table;
  readonly scale: number;
  readonly controller: BuiltController;
  readonly audit: AuditLog;

  constructor(cluster: ControlPlane, client: Client, table: Table, scale: number) {
    this.cluster = cluster;
    this.client = client;
    this.table = table;
    this.scale = scale;
    this.controller = new BuiltController(cluster, "--log-level", "info");
    this.audit = new AuditLog(join(cluster.folder, AUDIT_LOG));
  }

  /** Scales a number of objects. */
  of(count: number): number {
    return Math.max(10, Math.round(count * this.scale));
  }

  /** Waits until so many bindings of the cluster are synced. */
  async synced(count: number): Promise<void> {
    const ready = new Set<string>();
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = await this.client.watch(bindingPath(), ({ metadata, status }) => {
      if (status?.synced === "1/1") ready.add(metadata.uid);
      if (ready.size >= count) resolve();
    });
    await promise;
    stop();
  }
}
