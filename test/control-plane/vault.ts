/**
 * A real Vault server for tests, which a test fills, seals, kills and restarts. Like the control plane's programs, it ends with
 * this process.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type CertificateAndKey, selfSigned } from "../../src/observability/metrics-server.ts";
import { registerSecret } from "../controller/leak-detector.ts";
import type { ControlPlane } from "./control-plane.ts";
import { Keeper, type Program } from "./keeper.ts";
import { freePorts } from "./ports.ts";
import { vaultProgram } from "./vault/program.ts";
import { askVault, type VaultAnswer, type VaultBody, VaultRefused, type VaultServer } from "./vault-api.ts";
import {
  type AppRole,
  type AppRoleOptions,
  enableAppRole,
  enableKubernetesAuth,
  type KubernetesRoleOptions,
  writeAppRole,
  writeKubernetesRole,
} from "./vault-auth.ts";

export interface VaultOptions {
  /**
   * Whether it serves https, with a certificate for these names or the certificate of another server. The default name is
   * `localhost`.
   */
  tls?: boolean | { names: [string, ...string[]]; of?: Vault };
  /** Where it stores its data. Memory, the default, is empty after a restart; files and integrated storage are not. */
  storage?: "memory" | "file" | "raft";
  /**
   * The addresses at which it serves on port 8200, like pods. By default, it serves on a port of 127.0.0.1. Several addresses are
   * the servers of one cluster.
   */
  at?: readonly [string, ...string[]];
  /** The part of its version after the +, such as `ent`. */
  versionMetadata?: string;
  /** Whether to initialise and unseal it, which is the default. */
  initialize?: boolean;
}

/** The line that the server prints when it has initialised itself. */
interface Started {
  rootToken: string;
  unsealKeys: [string];
}

/** A request in the audit log. */
export interface VaultAudited {
  /** `read`, `update`, `list` and so on. */
  operation: string;
  path: string;
  /** The user of the request: `root`, or a name such as `kubernetes-NAMESPACE-ACCOUNT`. Undefined for a login. */
  who: string | undefined;
}

/** The answer of a mount while KV version 2 initialises. */
const UPGRADING = /^Upgrading from non-versioned/;
const VAULT_PORT = 8200;
const POLLED_EVERY_MS = 10;
const MOUNTED_WITHIN_MS = 30_000;

/** Starts a Vault server, and waits until it answers. If the program is not built yet, this takes minutes. */
export async function startVault(options: VaultOptions = {}): Promise<Vault> {
  const file = await vaultProgram();
  const keeper = await Keeper.start();
  try {
    const [port = 0] = options.at === undefined ? await freePorts(1) : [VAULT_PORT];
    const vault = new Vault(keeper, port, options);
    await vault.run(file);
    return vault;
  } catch (error) {
    await keeper.stop();
    throw error;
  }
}

export class Vault implements AsyncDisposable {
  readonly address: string;
  /** The folder for its data, logs and certificates, until it is stopped. */
  readonly folder: string;
  readonly #keeper: Keeper;
  readonly #port: number;
  readonly #options: VaultOptions;
  readonly #names: [string, ...string[]] | undefined;
  #ca: string | undefined;
  #identity: CertificateAndKey | undefined;
  #program: Program | undefined;
  #started: Started | undefined;

  constructor(keeper: Keeper, port: number, options: VaultOptions) {
    const { tls = false } = options;
    this.#keeper = keeper;
    this.#port = port;
    this.#options = options;
    this.#names = tls === false ? undefined : tls === true ? ["localhost"] : tls.names;
    const host = options.at?.[0] ?? (this.#names === undefined ? "127.0.0.1" : "localhost");
    this.address = `${this.#names === undefined ? "http" : "https"}://${host}:${port}`;
    this.folder = keeper.folder;
  }

  /** Only startVault() calls this. */
  async run(file: string): Promise<void> {
    const { storage = "memory", initialize = true, at = ["127.0.0.1"], versionMetadata } = this.#options;
    const args = [`--listen=${at.map((host) => `${host}:${this.#port}`).join()}`, `--init=${initialize}`];
    if (storage !== "memory") args.push(`--storage=${join(this.folder, "data")}`);
    if (storage === "raft") args.push("--raft");
    if (versionMetadata !== undefined) args.push(`--version-metadata=${versionMetadata}`);
    if (this.#names !== undefined) {
      const { tls } = this.#options;
      await this.renewCertificate(typeof tls === "object" ? tls.of?.identity : undefined);
      args.push(`--tls-cert=${this.#file("cert")}`, `--tls-key=${this.#file("key")}`);
    }
    const isReady = () =>
      this.ask("GET", "sys/seal-status", undefined, "").then(
        () => true,
        () => false,
      );
    this.#program = await this.#keeper.run({ name: "vault", file, args, isReady });
    await this.#readStarted();
  }

  get program(): Program {
    if (this.#program === undefined) throw new Error("Vault does not run yet");
    return this.#program;
  }

  /** The authority of its certificate, as PEM. Undefined with http. */
  get ca(): string {
    if (this.#ca === undefined) throw new Error("this Vault serves http");
    return this.#ca;
  }

  /** Its certificate and its key, for other servers of its cluster. */
  get identity(): CertificateAndKey | undefined {
    return this.#identity;
  }

  get rootToken(): string {
    if (this.#started === undefined) throw new Error("this Vault has not been initialised");
    return this.#started.rootToken;
  }

  /**
   * Sends a request, by default as root. The token `""` sends none. Returns any response of Vault. With https, it trusts Vault's
   * current certificate, or another one that is given.
   */
  ask(
    method: string,
    path: string,
    body?: object,
    token = this.#started?.rootToken,
    ca = this.#ca,
  ): Promise<VaultAnswer> {
    return askVault(this.#serverTrusting(ca), { method, path, body, token: token || undefined });
  }

  /** The same for a request that should succeed: returns the parsed response, and fails when Vault denies the request. */
  async api(method: string, path: string, body?: object, token?: string): Promise<VaultBody> {
    const answer = await this.ask(method, path, body, token);
    if (answer.status < 300) return answer.body;
    throw new VaultRefused({ method, path }, answer);
  }

  /** Enables a KV engine, and waits until it can be written to. */
  async enableKv(mount: string, version: 1 | 2 = 2): Promise<void> {
    await this.api("POST", `sys/mounts/${mount}`, { type: "kv", options: { version: `${version}` } });
    if (version === 1) return;
    const deadline = Date.now() + MOUNTED_WITHIN_MS;
    for (;;) {
      const answer = await this.ask("GET", `${mount}/config`);
      if (answer.status === 200) return;
      const isUpgrading = UPGRADING.test(answer.body?.errors?.[0] ?? "");
      if (!isUpgrading || Date.now() > deadline)
        throw new VaultRefused({ method: "GET", path: `${mount}/config` }, answer);
      await sleep(POLLED_EVERY_MS);
    }
  }

  /** Writes a secret of a KV engine. Returns its version, or 0 if the engine has no versions. */
  async putKv(mount: string, path: string, data: object): Promise<number> {
    if ((await this.#kvVersion(mount)) === 1) {
      await this.api("POST", `${mount}/${path}`, data);
      return 0;
    }
    return (await this.api("POST", `${mount}/data/${path}`, { data })).data.version;
  }

  /** Deletes a secret. With KV version 2, this deletes the last version, which can be restored. */
  async deleteKv(mount: string, path: string): Promise<void> {
    const isVersioned = (await this.#kvVersion(mount)) === 2;
    await this.api("DELETE", isVersioned ? `${mount}/data/${path}` : `${mount}/${path}`);
  }

  async #kvVersion(mount: string): Promise<1 | 2> {
    return (await this.api("GET", `sys/mounts/${mount}`)).data.options?.version === "2" ? 2 : 1;
  }

  async writePolicy(name: string, policy: string): Promise<void> {
    await this.api("PUT", `sys/policies/acl/${name}`, { policy });
  }

  /** Creates a token with these policies. */
  async createToken(policies: string[], { ttl = "1h" } = {}): Promise<string> {
    const { auth } = await this.api("POST", "auth/token/create", { policies, ttl });
    return registerSecret(auth.client_token);
  }

  /** Allows ServiceAccounts of a control plane to log in, as far as roles permit it. The API server reviews each token. */
  enableKubernetesAuth(controlPlane: ControlPlane, options: { mount?: string; url?: string } = {}): Promise<void> {
    return enableKubernetesAuth(this, controlPlane, options);
  }

  writeKubernetesRole(name: string, options: KubernetesRoleOptions): Promise<void> {
    return writeKubernetesRole(this, name, options);
  }

  enableAppRole(mount?: string): Promise<void> {
    return enableAppRole(this, mount);
  }

  writeAppRole(name: string, options: AppRoleOptions): Promise<AppRole> {
    return writeAppRole(this, name, options);
  }

  /** From now on, requests() returns every request. Vault's log has values as HMACs only. */
  async enableAudit(): Promise<void> {
    await this.api("PUT", "sys/audit/file", { type: "file", options: { file_path: this.#auditLog } });
  }

  /** The requests since enableAudit(), in order. A request is in the log before Vault answers it. */
  async requests(): Promise<VaultAudited[]> {
    const lines = (await readFile(this.#auditLog, "utf8")).split("\n").slice(0, -1);
    return lines
      .map((line) => JSON.parse(line))
      .filter(({ type }) => type === "request")
      .map(({ request, auth }) => ({ operation: request.operation, path: request.path, who: auth?.display_name }));
  }

  async seal(): Promise<void> {
    await this.api("PUT", "sys/seal");
  }

  async unseal(): Promise<void> {
    const { sealed } = await this.api("PUT", "sys/unseal", { key: this.#started?.unsealKeys[0] }, "");
    if (sealed) throw new Error("Vault is still sealed");
  }

  /** Adds this server to the cluster of another server, both with integrated storage, and waits until it is a voting standby. */
  async join(leader: Vault): Promise<void> {
    const trust = { leader_ca_cert: leader.#ca, leader_tls_servername: leader.#names?.[0] };
    await this.api("POST", "sys/storage/raft/join", { leader_api_addr: leader.address, ...trust }, "");
    this.#started = leader.#started;
    await this.api("PUT", "sys/unseal", { key: this.#started?.unsealKeys[0] }, "");
    const deadline = Date.now() + MOUNTED_WITHIN_MS;
    const isVoter = async () => {
      const { data } = await leader.api("GET", "sys/storage/raft/configuration");
      const servers: { address: string; voter: boolean }[] = data.config.servers;
      return servers.some(({ address, voter }) => voter && address.startsWith(`${new URL(this.address).hostname}:`));
    };
    while ((await this.ask("GET", "sys/health")).body.sealed || !(await isVoter())) {
      if (Date.now() > deadline) throw new Error("Vault did not join");
      await sleep(POLLED_EVERY_MS);
    }
  }

  /** Sends a request to another of its addresses. */
  askAt(host: string, method: string, path: string): Promise<VaultAnswer> {
    const { address, ...trust } = this.#serverTrusting(this.#ca);
    const url = new URL(address);
    url.hostname = host;
    return askVault({ address: url.origin, ...trust }, { method, path, token: this.#started?.rootToken });
  }

  /** Kills the server, unless it has ended. */
  kill(): Promise<void> {
    return this.program.kill("SIGKILL");
  }

  /**
   * Kills the server and starts it at the same address. With files, it returns sealed, with its data. With memory, it returns
   * empty, with another root token. It can return with other metadata in its version, as after an upgrade.
   */
  async restart(versionMetadata?: string): Promise<void> {
    await this.kill();
    await this.program.start(...(versionMetadata === undefined ? [] : [`--version-metadata=${versionMetadata}`]));
    await this.#readStarted();
  }

  /** Gives the server another certificate for new connections. Returns the authority of that certificate. */
  async renewCertificate(identity?: CertificateAndKey): Promise<string> {
    if (this.#names === undefined) throw new Error("this Vault serves http");
    this.#identity = identity ?? selfSigned(this.#names);
    const { cert, key } = this.#identity;
    await Promise.all([writeFile(this.#file("cert"), cert), writeFile(this.#file("key"), key, { mode: 0o600 })]);
    this.#ca = cert;
    return cert;
  }

  stop(): Promise<void> {
    return this.#keeper.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #serverTrusting(ca: string | undefined): VaultServer {
    const { address } = this;
    return this.#names === undefined || ca === undefined
      ? { address }
      : { address, trust: { ca, servername: this.#names[0] } };
  }

  get #auditLog(): string {
    return this.#file("audit");
  }

  #file(name: string): string {
    return join(this.folder, `vault-${name}`);
  }

  /** Reads the line that the last initialisation printed to the log. */
  async #readStarted(): Promise<void> {
    const lines = (await readFile(this.program.logFile, "utf8")).split("\n");
    const line = lines.findLast((each) => each.startsWith('{"address":'));
    if (line === undefined) return;
    this.#started = JSON.parse(line) as Started;
    registerSecret(this.#started.rootToken);
    registerSecret(this.#started.unsealKeys[0]);
  }
}
