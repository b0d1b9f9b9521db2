/** Workloads with annotations of Reloader, for tests: what they say comes in, which of them restarted goes out. */
import assert from "node:assert/strict";
import type { AnyObject } from "./api.ts";
import { eventually } from "./eventually.ts";
import { secretText } from "./hunted.ts";
import { untilMade } from "./reloader.ts";
import { newTeam, type Team } from "./team.ts";
import { deployment, Workloads } from "./workloads.ts";

export const AUTO = { "reloader.stakater.com/auto": "true" };
export const listed = (names: string) => ({ "secret.reloader.stakater.com/reload": names });

/** The bindings of Deployments. */
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
  readonly team: Team;
  constructor(team: Team) {
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

  /** Which Deployments restarted since, each once for each time that it stands there. */
  async restartedBy(act: () => Promise<unknown>, names: readonly string[], made: readonly string[]): Promise<void> {
    const before = await this.restarts();
    await act();
    const restarted = async () => {
      const now = await this.restarts();
      const all = Object.entries(now).flatMap(([name, count]) => Array(count - (before[name] ?? 0)).fill(name));
      assert.deepEqual(all.sort(), [...names].sort());
    };
    await eventually(restarted, 30_000);
    await untilMade(this.team, made);
    await restarted();
  }
}

export async function newShop(team?: Team): Promise<Shop> {
  const shop = new Shop(team ?? (await newTeam({ account: false, rules: [], controller: false })));
  await shop.rotate("one");
  await shop.configure("config", "1");
  return shop;
}

/** What is wrong with its annotations, as it is told there. */
export const warningsOn = async (team: Team, name: string) =>
  (await team.events(name)).filter(({ reason }) => reason === "InvalidAnnotation").map(({ note }) => note);
