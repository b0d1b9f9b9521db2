/** Workloads with annotations of Reloader for tests, and the number of their restarts. */
import assert from "node:assert/strict";
import type { AnyObject } from "./api.ts";
import { ControllerProcess } from "./controller.ts";
import { eventually } from "./eventually.ts";
import { secretText } from "./leak-detector.ts";
import { madeIn, PULSE_BINDING, untilMade } from "./reloader.ts";
import { createNamespace, type TestNamespace } from "./test-namespace.ts";
import { deployment, PULSE, Workloads } from "./workloads.ts";

export const AUTO = { "reloader.stakater.com/auto": "true" };
export const listed = (names: string) => ({ "secret.reloader.stakater.com/reload": names });

/** The names of the bindings of Deployments. */
export const named = (...names: string[]) => names.map((name) => `reloader-deployment-${name}`);

/** Its pods refer to the Secret `one`, and to the ConfigMap `config`. */
export function annotated(
  name: string,
  annotations: object,
  { pods = {}, spec = {} }: { pods?: object; spec?: object } = {},
): AnyObject {
  const volumes = [{ name: "config", configMap: { name: "config" } }];
  const object = deployment(name, { envFrom: ["one"], pods: { volumes, ...spec } }) as AnyObject;
  object.metadata.annotations = annotations;
  object.spec.template.metadata.annotations = pods;
  return object;
}

export class Shop extends Workloads {
  readonly team: TestNamespace;
  constructor(team: TestNamespace) {
    super(team);
    this.team = team;
  }

  rotate(name: string): Promise<void> {
    return this.team.secret(name, { token: secretText("token") });
  }

  async configure(name: string, value: string): Promise<void> {
    const path = this.team.path("v1", "configmaps");
    if (await this.team.api.find(`${path}/${name}`)) await this.team.api.merge(`${path}/${name}`, { data: { value } });
    else await this.team.api.create(path, { metadata: { name }, data: { value } });
  }

  async make(...workloads: AnyObject[]): Promise<void> {
    const path = this.team.path("apps/v1", "deployments");
    await Promise.all(workloads.map((each) => this.team.api.create(path, each)));
    await this.run(workloads.map(({ metadata }) => metadata.name));
  }

  /**
   * Asserts that each of these Deployments restarts while `act` runs, once for each time that it is listed, and no others.
   * Returns when their rollouts have ended.
   */
  async restartedBy(act: () => Promise<unknown>, names: readonly string[], made: readonly string[]): Promise<void> {
    const [before, rollouts] = [await this.restarts(), await this.#rollouts()];
    await act();
    const restarted = async () => {
      const now = await this.restarts();
      const all = Object.entries(now).flatMap(([name, count]) => Array(count - (before[name] ?? 0)).fill(name));
      assert.deepEqual(all.sort(), [...names].sort());
    };
    await eventually(restarted, 30_000);
    if (names.length === 0) await this.barrier();
    // A Deployment has restarted a moment before the status of its binding shows that.
    else await eventually(async () => assert.ok((await this.#rollouts()) >= rollouts + names.length), 30_000);
    await untilMade(this.team, made);
    await restarted();
  }

  /** The number of rollouts of the bindings here that have ended. */
  async #rollouts(): Promise<number> {
    const revisions = (await madeIn(this.team)).map(({ status }) => status?.rollout?.revision ?? 0);
    return revisions.reduce((sum, revision) => sum + revision, 0);
  }

  /**
   * Waits until the controller has processed all earlier changes of Secrets and ConfigMaps here: a watch delivers changes in
   * order, and another Deployment restarts for a later change of each.
   */
  async barrier(): Promise<void> {
    if (!(await this.team.api.find(this.path(PULSE)))) {
      await this.rotate(PULSE);
      await this.configure(PULSE, "0");
      const annotations = { ...listed(PULSE), "configmap.reloader.stakater.com/reload": PULSE };
      const { spec, ...pulse } = annotated(PULSE, annotations);
      await this.team.api.create(this.team.path("apps/v1", "deployments"), {
        ...pulse,
        spec: { ...spec, replicas: 0 },
      });
    }
    const { revision } = (await this.until(PULSE_BINDING, "RolledOut")).status.rollout;
    await this.rotate(PULSE);
    await this.rolledOut(PULSE_BINDING, revision + 1);
    await this.configure(PULSE, `${revision + 1}`);
    await this.rolledOut(PULSE_BINDING, revision + 2);
    await ControllerProcess.allIdle();
  }
}

export async function newShop(team?: TestNamespace): Promise<Shop> {
  const shop = new Shop(team ?? (await createNamespace({ account: false, rules: [], controller: false })));
  await shop.rotate("one");
  await shop.configure("config", "1");
  return shop;
}

/** The warnings about a workload's annotations in its events. */
export const warningsOn = async (team: TestNamespace, name: string) =>
  (await team.events(name)).filter(({ reason }) => reason === "InvalidAnnotation").map(({ note }) => note);
