/** The tools of a measurement: the cluster, a fast client, the controller, and the table and the results for figures. */
import { join } from "node:path";
import type { ControlPlane } from "../test/control-plane/control-plane.ts";
import { AuditLog } from "../test/controller/audit.ts";
import { type AnyObject, AUDIT_LOG, type Client } from "./cluster.ts";
import { BuiltController } from "./processes.ts";
import type { Results } from "./results.ts";
import type { Table } from "./table.ts";
import { bindingPath } from "./world.ts";

export class Rig {
  readonly cluster: ControlPlane;
  readonly client: Client;
  readonly table: Table;
  readonly results: Results;
  readonly scale: number;
  readonly controller: BuiltController;
  readonly audit: AuditLog;

  constructor(cluster: ControlPlane, client: Client, table: Table, results: Results, scale: number) {
    this.cluster = cluster;
    this.client = client;
    this.table = table;
    this.results = results;
    this.scale = scale;
    this.controller = new BuiltController(cluster, "--log-level", "info");
    this.audit = new AuditLog(join(cluster.folder, AUDIT_LOG));
  }

  /** Scales a number of objects. */
  of(count: number): number {
    return Math.max(10, Math.round(count * this.scale));
  }

  /** Waits until so many bindings of the cluster are synced. Calls back for each state of a binding. */
  async synced(count: number, seen?: (binding: AnyObject) => void): Promise<void> {
    const ready = new Set<string>();
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = await this.client.watch(bindingPath(), (binding) => {
      const { metadata, status } = binding;
      seen?.(binding);
      if (status?.synced === "1/1") ready.add(metadata.uid);
      if (ready.size >= count) resolve();
    });
    await promise;
    stop();
  }
}
