/**
 * Flux for a control plane of its own: the real kustomize-controller, and in the place of source-controller, which does not build from
 * Go modules, a server of the commits in the repositories of a test.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { freePorts } from "../control-plane/ports.ts";
import { answersOk } from "../control-plane/ready.ts";
import { type AnyObject, Api, unlessGone } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { applyFile } from "../controller/manifests.ts";
import { fluxProgram } from "./flux/program.ts";
import type { Repository } from "./git.ts";
import { accountOfTool, moduleFolder } from "./install.ts";

const SOURCE_CONTROLLER = "github.com/fluxcd/source-controller@v1.9.0";
const KUSTOMIZE_CONTROLLER = "github.com/fluxcd/kustomize-controller@v1.9.6";
const POLLED_EVERY_MS = 500;
const SOURCES = "/apis/source.toolkit.fluxcd.io/v1";
const KUSTOMIZATIONS = "/apis/kustomize.toolkit.fluxcd.io/v1";

/** A GitRepository has no URL of the git protocol, so it names the repository in its own way. */
export const urlOf = (name: string): string => `https://git.example.com/${name}.git`;

export class Flux {
  readonly #api: Api;
  readonly #folder: string;
  readonly #url: string;
  readonly #repositories: readonly Repository[];

  private constructor(cluster: ControlPlane, folder: string, url: string, repositories: readonly Repository[]) {
    this.#api = new Api(cluster);
    this.#folder = folder;
    this.#url = url;
    this.#repositories = repositories;
  }

  static async start(cluster: ControlPlane, repositories: readonly Repository[]): Promise<Flux> {
    const program = await fluxProgram();
    const sources = join(import.meta.dirname, "flux");
    const [forSources, forKustomizations] = await Promise.all([
      moduleFolder(sources, SOURCE_CONTROLLER),
      moduleFolder(sources, KUSTOMIZE_CONTROLLER),
    ]);
    for (const folder of [forSources, forKustomizations])
      await applyFile(new Api(cluster), join(folder, "config", "crd", "bases"));
    const kubeconfig = await accountOfTool(cluster, "flux-system", "kustomize-controller");
    const [health, metrics] = await freePorts(2);
    const flags = [
      `--health-addr=127.0.0.1:${health}`,
      `--metrics-addr=127.0.0.1:${metrics}`,
      "--enable-leader-election=false",
      "--requeue-dependency=1s",
    ];
    await cluster.run({
      name: "kustomize-controller",
      file: "env",
      args: ["RUNTIME_NAMESPACE=flux-system", `KUBECONFIG=${kubeconfig}`, program, ...flags],
      isReady: () => answersOk(`http://127.0.0.1:${health}/readyz`),
    });
    const folder = join(cluster.folder, "archives");
    await mkdir(folder);
    const server = createServer((request, response) => {
      createReadStream(join(folder, request.url ?? "")).pipe(response);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    server.unref();
    const { port } = server.address() as AddressInfo;
    const flux = new Flux(cluster, folder, `http://127.0.0.1:${port}`, repositories);
    void flux.#poll();
    return flux;
  }

  /** Does what source-controller does at each interval: it fetches what was pushed. */
  async #poll(): Promise<void> {
    // The API server may have stopped in the meantime.
    const { items } = await this.#api.get(`${SOURCES}/gitrepositories`).catch(() => ({ items: [] }));
    for (const source of items) await this.#fetch(source).catch(unlessGone);
    setTimeout(() => void this.#poll(), POLLED_EVERY_MS).unref();
  }

  async #fetch({ metadata, spec, status }: AnyObject): Promise<void> {
    const repository = this.#repositories.find(({ name }) => spec.url === urlOf(name));
    assert.ok(repository, `${metadata.name} has the url of no repository: ${spec.url}`);
    const commit = await repository.pushed();
    const revision = `main@sha1:${commit}`;
    if (commit === undefined || status?.artifact?.revision === revision) return;
    const file = `${commit}.tar.gz`;
    await repository.archive(commit, join(this.#folder, file));
    const now = new Date().toISOString().replace(/\.\d+/, "");
    const content = await readFile(join(this.#folder, file));
    const artifact = {
      url: `${this.#url}/${file}`,
      path: file,
      revision,
      digest: `sha256:${createHash("sha256").update(content).digest("hex")}`,
      lastUpdateTime: now,
      size: content.length,
    };
    const ready = { type: "Ready", status: "True", reason: "Succeeded", message: "", lastTransitionTime: now };
    const conditions = [{ ...ready, observedGeneration: metadata.generation }];
    await this.#api.merge(`${SOURCES}/namespaces/${metadata.namespace}/gitrepositories/${metadata.name}/status`, {
      status: { artifact, conditions, observedGeneration: metadata.generation },
    });
  }

  /** Creates or changes a Kustomization of this name in a namespace, with a GitRepository of the same name. */
  async kustomize(namespace: string, name: string, repository: Repository, spec: object): Promise<void> {
    const source = { apiVersion: "source.toolkit.fluxcd.io/v1", kind: "GitRepository", metadata: { name } };
    await this.#api.apply(
      `${SOURCES}/namespaces/${namespace}/gitrepositories/${name}`,
      { ...source, spec: { url: urlOf(repository.name), interval: "1m", ref: { branch: "main" } } },
      "test",
      true,
    );
    await this.#api.apply(
      this.path(namespace, name),
      {
        apiVersion: "kustomize.toolkit.fluxcd.io/v1",
        kind: "Kustomization",
        metadata: { name },
        spec: { sourceRef: { kind: "GitRepository", name }, interval: "1h", prune: true, ...spec },
      },
      "test",
      true,
    );
  }

  path(namespace: string, name: string): string {
    return `${KUSTOMIZATIONS}/namespaces/${namespace}/kustomizations/${name}`;
  }

  /** Reconciles again, as `flux reconcile kustomization NAME` does, and waits until that has ended. */
  async reconcile(namespace: string, name: string, withinMs?: number): Promise<AnyObject> {
    const requestedAt = `${Date.now()}-${Math.random()}`;
    await this.#api.merge(this.path(namespace, name), {
      metadata: { annotations: { "reconcile.fluxcd.io/requestedAt": requestedAt } },
    });
    return eventually(async () => {
      const { status } = await this.#api.get(this.path(namespace, name));
      assert.equal(status.lastHandledReconcileAt, requestedAt);
      return status;
    }, withinMs);
  }

  /** Waits until the Kustomization has this Ready status for a commit. Returns the condition. */
  until(
    namespace: string,
    name: string,
    ready: "True" | "False" | "Unknown",
    commit: string,
    withinMs = 60_000,
  ): Promise<AnyObject> {
    return eventually(async () => {
      const { metadata, status } = await this.#api.get(this.path(namespace, name));
      const message = JSON.stringify(status);
      const condition = status?.conditions.find(({ type }: AnyObject) => type === "Ready");
      assert.deepEqual(
        [status?.lastAttemptedRevision, condition?.status, condition?.observedGeneration],
        [`main@sha1:${commit}`, ready, metadata.generation],
        message,
      );
      return condition;
    }, withinMs);
  }
}
