/** A real Kubernetes control plane for tests, which a test uses, disturbs and stops. Nothing of it outlives this process. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { authorityOf, type Credentials, type Users, writeCredentials, writeKubeconfig } from "./credentials.ts";
import {
  apiServerFlags,
  certificateFolder,
  controllerManagerFlags,
  etcdFlags,
  kwokFlags,
  type Place,
  schedulerFlags,
} from "./flags.ts";
import { type Command, Keeper, type Program } from "./keeper.ts";
import { type KubectlOutput, runKubectl } from "./kubectl.ts";
import { NODE_NAME, nodeManifest } from "./node.ts";
import { freePorts } from "./ports.ts";
import { findPrograms, type Programs } from "./programs.ts";
import { answersOk } from "./ready.ts";

export interface ControlPlaneOptions {
  /** Whether kube-controller-manager, kube-scheduler and KWOK run too, with one Node. They do by default. */
  controllers?: boolean;
  /** Groups by user, in addition to `admin` in system:masters and `controller` without groups. */
  users?: Users;
  /** Flags in addition to the API server's own, which they override. */
  apiServerFlags?: string[];
}

export interface KubectlOptions {
  stdin?: string;
  /** The user, by default `admin`. */
  user?: string;
}

const ADMIN = "admin";
const KWOK = "kwok";
const CONTROLLER_MANAGER = "system:kube-controller-manager";
const SCHEDULER = "system:kube-scheduler";

const ownUsers: Users = {
  [ADMIN]: ["system:masters"],
  [KWOK]: ["system:masters"],
  [CONTROLLER_MANAGER]: [],
  [SCHEDULER]: [],
  controller: [],
};

/** Starts a control plane, and waits until it serves. If that fails, nothing of it remains. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const programs = await findPrograms();
  const keeper = await Keeper.start();
  try {
    const credentials = await writeCredentials(keeper.folder, { ...ownUsers, ...options.users });
    const [etcd = 0, etcdPeer = 0, apiServer = 0] = await freePorts(3);
    const place = { folder: keeper.folder, ports: { etcd, etcdPeer, apiServer } };
    const controlPlane = new ControlPlane(keeper, programs, credentials, place);
    await controlPlane.serve(options.apiServerFlags ?? []);
    if (options.controllers ?? true) await controlPlane.control();
    return controlPlane;
  } catch (error) {
    await keeper.stop();
    throw error;
  }
}

export class ControlPlane implements AsyncDisposable {
  readonly url: string;
  /** The folder for its data, logs and credentials, until it is stopped. */
  readonly folder: string;
  /** The programs that run or have run, by name. */
  readonly processes: ReadonlyMap<string, Program>;
  readonly #keeper: Keeper;
  readonly #programs: Programs;
  readonly #credentials: Credentials;
  readonly #place: Place;
  #caData = "";

  constructor(keeper: Keeper, programs: Programs, credentials: Credentials, place: Place) {
    this.url = `https://127.0.0.1:${place.ports.apiServer}`;
    this.folder = keeper.folder;
    this.processes = keeper.programs;
    this.#keeper = keeper;
    this.#programs = programs;
    this.#credentials = credentials;
    this.#place = place;
  }

  /** Starts etcd and the API server. */
  async serve(flags: string[]): Promise<void> {
    const { folder, ports } = this.#place;
    const token = this.token(ADMIN);
    const authority = async () => authorityOf(await readFile(join(certificateFolder(folder), "apiserver.crt"), "utf8"));
    // Both at once: the API server waits for its etcd.
    await Promise.all([
      this.#keeper.run({
        name: "etcd",
        file: this.#programs.etcd,
        args: etcdFlags(this.#place),
        isReady: () => answersOk(`http://127.0.0.1:${ports.etcd}/health`),
      }),
      this.#keeper.run({
        name: "kube-apiserver",
        file: this.#programs.apiServer,
        args: apiServerFlags(this.#place, this.#credentials, flags),
        isReady: async () => {
          const ca = await authority().catch(() => undefined);
          return ca !== undefined && (await answersOk(`${this.url}/readyz`, { ca, token }));
        },
        stopWithin: 10_000,
      }),
    ]);
    this.#caData = await authority();
    await writeFile(this.#caFile, this.#caData);
    await mkdir(join(folder, "kubeconfigs"));
    for (const [user, token] of this.#credentials.tokens) {
      await writeKubeconfig(this.#kubeconfigPath(user), { url: this.url, caData: this.caData, user, token });
    }
  }

  /** Starts the controllers, as far as their programs exist, and creates a Node for pods. */
  async control(): Promise<void> {
    const { controllerManager, scheduler, kwok } = this.#programs;
    const run = (name: string, file: string, args: string[]) => this.#keeper.run({ name, file, args });
    if (controllerManager !== undefined) {
      const kubeconfig = this.kubeconfigFor(CONTROLLER_MANAGER);
      const flags = controllerManagerFlags(kubeconfig, this.#caFile, this.#credentials);
      await run("kube-controller-manager", controllerManager, flags);
    }
    if (scheduler !== undefined) await run("kube-scheduler", scheduler, schedulerFlags(this.kubeconfigFor(SCHEDULER)));
    if (kwok !== undefined) await run("kwok", kwok.program, kwokFlags(this.kubeconfigFor(KWOK), kwok.stages));
    const within = "--timeout=60s";
    if (kwok !== undefined) {
      await this.kubectlWith({ stdin: nodeManifest }, "create", "-f", "-");
      await this.kubectl("wait", "--for=condition=Ready", `node/${NODE_NAME}`, within);
    }
    // A namespace refuses pods until it has its ServiceAccount.
    if (controllerManager !== undefined) {
      await this.kubectl("wait", "--for=create", "serviceaccount/default", "--namespace=default", within);
    }
  }

  /** The authority of the API server's certificate, as PEM. */
  get caData(): string {
    return this.#caData;
  }

  /** The API server's certificate and key, as PEM, for a proxy that answers in its place. */
  async servingIdentity(): Promise<{ cert: string; key: string }> {
    const read = (file: string) => readFile(join(certificateFolder(this.folder), file), "utf8");
    const [cert, key] = await Promise.all([read("apiserver.crt"), read("apiserver.key")]);
    return { cert, key };
  }

  get kubeconfigFile(): string {
    return this.kubeconfigFor(ADMIN);
  }

  get etcd(): Program {
    return this.#process("etcd");
  }

  /** Compacts etcd, so that only the last version remains. */
  async compact(): Promise<void> {
    const { header } = await this.#etcdKv("range", { key: base64("/") });
    await this.#etcdKv("compaction", { revision: header.revision, physical: true });
  }

  /** Writes a value to a key of etcd that no API server can read. Call the returned function to remove it. */
  async spoil(key: string): Promise<() => Promise<unknown>> {
    await this.#etcdKv("put", { key: base64(key), value: base64("not an object") });
    return () => this.#etcdKv("deleterange", { key: base64(key) });
  }

  /** Sends a request to etcd's KV service through its JSON gateway. */
  async #etcdKv(path: string, body: object): Promise<{ header: { revision: string } }> {
    const url = `http://127.0.0.1:${this.#place.ports.etcd}/v3/kv/${path}`;
    const answer = await fetch(url, { method: "POST", body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`etcd refused: ${await answer.text()}`);
    return (await answer.json()) as { header: { revision: string } };
  }

  get apiServer(): Program {
    return this.#process("kube-apiserver");
  }

  /** The kubeconfig of one of the control plane's initial users. */
  kubeconfigFor(user: string): string {
    this.token(user);
    return this.#kubeconfigPath(user);
  }

  token(user: string): string {
    const token = this.#credentials.tokens.get(user);
    if (token === undefined) throw new Error(`the control plane was started without a user ${user}`);
    return token;
  }

  /**
   * A kubeconfig with a token of an existing ServiceAccount, valid for a day. It uses the API server's URL, or another URL that
   * leads there.
   */
  async kubeconfigForServiceAccount(namespace: string, name: string, url = this.url): Promise<string> {
    const { stdout } = await this.kubectl("create", "token", name, `--namespace=${namespace}`, "--duration=24h");
    const user = `system:serviceaccount:${namespace}:${name}`;
    const file = this.#kubeconfigPath(url === this.url ? user : `${user}@${new URL(url).host}`);
    await writeKubeconfig(file, { url, caData: this.caData, user, token: stdout.trim() });
    return file;
  }

  /** Runs kubectl as admin, and fails when kubectl fails. */
  kubectl(...args: string[]): Promise<KubectlOutput> {
    return this.kubectlWith({}, ...args);
  }

  kubectlWith({ stdin, user = ADMIN }: KubectlOptions, ...args: string[]): Promise<KubectlOutput> {
    const kubeconfig = this.kubeconfigFor(user);
    const call = { program: this.#programs.kubectl, kubeconfig, home: this.folder, args };
    return runKubectl(stdin === undefined ? call : { ...call, stdin });
  }

  /** Runs one more program, which ends before the others: when the control plane is stopped, or this process ends. */
  run(command: Command): Promise<Program> {
    return this.#keeper.run(command);
  }

  /** The kubectl of this version, for users. */
  get kubectlProgram(): string {
    return this.#programs.kubectl;
  }

  /** Stops everything, etcd last, and removes every file. */
  stop(): Promise<void> {
    return this.#keeper.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  get #caFile(): string {
    return join(this.folder, "ca.crt");
  }

  #process(name: string): Program {
    const program = this.processes.get(name);
    if (program === undefined) throw new Error(`the control plane runs no ${name}`);
    return program;
  }

  #kubeconfigPath(user: string): string {
    return join(this.folder, "kubeconfigs", `${encodeURIComponent(user)}.yaml`);
  }
}

const base64 = (text: string) => Buffer.from(text).toString("base64");
