/** Argo CD for a control plane of its own: the real application controller and repo server, with Redis. */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { parse } from "yaml";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { freePorts } from "../control-plane/ports.ts";
import { answersOk } from "../control-plane/ready.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { applyFile } from "../controller/manifests.ts";
import { helmProgram } from "../helm/program.ts";
import { argoCdProgram } from "./argocd/program.ts";
import { GIT_ENV, type Repository } from "./git.ts";
import { accountOfTool, moduleFolder } from "./install.ts";
import { redisServer } from "./redis.ts";

const MODULE = "github.com/argoproj/argo-cd/v3@v3.2.11";
const APPLICATIONS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
const PART = { "app.kubernetes.io/part-of": "argocd" };

export class ArgoCd {
  readonly #api: Api;

  private constructor(cluster: ControlPlane) {
    this.#api = new Api(cluster);
  }

  static async start(cluster: ControlPlane): Promise<ArgoCd> {
    const [program, helm, redis] = await Promise.all([argoCdProgram(), helmProgram(), redisServer()]);
    const module = await moduleFolder(join(import.meta.dirname, "argocd"), MODULE);
    for (const kind of ["application", "appproject"])
      await applyFile(new Api(cluster), join(module, "manifests", "crds", `${kind}-crd.yaml`));
    const kubeconfig = await accountOfTool(cluster, "argocd", "argocd-application-controller");
    await cluster.kubectl("config", "set-context", "--current", "--namespace=argocd", `--kubeconfig=${kubeconfig}`);
    const api = new Api(cluster);
    await configure(api);

    const folder = join(cluster.folder, "argo-cd");
    const folders = ["tls", "ssh", "gnupg", "gpg", "plugins", "bin"];
    for (const each of folders) await mkdir(join(folder, each), { recursive: true, mode: 0o700 });
    // Argo CD runs the same kustomize that kubectl contains.
    const kustomize = `#!/bin/sh
case "$1" in
  version) echo v5.8.1 ;;
  build) shift; exec "${cluster.kubectlProgram}" kustomize "$@" ;;
  *) exit 1 ;;
esac
`;
    await writeFile(join(folder, "bin", "kustomize"), kustomize, { mode: 0o755 });
    const wrapper = await readFile(join(module, "hack", "git-verify-wrapper.sh"));
    await writeFile(join(folder, "bin", "git-verify-wrapper.sh"), wrapper, { mode: 0o755 });
    const [redisPort, repoPort, repoMetrics, metrics] = await freePorts(4);
    const env = {
      ...GIT_ENV,
      PATH: [join(folder, "bin"), dirname(helm), process.env["PATH"]].join(delimiter),
      KUBECONFIG: kubeconfig,
      ARGOCD_FAKE_IN_CLUSTER: "true",
      ARGOCD_TLS_DATA_PATH: join(folder, "tls"),
      ARGOCD_SSH_DATA_PATH: join(folder, "ssh"),
      ARGOCD_GNUPGHOME: join(folder, "gnupg"),
      ARGOCD_GPG_DATA_PATH: join(folder, "gpg"),
      ARGOCD_GPG_ENABLED: "false",
      ARGOCD_PLUGINSOCKFILEPATH: join(folder, "plugins"),
    };
    const run = (name: string, args: string[], isReady: () => Promise<boolean>) =>
      cluster.run({
        name,
        file: "env",
        args: [...Object.entries({ ...env, ARGOCD_BINARY_NAME: name }).map((each) => each.join("=")), program, ...args],
        isReady,
      });
    await cluster.run({
      name: "redis",
      file: redis,
      args: ["--bind", "127.0.0.1", "--port", `${redisPort}`, "--save", "", "--appendonly", "no"],
      isReady: () => accepts(redisPort as number),
    });
    const cache = ["--redis", `127.0.0.1:${redisPort}`];
    await run(
      "argocd-repo-server",
      [
        ...["--address", "127.0.0.1", "--port", `${repoPort}`],
        ...["--metrics-address", "127.0.0.1", "--metrics-port", `${repoMetrics}`],
        "--disable-tls",
        ...cache,
      ],
      () => answersOk(`http://127.0.0.1:${repoMetrics}/healthz`),
    );
    await run(
      "argocd-application-controller",
      [
        ...["--repo-server", `127.0.0.1:${repoPort}`, "--repo-server-plaintext", ...cache],
        ...["--metrics-port", `${metrics}`, "--app-resync", "5", "--app-resync-jitter", "0"],
      ],
      () => answersOk(`http://127.0.0.1:${metrics}/healthz`),
    );
    return new ArgoCd(cluster);
  }

  path(name: string): string {
    return `${APPLICATIONS}/${name}`;
  }

  /** Creates or changes an Application, whose deletion deletes its objects. */
  async application(
    name: string,
    repository: Repository,
    source: object,
    policy: object = {},
    namespace = "default",
  ): Promise<void> {
    await this.#api.apply(
      this.path(name),
      {
        apiVersion: "argoproj.io/v1alpha1",
        kind: "Application",
        metadata: { name, finalizers: ["resources-finalizer.argocd.argoproj.io"] },
        spec: {
          project: "default",
          source: { repoURL: repository.url, targetRevision: "main", ...source },
          destination: { server: "https://kubernetes.default.svc", namespace },
          syncPolicy: { automated: { prune: true, selfHeal: true }, ...policy },
        },
      },
      "test",
      true,
    );
  }

  /** Syncs again, as `argocd app sync NAME` does, and waits until that has succeeded. */
  async sync(name: string): Promise<void> {
    const before = (await this.#api.get(this.path(name))).status.operationState.startedAt;
    await eventually(async () => assert.notEqual(`${new Date().toISOString().slice(0, 19)}Z`, before));
    await this.#api.merge(this.path(name), { operation: { sync: {}, initiatedBy: { username: "test" } } });
    await eventually(async () => {
      const { startedAt, phase } = (await this.#api.get(this.path(name))).status.operationState;
      assert.notEqual(startedAt, before);
      assert.equal(phase, "Succeeded");
    }, 60_000);
  }

  /** Refreshes, and waits until the Application has this health for a commit. */
  async untilHealth(name: string, commit: string, health: string, withinMs = 60_000): Promise<AnyObject> {
    await this.refresh(name);
    return eventually(async () => {
      const { status } = await this.#api.get(this.path(name));
      assert.deepEqual([status.sync.revision, status.health.status], [commit, health], JSON.stringify(status.health));
      return status;
    }, withinMs);
  }

  /** Compares with git at once, as a webhook of the git server makes Argo CD do. */
  async refresh(name: string): Promise<void> {
    await this.#api.merge(this.path(name), {
      metadata: { annotations: { "argocd.argoproj.io/refresh": "normal" } },
    });
  }

  /** Refreshes, and waits until this commit is applied and the Application is Synced and has that health. Returns its status. */
  async until(name: string, commit: string, health = "Healthy", withinMs = 60_000): Promise<AnyObject> {
    await this.refresh(name);
    return eventually(async () => {
      const { status } = await this.#api.get(this.path(name));
      const { sync, operationState } = status ?? {};
      assert.deepEqual(
        [
          sync?.revision,
          sync?.status,
          operationState?.phase,
          operationState?.syncResult?.revision,
          status.health?.status,
        ],
        [commit, "Synced", "Succeeded", commit, health],
        JSON.stringify({ ...status, history: undefined }, null, 1),
      );
      return status;
    }, withinMs);
  }
}

/** The objects that Argo CD reads at its start, as its manifests have them, with Inlay's health checks. */
async function configure(api: Api): Promise<void> {
  const core = "/api/v1/namespaces/argocd";
  const health = parse(await readFile(join(import.meta.dirname, "../../deploy/argocd/argocd-cm.yaml"), "utf8"));
  await api.create(`${core}/configmaps`, {
    metadata: { name: "argocd-cm", labels: PART },
    data: { "timeout.reconciliation": "5s", ...health.data },
  });
  for (const name of ["argocd-rbac-cm", "argocd-cmd-params-cm", "argocd-gpg-keys-cm", "argocd-ssh-known-hosts-cm"])
    await api.create(`${core}/configmaps`, { metadata: { name, labels: PART } });
  await api.create(`${core}/secrets`, {
    metadata: { name: "argocd-secret", labels: PART },
    stringData: { "server.secretkey": "a key of this test" },
  });
  await api.create("/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects", {
    apiVersion: "argoproj.io/v1alpha1",
    kind: "AppProject",
    metadata: { name: "default" },
    spec: {
      sourceRepos: ["*"],
      destinations: [{ namespace: "*", server: "*" }],
      clusterResourceWhitelist: [{ group: "*", kind: "*" }],
    },
  });
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
