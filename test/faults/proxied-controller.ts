/**
 * A controller that reaches the API server only through a proxy, with a fleet of bindings. It offers checks of the
 * controller's work. The tests themselves reach the API server directly.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { Fleet } from "../controller/fleet.ts";
import { foundIn } from "../controller/leak-detector.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { createNamespace, type Rule, usualRules } from "../controller/test-namespace.ts";
import { TcpProxy } from "./proxy.ts";

/** How long watches may be interrupted after a fault. A dead connection is noticed after 100 s at the latest. */
export const BACK_WITHIN_MS = 30_000;
/** How long forty changes may take on a busy machine. A request on a dead connection costs 15 s. */
export const PROMPTLY_MS = 14_000;

/** A proxy between the controller and the API server. */
export interface Door {
  url: string;
  /** Ends the fault. */
  resume(): void;
  stop(): Promise<void>;
}

interface Options {
  /** Added to the controller's command line. */
  args?: string[];
  /** The permissions of the account of the bindings. */
  rules?: Rule[];
}

export class ProxiedController<Proxy extends Door = TcpProxy> {
  readonly proxy: Proxy;
  readonly controller: ControllerProcess;
  readonly fleet: Fleet;

  private constructor(proxy: Proxy, controller: ControllerProcess, fleet: Fleet) {
    this.proxy = proxy;
    this.controller = controller;
    this.fleet = fleet;
  }

  /** Starts it in place of the shared controller, and waits until the fleet is in sync. */
  static async start(count: number, options: Options = {}): Promise<ProxiedController> {
    return ProxiedController.through(await TcpProxy.start(controlPlane().url), count, options);
  }

  /** Starts it behind another proxy, which `stop` stops too. */
  static async through<Proxy extends Door>(
    proxy: Proxy,
    count: number,
    { args = [], rules = usualRules }: Options = {},
  ): Promise<ProxiedController<Proxy>> {
    await stopSharedController();
    const door = {
      kubeconfigForServiceAccount: (namespace: string, name: string) =>
        controlPlane().kubeconfigForServiceAccount(namespace, name, proxy.url),
    };
    const controller = new ControllerProcess(door, ...args);
    try {
      await controller.start();
      const fleet = new Fleet(await createNamespace({ controller: false, rules }), count);
      await fleet.launch();
      return new ProxiedController(proxy, controller, fleet);
    } catch (error) {
      // A failed start must not leave programs behind that make other tests fail.
      await controller.stop();
      await proxy.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.proxy.resume();
    await this.controller.stop();
    await this.proxy.stop();
    await this.fleet.disband();
    assert.deepEqual(foundIn(this.controller.output), []);
  }

  /** The answer of /readyz, with the reason if it is not ready. */
  readiness(): Promise<string> {
    return this.controller.page("/readyz");
  }

  /** How often watches were started again, for any reason or for one. */
  restarts(reason = ""): Promise<number> {
    return this.controller.metric("inlay_watch_restarts_total", `reason="${reason}`);
  }

  /** How many watches are in a state. */
  streams(state: "synced" | "pending" | "failed" | "interrupted"): Promise<number> {
    return this.controller.metric("inlay_watch_streams", `state="${state}"`);
  }

  /** Rotates all Secrets while `meanwhile` runs, and checks that each target is written once. */
  async rotate(meanwhile: () => Promise<unknown> = async () => {}, withinMs?: number): Promise<void> {
    const [mark, before] = [await auditLog().mark(), await this.fleet.generations()];
    await Promise.all([this.fleet.rotate(), meanwhile()]);
    await this.fleet.inStep(withinMs);
    await this.writtenOnce(mark, before);
  }

  /** Each target has changed once since then, by one request. A request that was cut off may be logged as failed. */
  async writtenOnce(mark: number, before: ReadonlyMap<string, number>): Promise<void> {
    await this.changedOnce(before);
    assert.deepEqual(
      [...(await this.fleet.writesSince(mark))].filter(([, count]) => count > 1),
      [],
    );
  }

  /** Each target has changed once since then. */
  async changedOnce(before: ReadonlyMap<string, number>): Promise<void> {
    const after = await this.fleet.generations();
    const changes = this.fleet.names.map((name) => [name, (after.get(name) ?? 0) - (before.get(name) ?? 0)] as const);
    assert.deepEqual(
      changes.filter(([, count]) => count !== 1),
      [],
    );
  }

  /** All watches are synced again within seconds, /readyz says so, and the next rotation is written at once. */
  async isWell(withinMs = BACK_WITHIN_MS): Promise<void> {
    for (const state of ["interrupted", "failed", "pending"] as const)
      await eventually(async () => assert.equal(await this.streams(state), 0, await this.readiness()), withinMs);
    assert.equal(await this.readiness(), "ok\n");
    await this.rotate(undefined, PROMPTLY_MS);
  }
}
