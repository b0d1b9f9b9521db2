/**
 * A real Vault server for tests: what comes in is how it serves and where it keeps its data, what goes out is a handle by
 * which a test fills, seals, kills and restarts it. Like the control plane's programs, it ends with this process.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type CertificateAndKey, selfSigned } from "../../src/observability/self-signed.ts";
import { registerSecret } from "../controller/leak-detector.ts";
import type { ControlPlane } from "./control-plane.ts";
import { Keeper, type Program } from "./keeper.ts";
import { freePorts } from "./ports.ts";
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
import { vaultProgram } from "./vault-program.ts";

export interface VaultOptions {
  /** Whether it serves https, with a certificate for these names, or that of another server; for `localhost` unless there are some. */
  tls?: boolean | { names: [string, ...string[]]; of?: Vault };
  /** Where its data is. Memory, unless given, is empty after a restart; files keep it, as does integrated storage. */
  storage?: "memory" | "file" | "raft";
  /** Where it serves at port 8200, as in a pod; on a port of 127.0.0.1 unless given. With several, each is a server of one cluster. */
  at?: readonly [string, ...string[]];
  /** What follows the + of its version, such as `ent`. */
  versionMetadata?: string;
  /** Whether it is ready for use, initialised and unsealed. It is by default. */
  initialize?: boolean;
}

/** What the server prints when it has initialised itself. */
interface Started {
  rootToken: string;
  unsealKeys: [string];
}

/** A request, as the audit log has it. */
export interface VaultAudited {
  /** `read`, `update`, `list` and so on. */
  operation: string;
  path: string;
  /** Who asked: `root`, or such as `kubernetes-NAMESPACE-ACCOUNT`. Undefined for a login. */
  who: string | undefined;
}

/** What a mount answers while KV version 2 sets itself up. */
const UPGRADING = /^Upgrading from non-versioned/;
const VAULT_PORT = 8200;
const POLLED_EVERY_MS = 10;
const MOUNTED_WITHIN_MS = 30_000;

/** Starts a Vault server and waits until it answers. The program must be built by then, or a build takes minutes. */
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
  /** Its data, logs and certificates, until it is stopped. */
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

  /** For startVault() alone. */
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

  /** The certificate that its own is signed by, as PEM; with http, there is none. */
  get ca(): string {
    if (this.#ca === undefined) throw new Error("this Vault serves http");
    return this.#ca;
  }

  /** Its certificate and its key, for others of its cluster. */
  get identity(): CertificateAndKey | undefined {
    return this.#identity;
  }

  get rootToken(): string {
    if (this.#started === undefined) throw new Error("this Vault has not been initialised");
    return this.#started.rootToken;
  }

  /**
   * Sends a request, as root unless another token is given; `""` sends none. Returns whatever Vault answers. With https, it trusts
   * the certificate that Vault has now, or another one that is given.
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

  /** The same for what should succeed: returns the parsed answer, and fails when Vault refuses. */
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

  /** Writes a secret of a KV engine, with keys and values. Returns its version, or 0 where there are none. */
  async putKv(mount: string, path: string, data: object): Promise<number> {
    if ((await this.#kvVersion(mount)) === 1) {
      await this.api("POST", `${mount}/${path}`, data);
      return 0;
    }
    return (await this.api("POST", `${mount}/data/${path}`, { data })).data.version;
  }

  /** Deletes a secret: with KV version 2 its last version, which can be undeleted. */
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

  /** A token with these policies. */
  async createToken(policies: string[], { ttl = "1h" } = {}): Promise<string> {
    const { auth } = await this.api("POST", "auth/token/create", { policies, ttl });
    return registerSecret(auth.client_token);
  }

  /** Lets ServiceAccounts of a control plane log in, as far as roles allow it; the API server reviews each token. */
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

  /** From now on, requests() has every request. Vault's log has values as HMACs only. */
  async enableAudit(): Promise<void> {
    await this.api("PUT", "sys/audit/file", { type: "file", options: { file_path: this.#auditLog } });
  }

  /** The requests since enableAudit(), in their order: each is here before it is answered. */
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

  /** Has it join the cluster of another server, both with integrated storage, and waits until it is a standby there, which may vote. */
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

  /** Asks another address that it serves at. */
  askAt(host: string, method: string, path: string): Promise<VaultAnswer> {
    const { address, ...trust } = this.#serverTrusting(this.#ca);
    const url = new URL(address);
    url.hostname = host;
    return askVault({ address: url.origin, ...trust }, { method, path, token: this.#started?.rootToken });
  }

  /** Kills it, unless it has ended. */
  kill(): Promise<void> {
    return this.program.kill("SIGKILL");
  }

  /**
   * Kills it and starts it at the same address. With files, it comes back sealed, with its data; with memory, empty, with another
   * root token. It can come back with other metadata in its version, as after an upgrade.
   */
  async restart(versionMetadata?: string): Promise<void> {
    await this.kill();
    await this.program.start(...(versionMetadata === undefined ? [] : [`--version-metadata=${versionMetadata}`]));
    await this.#readStarted();
  }

  /** Gives it another certificate, from the next connection on. Returns what it is signed by. */
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

  /** Reads the line that the last initialisation printed, among what the server logs. */
  async #readStarted(): Promise<void> {
    const lines = (await readFile(this.program.logFile, "utf8")).split("\n");
    const line = lines.findLast((each) => each.startsWith('{"address":'));
    if (line === undefined) return;
    this.#started = JSON.parse(line) as Started;
    registerSecret(this.#started.rootToken);
    registerSecret(this.#started.unsealKeys[0]);
  }
}
