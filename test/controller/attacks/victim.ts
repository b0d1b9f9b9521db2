/**
 * Namespaces with one binding each, beside a tenant who attacks the controller: how long their changes take, and how long the controller's
 * event loop blocks meanwhile.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { ControllerProcess } from "../controller.ts";
import { secretText } from "../leak-detector.ts";
import { createNamespace, type TestNamespace } from "../test-namespace.ts";

/** How long a change may take before the victim gives up. */
const GIVES_UP_MS = 60_000;
/** Often, because the latency is a result. */
const LOOKED_EVERY_MS = 3;
const PAUSE_MS = 250;
/** Namespaces that take turns, because Inlay slows down for a value that changes sixty times in a minute. */
const TEAMS = 5;
/** The metric is the longest time between two runs of a timer, which includes its interval. */
const MEASURED_EVERY_MS = 100;

export interface Served {
  /** How long each change took to arrive, in ms. */
  changes: number[];
  /** The longest delay of a timer in the controller, in ms. */
  blockedMs: number;
}

export class Victim {
  readonly #controller: ControllerProcess;
  readonly #teams: readonly TestNamespace[];
  #changes = 0;

  private constructor(controller: ControllerProcess, teams: readonly TestNamespace[]) {
    this.#controller = controller;
    this.#teams = teams;
  }

  static async beside(controller: ControllerProcess): Promise<Victim> {
    const teams: TestNamespace[] = [];
    for (let n = 0; n < TEAMS; n++) teams.push(await createNamespace({ controller: false }));
    for (const team of teams) await team.boundHarbor();
    return new Victim(controller, teams);
  }

  /** Changes a value again and again until `attack` has ended and `afterMs` have passed since. */
  async during(attack: Promise<unknown>, afterMs = 0): Promise<Served> {
    const served: Served = { changes: [], blockedMs: 0 };
    await this.#blockedMs();
    let isOver = false;
    const over = attack
      .then(() => sleep(afterMs))
      .finally(() => {
        isOver = true;
      });
    // The loop ends before an error of the attack is thrown.
    over.catch(() => {});
    do {
      served.changes.push(await this.change());
      served.blockedMs = Math.max(served.blockedMs, await this.#blockedMs());
      await sleep(PAUSE_MS);
    } while (!isOver);
    await over;
    return served;
  }

  /** Returns how many ms a new value takes to arrive. Fails after a minute. */
  async change(): Promise<number> {
    const accessKeyID = secretText("access");
    const team = this.#teams[this.#changes++ % TEAMS] as TestNamespace;
    const from = performance.now();
    await team.secret("bucket", { accessKeyID });
    while ((await team.s3()).accesskey !== accessKeyID) {
      assert.ok(performance.now() - from < GIVES_UP_MS, "the change did not arrive within a minute");
      await sleep(LOOKED_EVERY_MS);
    }
    return performance.now() - from;
  }

  async leave(): Promise<void> {
    for (const team of this.#teams) await team.remove();
  }

  /** Since the last call. */
  async #blockedMs(): Promise<number> {
    const longest = await this.#controller.metric("nodejs_eventloop_lag_max_seconds");
    return Math.max(0, 1_000 * longest - MEASURED_EVERY_MS);
  }
}
