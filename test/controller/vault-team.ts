/**
 * A real Vault server, and a controller that may reach it, for all tests of a file. Creates namespaces whose accounts log in to
 * Vault.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { startVault, type Vault, type VaultOptions } from "../control-plane/vault.ts";
import type { AnyObject } from "./api.ts";
import { ControllerProcess } from "./controller.ts";
import { eventually } from "./eventually.ts";
import { secretText } from "./leak-detector.ts";
import { stopSharedController } from "./shared.ts";
import { createNamespace, harborTarget, type Rule, type TestNamespace } from "./test-namespace.ts";
import { rolloutRules, Workloads } from "./workloads.ts";

/** The permission of a binding's account to create a token of its own, for the login. */
export const loginRules: Rule[] = [
  { apiGroups: [""], resources: ["serviceaccounts/token"], resourceNames: ["inlay"], verbs: ["create"] },
];
const writeRules: Rule[] = [
  { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch", "create", "patch", "delete"] },
];
const AUDIENCE = "vault";
/** The name of the connection in each namespace. */
export const CONNECTION = "vault";
/** The mount of KV version 2 that all tests of a file share. Each namespace has a folder in it with the namespace's name. */
export const MOUNT = "kv";

interface SetUp extends VaultOptions {
  /** More entries of vault.addresses, in addition to the host of the server. */
  addresses?: string[];
}

export class VaultSetUp {
  readonly vault: Vault;
  readonly controller: ControllerProcess;

  private constructor(vault: Vault, controller: ControllerProcess) {
    this.vault = vault;
    this.controller = controller;
  }

  /** Starts Vault with Kubernetes auth and KV version 2, and a controller instead of the shared one. */
  static async start({ addresses = [], ...options }: SetUp = {}): Promise<VaultSetUp> {
    const vault = await startVault(options);
    await Promise.all([vault.enableKv(MOUNT), vault.enableKubernetesAuth(controlPlane())]);
    await stopSharedController();
    const config = join(vault.folder, "controller.yaml");
    const listed = ["http://127.0.0.1", "localhost", ...addresses];
    await writeFile(
      config,
      JSON.stringify({
        apiVersion: "config.inlay.dev/v1alpha1",
        kind: "ControllerConfiguration",
        vault: { addresses: listed },
      }),
    );
    const controller = new ControllerProcess(controlPlane(), "--config", config);
    await controller.start();
    return new VaultSetUp(vault, controller);
  }

  async stop(): Promise<void> {
    await this.controller.stop();
    await this.vault.stop();
  }

  /** Creates a namespace with a connection, a HarborCluster, and an account that may read its own folder. */
  async createTeam(connection: object = {}, { rules = rolloutRules }: { rules?: Rule[] } = {}): Promise<VaultTeam> {
    const namespace = await createNamespace({ controller: false, rules: [...loginRules, ...rules, ...writeRules] });
    const team = new VaultTeam(this, namespace);
    await Promise.all([this.allow(namespace.namespace), namespace.harbor()]);
    await team.connect(connection);
    return team;
  }

  /** Writes a policy and a role of that name: by default, the account of the namespace may read its folder. */
  async allow(namespace: string, policy = readFolder(namespace), more: object = {}): Promise<void> {
    await this.vault.writePolicy(`inlay-${namespace}`, policy);
    await this.vault.writeKubernetesRole(`inlay-${namespace}`, {
      accounts: ["inlay"],
      namespaces: [namespace],
      audience: AUDIENCE,
      policies: [`inlay-${namespace}`],
      ...more,
    });
  }
}

/** The paths of data and metadata of a folder. */
export const readFolder = (folder: string): string =>
  ["data", "metadata"].map((part) => `path "${MOUNT}/${part}/${folder}/*" { capabilities = ["read"] }`).join("\n");

export class VaultTeam {
  readonly setUp: VaultSetUp;
  readonly team: TestNamespace;
  readonly workloads: Workloads;

  constructor(setUp: VaultSetUp, team: TestNamespace) {
    this.setUp = setUp;
    this.team = team;
    this.workloads = new Workloads(team);
  }

  get namespace(): string {
    return this.team.namespace;
  }

  /** Creates the connection, with Kubernetes auth by default. */
  async connect(spec: object = {}, name = CONNECTION): Promise<AnyObject> {
    return this.team.api.create(this.team.path("inlay.dev/v1alpha1", "vaultconnections"), {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "VaultConnection",
      metadata: { name },
      spec: {
        address: this.setUp.vault.address,
        auth: { kubernetes: { role: "inlay-{namespace}" } },
        paths: [`${MOUNT}/{namespace}/*`],
        ...spec,
      },
    });
  }

  connectionPath(name = CONNECTION): string {
    return `${this.team.path("inlay.dev/v1alpha1", "vaultconnections")}/${name}`;
  }

  /** Waits until the connection has that reason, and returns the connection. */
  untilConnection(reason: string, name = CONNECTION): Promise<AnyObject> {
    return eventually(async () => {
      const connection = await this.team.api.get(this.connectionPath(name));
      const [ready] = connection.status?.conditions ?? [];
      if (ready?.reason !== reason) throw new Error(`${reason} is awaited: ${JSON.stringify(connection.status)}`);
      return connection;
    });
  }

  /** A source of the team's folder, read every second. */
  source(what: object = this.data("s3"), more: object = {}): object {
    return { name: "s3", vault: { connection: { name: CONNECTION }, refresh: "1s", ...what }, ...more };
  }

  data(path: string, more: object = {}): object {
    return { data: { mount: MOUNT, path: this.in(path), ...more } };
  }

  in(path: string): string {
    return `${this.namespace}/${path}`;
  }

  /** Writes the data of a path in the team's folder. */
  async put(path: string, data: object): Promise<void> {
    await this.setUp.vault.putKv(MOUNT, this.in(path), data);
  }

  /** Writes another access key. Returns it. */
  async rotate(path = "s3"): Promise<string> {
    const accessKey = secretText("access");
    await this.put(path, { accessKey });
    return accessKey;
  }

  /** A binding of the access key to the HarborCluster. */
  bind(name = "harbor-s3", source: object = this.source(), more: object = {}): Promise<AnyObject> {
    const targets = [harborTarget({ accesskey: { from: { source: "s3", key: "accessKey" } } })];
    return this.team.bind(name, { acknowledge: ["ReadableCopies"], sources: [source], targets, ...more });
  }

  /** Waits until the HarborCluster has that access key. */
  holds(accessKey: string | undefined, withinMs?: number): Promise<void> {
    return eventually(async () => {
      if ((await this.team.s3()).accesskey !== accessKey) throw new Error("the HarborCluster has another access key");
    }, withinMs);
  }
}
