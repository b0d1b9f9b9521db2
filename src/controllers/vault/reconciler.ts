/**
 * Reconciles one VaultConnection: reads the named objects as its account, opens the connection to the server, registers it for
 * the sources, and writes the status.
 */

import { isDeepStrictEqual } from "node:util";
import type { ConnectionSpec, ConnectionStatus, VaultConnection } from "../../api/connection.ts";
import type { Installation } from "../../api/installation.ts";
import { REFRESH_ANNOTATION } from "../../api/refresh.ts";
import { parseDuration } from "../../apimachinery/duration.ts";
import { describeObject, idOf, type KubeObject, type ObjectRef } from "../../apimachinery/objects.ts";
import { attemptSync, Problem } from "../../apimachinery/problem.ts";
import { CONFIG_MAPS } from "../../apimachinery/resources.ts";
import { SecretValue } from "../../apimachinery/secret-value.ts";
import { objectKey } from "../../cache/reflector.ts";
import type { ResourceStore } from "../../cache/resource-store.ts";
import type { ObjectSubscription } from "../../cache/subscription.ts";
import type { Watcher } from "../../cache/watcher.ts";
import { accountNotFound, accountRefusal, attempt, READ_VERBS, streamRefusal } from "../../kube/access-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists } from "../../kube/get.ts";
import { CONTROLLER, type Identity } from "../../kube/identity.ts";
import type { ConnectionHealth } from "../../observability/metrics.ts";
import { type Actor, actorOf } from "../../targets/actor.ts";
import { pemBundle } from "../../transform/pem.ts";
import { TOKEN } from "../../vault/auth.ts";
import type { Connection, ConnectionCheck } from "../../vault/connection.ts";
import type { VaultConnections } from "../../vault/connections.ts";
import { type NamedKey, namedKeys, namedObjects, needsAccount } from "../../vault/named-keys.ts";
import type { Auth, ConnectionSettings } from "../../vault/settings.ts";
import type { CpuScheduler } from "../../workqueue/cpu-scheduler.ts";
import { DONE, type WorkResult } from "../../workqueue/work-queue.ts";
import { orWhenStalled, requeueResult } from "../binding/requeue.ts";
import type { Checks } from "./checks.ts";

/** More than all public authorities need. */
const MAX_CA = 512 * 1024;

/** Objects by their id; undefined for an object that does not exist. */
type FoundObjects = ReadonlyMap<string, KubeObject | undefined>;

/** Whether everyone who may read ConfigMaps can read the token of a connection. */
export const isTokenReadable = ({ spec: { auth } }: VaultConnection): boolean => auth?.token?.configMap !== undefined;

/** Throws Problem("ConnectionNotReady") that says what is missing or wrong, and where. */
export function settingsOf(connection: VaultConnection, identity: Identity, found: FoundObjects): ConnectionSettings {
  const { metadata, spec } = connection;
  const { ca, ...login } = namedKeys(connection);
  const auth = authOf(spec, identity, login, found);
  return {
    key: objectKey(metadata.namespace, metadata.name),
    address: urlOf(spec.address),
    timeoutMs: parseDuration(spec.timeout, "spec.timeout"),
    ...(spec.namespace !== undefined && { namespace: spec.namespace }),
    ...(ca !== undefined && { ca: certificatesOf(ca, found) }),
    ...(spec.tls?.serverName !== undefined && { serverName: spec.tls.serverName }),
    ...(auth !== undefined && { auth }),
  };
}

/** Whether both lead to the same server with the same login and the same values. */
export const isSameSettings = (a: ConnectionSettings, b: ConnectionSettings): boolean =>
  isDeepStrictEqual(revealed(a), revealed(b));

function revealed({ address, auth, ...settings }: ConnectionSettings): object {
  const values = Object.entries(auth ?? {}).map(([field, value]) => [
    field,
    value instanceof SecretValue ? value.reveal() : value,
  ]);
  return { ...settings, address: address.href, auth: Object.fromEntries(values) };
}

function authOf(
  { auth }: ConnectionSpec,
  identity: Identity,
  { secretID, token }: Omit<ReturnType<typeof namedKeys>, "ca">,
  found: FoundObjects,
): Auth | undefined {
  if (auth?.kubernetes !== undefined) {
    const { as, ...login } = auth.kubernetes;
    return { kind: "kubernetes", ...login, ...(as === "Connection" && { as: identity }) };
  }
  if (auth?.appRole !== undefined && secretID !== undefined) {
    const { mount, roleID } = auth.appRole;
    return { kind: "appRole", mount, roleID, secretID: wordOf(secretID, found) };
  }
  return token && { kind: "token", token: wordOf(token, found) };
}

/** The schema of the CRD permits any number as a port. */
function urlOf(address: string): URL {
  if (URL.canParse(address)) return new URL(address);
  throw notReady(`spec.address: ${address} is not a URL; check its parts, such as the port`);
}

function certificatesOf(named: NamedKey, found: FoundObjects): string {
  const text = textOf(named, found).reveal();
  if (text.length > MAX_CA) {
    const most = `and Inlay reads at most ${MAX_CA}; list only the authorities of the server`;
    throw new Problem("TooLarge", `${describe(named)}: the certificates have ${text.length} characters, ${most}`);
  }
  try {
    return pemBundle([text], describe(named));
  } catch (error) {
    if (error instanceof Problem && error.reason === "InvalidValue") throw notReady(error.message);
    throw error;
  }
}

/** Editors and `echo` end a file with a line break, which is not part of a token. */
function wordOf(named: NamedKey, found: FoundObjects): SecretValue<string> {
  const word = textOf(named, found).map((text) => text.trim());
  if (TOKEN.test(word.reveal())) return word;
  const what = word.reveal() === "" ? "is empty" : "contains spaces, line breaks or characters beyond ASCII";
  throw notReady(`${describe(named)}: the value ${what}; store exactly the value that Vault issued`);
}

function textOf(named: NamedKey, found: FoundObjects): SecretValue<string> {
  const { field, key, ref } = named;
  const { resource, namespace, name } = ref;
  const what = describeObject(resource.kind, namespace, name);
  const object = found.get(idOf(ref));
  if (object === undefined) throw notReady(`${field}: there is no ${what}; create it, or correct the name`);
  const data = (object["data"] ?? {}) as Record<string, string>;
  const value = Object.hasOwn(data, key) ? data[key] : undefined;
  if (value === undefined) throw notReady(`${field}: ${what} has no key ${key}; add it, or correct the key`);
  if (resource === CONFIG_MAPS) return new SecretValue(value);
  try {
    return new SecretValue(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(value, "base64")));
  } catch {
    throw notReady(`${describe(named)}: the value is not UTF-8 text; correct it`);
  }
}

const describe = ({ field, key, ref: { resource, namespace, name } }: NamedKey) =>
  `${field}, key ${key} of ${describeObject(resource.kind, namespace, name)}`;

const notReady = (message: string) => new Problem("ConnectionNotReady", message);

/** The methods of a connection that are used here. */
export type OpenConnection = Pick<
  Connection,
  "loginOf" | "data" | "metadata" | "health" | "check" | "isUsed" | "retryLogins" | "close"
>;

interface Services {
  installation: Pick<Installation, "closedNamespace" | "limits" | "ownNamespace" | "vaultAddresses">;
  client: Pick<Client, "get">;
  store: Pick<ResourceStore<VaultConnection>, "get">;
  watcher: Watcher;
  cpu: Pick<CpuScheduler, "run">;
  /** The number of a connection that is not one of the oldest of its namespace. Undefined for the others. */
  numberBeyond(connection: VaultConnection): number | undefined;
  registry: Pick<VaultConnections, "set" | "delete" | "refresh">;
  checks: Pick<Checks, "start" | "stop" | "now" | "resultOf" | "isAwaited">;
  connect(settings: ConnectionSettings): OpenConnection;
  /** Closes a connection in the background. */
  close(connection: OpenConnection): void;
  /** `isChecked`: the server was checked since the annotation inlay.dev/refresh changed. Returns the status. */
  report(connection: VaultConnection, result: ConnectionCheck, isChecked: boolean): Promise<ConnectionStatus>;
  /** Like `report`, at a limited rate. Undefined while the connection waits for its turn. */
  reportLater(connection: VaultConnection, problem: Problem): Promise<ConnectionStatus | undefined>;
}

/** A connection that is in use. */
interface Opened {
  readonly settings: ConnectionSettings;
  /** The uid of the ServiceAccount. An account that is created later under the same name does not use the login of the former. */
  readonly accountUid: string | undefined;
  readonly connected: OpenConnection;
}

/** The state of a VaultConnection. */
interface Entry {
  readonly uid: string;
  /** The last seen value of the annotation inlay.dev/refresh. */
  refresh: string | undefined;
  opened: Opened | undefined;
  /** The versions of all objects that `opened` was last compared with. */
  inputs: string | undefined;
  /** A problem prevents its use. */
  hasFailed: boolean;
  /** The paths for which `revision` was assigned. */
  paths: string | undefined;
  revision: string;
}

/** The objects that a VaultConnection names, as the watches show them. */
interface Observed {
  readonly actor: Actor;
  /** The uid of its ServiceAccount, if Inlay impersonates it. */
  readonly accountUid: string | undefined;
  readonly objects: readonly { ref: ObjectRef; seen: string | undefined }[];
  /** Changes with the VaultConnection's spec and with every object that it names. */
  readonly inputs: string;
}

export class ConnectionReconciler {
  readonly #services: Services;
  readonly #entries = new Map<string, Entry>();
  #revisions = 0;

  constructor(services: Services) {
    this.#services = services;
  }

  /** The state of each connection. */
  get health(): ConnectionHealth[] {
    return [...this.#entries].map(([key, { opened, hasFailed }]) => {
      const result = this.#services.checks.resultOf(key);
      if (hasFailed || result?.problem !== undefined) return "not_ready";
      return opened === undefined || result === undefined ? "pending" : "ready";
    });
  }

  async reconcile(key: string): Promise<WorkResult> {
    const { checks, store } = this.#services;
    const connection = store.get(key);
    if (connection === undefined) {
      this.#drop(key);
      this.#services.registry.delete(key);
      return DONE;
    }
    const number = this.#services.numberBeyond(connection);
    if (number !== undefined) return this.#refuse(key, connection, number);
    const entry = this.#entryOf(key, connection);
    this.#noticeRefresh(key, entry, connection);
    const observed = attemptSync(() => this.#observe(key, connection));
    // The watch requeues the connection when it is in sync.
    if (observed === "pending") return DONE;
    const problem = observed instanceof Problem ? observed : await this.#open(key, entry, connection, observed);
    // While the API server does not answer, the last known connection stays in use.
    const isKept = problem?.reason === "Unavailable" && entry.opened !== undefined;
    if (problem !== undefined && !isKept) this.#fail(key, entry, connection, problem);
    const result = problem !== undefined && !isKept ? { problem } : checks.resultOf(key);
    // The check requeues the connection when it is done. Until then the status stays.
    const status = result && (await this.#services.report(connection, result, !checks.isAwaited(key)));
    return orWhenStalled(
      requeueResult(connection.metadata.namespace, problem === undefined ? [] : [{ problem }]),
      status,
      new Date(),
    );
  }

  /** Such a connection makes no request and keeps nothing. */
  async #refuse(key: string, connection: VaultConnection, number: number): Promise<WorkResult> {
    const { installation, registry, reportLater } = this.#services;
    const { namespace = "", labels = {} } = connection.metadata;
    const most = installation.limits.connectionsPerNamespace;
    const message = `this is number ${number} of the VaultConnections in namespace ${namespace} by age, and only the oldest ${most} count; delete VaultConnections that are not needed, or ask the administrator of Inlay to raise limits.connectionsPerNamespace`;
    const problem = new Problem("LimitExceeded", message);
    this.#drop(key);
    registry.set(key, { phase: "failed", problem, labels });
    return orWhenStalled(DONE, await reportLater(connection, problem), new Date());
  }

  /** Makes the sources read everything through a connection at once, and retry failed logins. */
  readAgain(key: string): void {
    this.#entries.get(key)?.opened?.connected.retryLogins();
    this.#services.registry.refresh(key);
  }

  /** Closes all connections. Their entries stay. */
  closeAll(): void {
    for (const [key, entry] of this.#entries) this.#close(key, entry);
  }

  #entryOf(key: string, { metadata: { uid, annotations } }: VaultConnection): Entry {
    const known = this.#entries.get(key);
    if (known?.uid === uid) return known;
    if (known !== undefined) {
      this.#close(key, known);
      this.#services.registry.set(key, { phase: "pending" });
    }
    // At first sight, the annotation may be as old as the object.
    const refresh = annotations?.[REFRESH_ANNOTATION];
    const none = { opened: undefined, inputs: undefined, hasFailed: false, paths: undefined, revision: "" };
    const entry: Entry = { uid, refresh, ...none };
    this.#entries.set(key, entry);
    return entry;
  }

  #noticeRefresh(key: string, entry: Entry, { metadata: { annotations } }: VaultConnection): void {
    const text = annotations?.[REFRESH_ANNOTATION];
    if (text === entry.refresh) return;
    entry.refresh = text;
    if (text === undefined) return;
    entry.inputs = undefined;
    this.readAgain(key);
    this.#services.checks.now(key);
  }

  /** Throws Problem if the connection may not be used, or if Inlay can't use its account. */
  #observe(key: string, connection: VaultConnection): Observed | "pending" {
    const { installation, watcher } = this.#services;
    const { namespace, generation } = connection.metadata;
    const actor = installation.closedNamespace(namespace) ?? actorOf(connection, installation);
    if (actor instanceof Problem) {
      watcher.subscribe(key, []);
      throw actor;
    }
    const { identity } = actor.as;
    const account: ObjectSubscription = { identity: CONTROLLER, ref: actor.account };
    const named = namedObjects(connection).map((ref): ObjectSubscription => ({ identity, ref }));
    const all = needsAccount(connection) ? [account, ...named] : [];
    watcher.subscribe(key, all);
    const looks = all.map((each) => ({ ref: each.ref, ...watcher.get(key, each) }));
    for (const { ref, ...look } of looks) {
      if (look.phase === "pending") return "pending";
      if (look.phase === "synced") continue;
      if (ref === actor.account)
        throw accountRefusal(look.error, identity, ref, this.#services.installation.ownNamespace);
      throw streamRefusal(look.error, { identity, ref, verbs: READ_VERBS }, "watch");
    }
    if (looks[0] !== undefined && looks[0].version === undefined)
      throw accountNotFound(identity, "which this VaultConnection uses to read objects and to log in");
    const versions = looks.map(({ version }) => `${version?.uid}/${version?.resourceVersion}`);
    const objects = looks.slice(1).map(({ ref, version }) => ({ ref, seen: version?.resourceVersion }));
    return { actor, accountUid: looks[0]?.version?.uid, objects, inputs: [generation, ...versions].join() };
  }

  /** Opens the connection that the spec and the named objects describe. Returns the problem that prevents its use. */
  async #open(
    key: string,
    entry: Entry,
    connection: VaultConnection,
    observed: Observed,
  ): Promise<Problem | undefined> {
    const { checks, close } = this.#services;
    const before = entry.opened;
    const isSame = before !== undefined && entry.inputs === observed.inputs;
    const opened = isSame ? before : await attempt(this.#opened(connection, observed, before));
    if (opened instanceof Problem) return opened;
    entry.opened = opened;
    entry.inputs = observed.inputs;
    entry.hasFailed = false;
    if (opened !== before) entry.paths = undefined;
    this.#publish(key, entry, connection, opened);
    if (opened === before) return undefined;
    checks.start(key, opened.connected);
    if (before !== undefined) close(before.connected);
    return undefined;
  }

  /** Returns `before` itself if no setting changed, for example when another key of a Secret changed. */
  async #opened(connection: VaultConnection, observed: Observed, before: Opened | undefined): Promise<Opened> {
    const settings = await this.#settings(connection, observed);
    const refused = this.#services.installation.vaultAddresses.refusal(settings.address);
    if (refused !== undefined) throw refused;
    const { accountUid } = observed;
    const isSame =
      before?.accountUid === accountUid && before !== undefined && isSameSettings(before.settings, settings);
    return isSame ? before : { settings, accountUid, connected: this.#services.connect(settings) };
  }

  /** Throws Problem. */
  async #settings(connection: VaultConnection, { actor, objects }: Observed): Promise<ConnectionSettings> {
    const { client } = this.#services;
    const { identity } = actor.as;
    const found = new Map<string, KubeObject | undefined>();
    for (const { ref, seen } of objects) {
      const access = { client, identity, ref, verbs: READ_VERBS };
      found.set(idOf(ref), seen === undefined ? undefined : await getIfExists(access, seen));
    }
    return this.#services.cpu.run(connection.metadata.namespace as string, () =>
      settingsOf(connection, identity, found),
    );
  }

  #publish(key: string, entry: Entry, { metadata, spec }: VaultConnection, { connected }: Opened): void {
    const paths = spec.paths ?? [];
    const text = paths.join("\n");
    if (entry.paths !== text) entry.revision = `${++this.#revisions}`;
    entry.paths = text;
    const { labels = {} } = metadata;
    const usesAccountTokens = spec.auth?.kubernetes?.as === "Binding";
    const { revision } = entry;
    this.#services.registry.set(key, { phase: "ready", revision, connected, paths, labels, usesAccountTokens });
  }

  #fail(key: string, entry: Entry, { metadata: { labels = {} } }: VaultConnection, problem: Problem): void {
    this.#close(key, entry);
    entry.hasFailed = true;
    this.#services.registry.set(key, { phase: "failed", problem, labels });
  }

  #close(key: string, entry: Entry): void {
    const { checks, close } = this.#services;
    checks.stop(key);
    if (entry.opened !== undefined) close(entry.opened.connected);
    entry.opened = undefined;
  }

  #drop(key: string): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#close(key, entry);
    this.#entries.delete(key);
    this.#services.watcher.subscribe(key, []);
  }
}
