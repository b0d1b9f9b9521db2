/** A namespaced Inlay, installed with the shipped files. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { freePorts } from "../control-plane/ports.ts";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "./api.ts";
import type { AuditedRequest } from "./audit.ts";
import { ControllerProcess } from "./controller.ts";
import { eventually } from "./eventually.ts";
import { foundIn } from "./leak-detector.ts";
import { paste } from "./paste.ts";
import { loggedUntilNow } from "./requests.ts";
import { auditLog } from "./shared.ts";
import { createNamespace, type TestNamespace } from "./test-namespace.ts";

export const folder = join(import.meta.dirname, "..", "..", "deploy", "namespaced");

export const leads = (replica: ControllerProcess) => eventually(() => assert.match(replica.output, /"msg":"leading"/));

/** A team with its own namespaced Inlay. */
export class Installation {
  readonly team: TestNamespace;
  readonly replicas: ControllerProcess[] = [];
  readonly ports: number[] = [];

  constructor(team: TestNamespace) {
    this.team = team;
  }

  get user(): string {
    return `system:serviceaccount:${this.team.namespace}:inlay-controller`;
  }

  /** Installs it as its README says. */
  static async make(): Promise<Installation> {
    const one = new Installation(await createNamespace({ controller: false }));
    await one.apply("*.yaml");
    return one;
  }

  /** Applies files of its folder with the command of its README. */
  async apply(files: string): Promise<void> {
    const readme = await readFile(join(folder, "README.md"), "utf8");
    const command = readme.split("\n").find((line) => line.startsWith("sed ") && line.includes(`namespaced/${files} `));
    assert.ok(command, files);
    await paste(command.replaceAll("team-a", this.team.namespace).replaceAll("deploy/namespaced", folder));
  }

  /** The pods of its Deployment, in which nothing runs. */
  async pods(): Promise<AnyObject[]> {
    const path = `${this.team.path("v1", "pods")}?labelSelector=app.kubernetes.io/name=inlay`;
    return eventually(async () => {
      const { items } = await this.team.api.get(path);
      assert.equal(items.length, 2);
      return items;
    });
  }

  /** Starts one replica as the Deployment would. */
  async start(account = "inlay-controller", ...more: string[]): Promise<ControllerProcess> {
    const { namespace } = this.team;
    const door = { kubeconfigForServiceAccount: () => controlPlane().kubeconfigForServiceAccount(namespace, account) };
    const [port = 0] = await freePorts(1);
    const flags = [`--watch-namespace=${namespace}`, "--leader-elect", `--health-port=${port}`, ...more];
    const replica = new ControllerProcess(door, ...flags);
    this.replicas.push(replica);
    this.ports.push(port);
    await replica.start();
    return replica;
  }

  async readiness(replica = 0): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.ports[replica]}/readyz`)).text();
  }

  /** All its requests since a mark, as itself or as an account. */
  async requests(mark: number): Promise<AuditedRequest[]> {
    await loggedUntilNow(this.team);
    const all = [...(await auditLog().since(mark)), ...(await auditLog().watchesSince(mark))];
    return all.filter(({ user }) => user === this.user);
  }

  async stop(): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica.stop()));
    for (const { output } of this.replicas) assert.deepEqual(foundIn(output), []);
  }
}
