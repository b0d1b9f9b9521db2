/**
 * A control plane without Inlay, with git repositories and Argo CD or Flux, and Inlay's controller as the pods of its Deployment would
 * run it. At the end, logs are searched for values of Secrets.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import type { Context } from "mocha";
import { type ControlPlane, startControlPlane } from "../control-plane/control-plane.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { type Place, root } from "../e2e/pages.ts";
import { assertNoValue } from "../whole-run/leaks.ts";
import { keepLog, nameOf } from "../whole-run/results.ts";
import { GIT_ENV, GitServer, type Repository } from "./git.ts";

export class World {
  readonly cluster: ControlPlane;
  readonly api: Api;
  /** Inlay's controller. Start it when its account is installed. */
  readonly inlay: ControllerProcess;
  readonly repositories: Readonly<Record<string, Repository>>;

  private constructor(cluster: ControlPlane, repositories: Record<string, Repository>) {
    this.cluster = cluster;
    this.api = new Api(cluster);
    this.inlay = new ControllerProcess(cluster);
    this.repositories = repositories;
  }

  /** Starts a control plane with empty repositories of these names. */
  static async start(...names: string[]): Promise<World> {
    const cluster = await startControlPlane();
    try {
      const git = await GitServer.start(cluster);
      const repositories: Record<string, Repository> = {};
      for (const name of names) repositories[name] = await git.create(name);
      return new World(cluster, repositories);
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  repository(name: string): Repository {
    return this.repositories[name] ?? assert.fail(`there is no repository ${name}`);
  }

  /** Stops everything. No log may contain a value of a Secret. */
  async stop(): Promise<void> {
    await this.inlay.stop();
    try {
      assertNoValue("the controller's log", this.inlay.output);
    } finally {
      await this.cluster.stop();
    }
  }

  /** Where the commands of a page run: in the clone of a repository, whose reader has set these variables. */
  reader(repository: Repository, url = repository.url): { env: NodeJS.ProcessEnv; place: Place } {
    const env = { ...GIT_ENV, INLAY: root, REPO_URL: url };
    return { env, place: { cluster: this.cluster, folder: repository.folder } };
  }

  /** Call this after each test: it keeps the logs of all programs if the test failed. */
  async afterEach({ currentTest }: Context): Promise<void> {
    if (currentTest?.state !== "failed") return;
    const logs = [...this.cluster.processes.values()].map(({ logFile }) => readFile(logFile, "utf8"));
    const file = nameOf(currentTest.file ?? "");
    let number = 0;
    for (const text of [this.inlay.output, ...(await Promise.all(logs))]) {
      const kept = await keepLog(file, ++number, text);
      process.stderr.write(`${kept}\n`);
    }
  }

  /** Waits until the object at the path is gone. */
  untilGone(path: string, withinMs?: number): Promise<void> {
    return eventually(async () => assert.equal(await this.api.find(path), undefined), withinMs);
  }

  /** Waits until the binding is Ready with this reason. */
  untilReason(path: string, reason: string, withinMs?: number): Promise<AnyObject> {
    return eventually(async () => {
      const { metadata, status } = await this.api.get(path);
      const ready = status?.conditions?.find(({ type }: AnyObject) => type === "Ready");
      assert.equal(ready?.reason, reason, JSON.stringify(status));
      assert.equal(ready.observedGeneration, metadata.generation, JSON.stringify(status));
      return status;
    }, withinMs);
  }
}
