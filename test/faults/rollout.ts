/** A binding that restarts many Deployments when its Secret changes, and controllers that the test starts and kills. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { stopSharedController } from "../controller/shared.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

/** The limit for restarting all Deployments on a busy machine, including the time until a lease expires. */
export const THROUGH_MS = 120_000;

export class Rollout {
  readonly names: readonly string[];
  /** How many of them may roll out at once, until `limit` changes it. */
  readonly most: number;
  readonly team: TestNamespace;
  readonly shop: Workloads;
  /** The current value of the Secret. */
  current = "";
  #rotations = 0;
  readonly #controllers: ControllerProcess[] = [];

  private constructor(team: TestNamespace, count: number) {
    this.team = team;
    this.names = Array.from({ length: count }, (_, at) => `app-${at}`);
    this.most = Math.ceil(count / 4);
    this.shop = new Workloads(team);
  }

  /** Creates so many Deployments and the binding, with one controller in place of the shared one. */
  static async start(count: number): Promise<Rollout> {
    await stopSharedController();
    const rollout = new Rollout(await createNamespace({ controller: false, rules: rolloutRules }), count);
    await rollout.newController();
    await rollout.#create();
    return rollout;
  }

  async #create(): Promise<void> {
    const { names, shop, team } = this;
    this.current = secretText("token");
    await team.secret("bucket", { token: this.current });
    await shop.deploy(Object.fromEntries(names.map((name) => [name, { env: { bucket: ["token"] } }])));
    const rollout = { consumersOf: ["bucket"], kinds: ["Deployment"], maxConcurrent: this.most };
    await team.bind("rolls", { sources: [{ secret: { name: "bucket" } }], rollout });
    await this.through();
  }

  async stop(): Promise<void> {
    await this.stopControllers();
    await this.team.api.delete(this.team.path("inlay.dev/v1alpha1", "secretbindings"));
    for (const { output } of this.#controllers) assert.deepEqual(foundIn(output), []);
  }

  async newController(...args: string[]): Promise<ControllerProcess> {
    const controller = new ControllerProcess(controlPlane(), ...args);
    this.#controllers.push(controller);
    await controller.start();
    return controller;
  }

  async stopControllers(): Promise<void> {
    await Promise.all(this.#controllers.map((controller) => controller.stop()));
  }

  async onlyController(): Promise<void> {
    await this.stopControllers();
    await this.newController();
  }

  /** Kills the controller that started last. */
  async kill(): Promise<void> {
    await this.#controllers.at(-1)?.stop("SIGKILL");
  }

  async rotate(): Promise<void> {
    this.#rotations++;
    await this.setToken(secretText("token"));
  }

  /** Writes a value that is not counted as a rotation, because the controller may not read the value before it. */
  async setToken(token: string): Promise<void> {
    this.current = token;
    await this.team.secret("bucket", { token });
  }

  async limit(maxConcurrent: number | null): Promise<void> {
    await this.team.rebind("rolls", { rollout: { maxConcurrent } });
    await this.through();
  }

  /** Sets the time that a new pod must be ready before its Deployment has rolled out. */
  async readyAfter(minReadySeconds: number): Promise<void> {
    const { api } = this.team;
    await Promise.all(this.names.map((name) => api.merge(this.shop.path(name), { spec: { minReadySeconds } })));
  }

  /** Waits until the controller has rolled out all rotations. */
  async through(): Promise<void> {
    await this.shop.rolledOut("rolls", this.#rotations, THROUGH_MS);
  }

  /** How often each Deployment has restarted since `before`. */
  async restartsSince(before: Record<string, number>): Promise<Map<string, number>> {
    const after = await this.shop.restarts();
    return new Map(this.names.map((name) => [name, (after[name] ?? 0) - (before[name] ?? 0)]));
  }

  async restartedOnce(before: Record<string, number>): Promise<void> {
    assert.deepEqual(await this.restartsSince(before), new Map(this.names.map((name) => [name, 1])));
  }

  /** Waits until so many Deployments have restarted, and not all of them. */
  async inTheMiddle(before: Record<string, number>, count: number): Promise<void> {
    await eventually(async () => {
      const restarted = [...(await this.restartsSince(before)).values()].filter((each) => each > 0).length;
      assert.ok(restarted >= count, `${restarted} restarted`);
      assert.ok(restarted < this.names.length);
    }, THROUGH_MS);
  }
}
