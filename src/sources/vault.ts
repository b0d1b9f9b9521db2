/** The kind of source `vault`: data or metadata of a KV secrets engine, or the health of a server, read through a VaultConnection. */
import type { Source } from "../api/binding.ts";
import type { VaultConnection } from "../api/vault-connection.ts";
import { parseDuration } from "../apimachinery/duration.ts";
import { isObject, stringifyJson } from "../apimachinery/json.ts";
import {
  describeObject,
  describeRef,
  idOf,
  type JsonValue,
  type KubeObject,
  type ObjectRef,
  plainPath,
} from "../apimachinery/objects.ts";
import { attemptSync, MissingValue, Problem } from "../apimachinery/problem.ts";
import { SECRETS, SERVICE_ACCOUNTS, VAULT_CONNECTIONS } from "../apimachinery/resources.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { READ_VERBS, tokenAccess } from "../kube/access-error.ts";
import type { Permission } from "../kube/grant-commands.ts";
import { absentSource, type LiveSource } from "../transform/live-source.ts";
import { assertAllowedPath } from "../vault/allowed-paths.ts";
import { absentAnswer, answerOf } from "../vault/kv.ts";
import { logsIn, namedKeys, namedObjects, needsAccount } from "../vault/named-keys.ts";
import type { ConnectionState, VaultAnswer, VaultConnected, VaultContent, VaultReader } from "../vault/types.ts";
import type { ProducedBy } from "./grant-rules.ts";
import { assertFewKeys } from "./many-keys.ts";
import type { Poll, StoreFiles } from "./poll.ts";
import { polledSource } from "./polled-source.ts";
import type { ConnectionKind, FilePart, ResolveContext, SourceKind } from "./source.ts";

const VERSION = "0";
/** A connection that is not in the files allows everything. */
const ANY_PATH = ["*"];
const PLACE = /^[^/*?{}]+(\/[^/*?{}]+)+$/;
const NO_PART = new Set([".", "..", "+"]);
const SERVER = /^https?:\/\/[^/\s]+\/?$/;

const wrongPlace = (key: string) =>
  PLACE.test(key) && !key.split("/").some((each) => NO_PART.has(each))
    ? undefined
    : "must be mount and path in Vault, such as kv/registry/s3";
const serverKey = (address: string) => address.replace(/\/$/, "");

const VAULT_FILE_PARTS: Readonly<Record<"data" | "metadata" | "health", FilePart>> = {
  data: { example: "{KEY: VALUE}", wrongKey: wrongPlace },
  metadata: { example: "{current_version: 1, updated_time: TIME, custom_metadata: {}}", wrongKey: wrongPlace },
  health: {
    example: "{initialized: true, sealed: false, active: true}",
    wrongKey: (key) =>
      SERVER.test(key) ? undefined : "must be the address of a server, such as https://vault.vault.svc:8200",
    keyOf: serverKey,
  },
};

/** What Vault would answer. `connection` is the object through which the source reads. */
function answerFromFile(
  files: StoreFiles,
  { data, metadata, health }: VaultSource,
  connection: ObjectRef,
): VaultAnswer {
  const answer = (
    part: keyof typeof VAULT_FILE_PARTS,
    key: string,
    fields = files.fieldsOf(part, key),
  ): VaultAnswer => {
    if (fields === undefined) {
      files.missing(part, key);
      return absentAnswer(VERSION);
    }
    const custom = part === "health" ? {} : textsIn(files.fieldsOf("metadata", key)?.["custom_metadata"]);
    return answerOf(new Map(Object.entries(textsIn(fields))), custom, VERSION);
  };
  if (health !== undefined) {
    const address = health.address ?? specOf(files.find(connection))?.address;
    if (address !== undefined) return answer("health", serverKey(address));
    const called = describeRef(connection);
    files.note(`the address of ${called} is unknown; add it to the files, or set an address in the source`);
    return absentAnswer(VERSION);
  }
  const { mount, path } = data ?? metadata;
  const key = `${mount}/${path}`;
  if (data === undefined) return answer("metadata", key);
  // The file may have an entry for one version.
  return answer("data", key, files.fieldsOf("data", `${key} version ${data.version}`) ?? files.fieldsOf("data", key));
}

const VAULT_CONNECTION_KIND: ConnectionKind = {
  resource: VAULT_CONNECTIONS,
  field: "vault",
  fromFile(object): ConnectionState {
    const spec = specOf(object);
    const paths = spec === undefined ? ANY_PATH : (spec.paths ?? []);
    const labels = object?.metadata.labels ?? {};
    const usesAccountTokens = spec?.auth?.kubernetes?.as === "Binding";
    return { phase: "ready", revision: VERSION, connected: NO_SERVER, paths, labels, usesAccountTokens };
  },
  namedBy(object) {
    const { ca, secretID, token } = namedKeys(object as Connection);
    const uses = { CA: ca, SecretID: secretID, token };
    return Object.entries(uses).flatMap(([use, key]) => {
      if (key === undefined) return [];
      const kind = key.ref.resource === SECRETS ? "secret" : "configMap";
      return [{ ref: key.ref, place: `${key.field}.${kind}.name`, use }];
    });
  },
  access(object) {
    const connection = object as Connection;
    if (!needsAccount(connection)) return undefined;
    const { metadata, spec } = connection;
    const namespace = metadata.namespace as string;
    const account: ObjectRef = { resource: SERVICE_ACCOUNTS, namespace, name: spec.serviceAccountName };
    const reads = namedObjects(connection).map((ref) => ({ ref, verbs: READ_VERBS }));
    return { account, permissions: logsIn(connection) ? [...reads, tokenAccess(account)] : reads };
  },
};

type Connection = KubeObject & Pick<VaultConnection, "spec">;

const specOf = (object: KubeObject | undefined) => (object as Connection | undefined)?.spec;

const refuse = async (): Promise<never> => {
  throw new Problem("VaultUnavailable", "the command line contacts no Vault server");
};
/** Polls are answered by files. */
const NO_SERVER: VaultConnected = {
  loginOf: () => "",
  retryLogins: () => {},
  data: refuse,
  metadata: refuse,
  health: refuse,
};

/** A field as in Vault's answer: a string as it is, any other value as its JSON. */
const textOf = (value: JsonValue): string => (typeof value === "string" ? value : stringifyJson(value));

const textsIn = (custom: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(isObject(custom) ? custom : {}).map(([key, value]) => [key, textOf(value)]));

type VaultSource = NonNullable<Source["vault"]>;
type Ready = Extract<ConnectionState, { phase: "ready" }>;
type VaultPoll = Poll<VaultContent | undefined>;
type Ask = VaultPoll["ask"];

/** A problem of a connection changes by its own watch, so it needs no polling. */
const FAILING_REFRESH_MS = 24 * 60 * 60 * 1_000;
/** Keys of metadata that change with each version. custom_metadata can change without a new version. */
const VALUE_KEYS = ["updated_time"];

export const vault: SourceKind = {
  fileParts: VAULT_FILE_PARTS,
  connection: VAULT_CONNECTION_KIND,
  parse({ name = "", vault: at }, { namespace: own, policy }) {
    if (at === undefined) return undefined;
    const { name: connectionName, namespace = own, granted = false } = at.connection;
    const connection: ObjectRef = { resource: VAULT_CONNECTIONS, namespace, name: connectionName };
    const needsGrant = granted || namespace !== own;
    const reads = readsOf(at);
    const described = describeObject("VaultConnection", namespace, connectionName);
    const description = `${reads} through ${described}`;
    const isSecret = at.data !== undefined;
    return {
      name,
      policy,
      addressedBy: "key",
      store: {
        product: "Vault",
        reads,
        connection: { ref: connection, needsGrant },
        // The health of a server is read without a login.
        ...(at.health === undefined && { access: loginAccess }),
      },
      ...(needsGrant && { grantedAs: description }),
      ...(isSecret && { secretIn: own }),
      ...(at.metadata !== undefined && { valueKeys: VALUE_KEYS }),
      describe: () => ({ kind: "VaultConnection", name: connectionName }),
      isObject: (other) => idOf(other) === idOf(connection),
      resolve: async (context) => {
        const closed = context.installation.closedNamespace(at.connection.namespace);
        if (closed !== undefined) throw closed;
        const state = context.connections.get(connection) as ConnectionState | undefined;
        const found = attemptSync(() => {
          if (state === undefined) throw connectionNotFound(namespace, connectionName);
          if (state.phase === "failed") throw state.problem;
          return state.phase === "ready" ? pollOf(at, state, connection, own, context) : undefined;
        });
        if (found instanceof Problem && !needsGrant) throw found;
        const common = {
          place: ["inlay.dev", "VaultConnection", namespace, JSON.stringify([connectionName, ...placeOf(at)])] as const,
          description,
          policy,
          ...(needsGrant && { grantedObject: connection }),
          // Until the connection is known, the binding waits for its poll.
          ...(needsGrant && state?.phase !== "pending" && { grantedLabels: state?.labels ?? {} }),
        };
        const poll = found instanceof Problem ? failingPoll(found, connection) : found;
        const labels = new SecretValue(state?.phase === "ready" ? state.labels : {});
        return polledSource(common, poll, context, (content, version): LiveSource => {
          if (content !== undefined) {
            const { data, custom: annotations } = content;
            assertFewKeys(description, data.size, context.installation.limits);
            return { kind: "data", description, version, policy, isSecret, data, annotations, labels };
          }
          const message = `there is nothing at ${description}; write it in Vault, or correct the source`;
          return absentSource(description, new MissingValue("SourceNotFound", message, policy), version);
        });
      },
    };
  },
};

/** An account that logs in for its bindings needs a token. */
function loginAccess(account: ObjectRef, connection: ConnectionState | undefined): Permission[] {
  return connection?.phase === "ready" && connection.usesAccountTokens ? [tokenAccess(account)] : [];
}

/** How often Inlay reads from Vault, as a duration. */
export const intervalOf = ({ refresh = "1m" }: Pick<VaultSource, "refresh">): string => refresh;

/** The data to read, with the version of its KV secrets engine. */
const kvDataOf = ({ kv = 2, ...data }: NonNullable<VaultSource["data"]>) => ({ ...data, kv });

/** What a source reads, for messages: `data kv/registry/s3 version 2`. */
function readsOf({ data, metadata, health }: VaultSource): string {
  if (metadata !== undefined) return `metadata ${plainPath(`${metadata.mount}/${metadata.path}`)}`;
  if (data === undefined) return health?.address === undefined ? "health" : `health ${plainPath(health.address)}`;
  return `data ${plainPath(`${data.mount}/${data.path}`)}${data.version === undefined ? "" : ` version ${data.version}`}`;
}

/** Identifies what a source reads, in parts that no other source has. Versions of a path are the same source with other values. */
function placeOf({ data, metadata, health }: VaultSource): string[] {
  if (health !== undefined) return ["health", health.address ?? ""];
  return data === undefined ? ["metadata", metadata.mount, metadata.path] : ["data", data.mount, data.path];
}

/** Undefined until the namespace and the account of the read are known. Throws Problem. */
function pollOf(
  at: VaultSource,
  { connected, revision, paths }: Ready,
  connection: ObjectRef,
  own: string,
  { identity, accountUid, compositionOf }: Pick<ResolveContext, "identity" | "accountUid" | "compositionOf">,
): VaultPoll | undefined {
  const { data, metadata, health } = at;
  const group = idOf(connection);
  const kvData = data && kvDataOf(data);
  const pollAs = (login: string, ask: Ask): VaultPoll => ({
    id: JSON.stringify([group, revision, login, ...placeOf(at), data?.version ?? "", kvData?.kv ?? ""]),
    group,
    // A silent server must not delay the answers of another one.
    ...(at.health !== undefined && { queue: JSON.stringify([group, ...placeOf(at)]) }),
    refreshMs: parseDuration(intervalOf(at), "refresh"),
    unavailable: "VaultUnavailable",
    refreshing: () => connected.retryLogins(),
    ask,
    fromFile: (files) => answerFromFile(files, at, connection),
  });
  if (health !== undefined) return pollAs("", (last) => connected.health(health.address, last));
  const place = data ?? metadata;
  const namespace = claimNamespace(own, compositionOf());
  if (namespace === undefined || accountUid === undefined) return undefined;
  assertAllowedPath(paths, kvData ?? place, namespace, `${connection.namespace}/${connection.name}`);
  const reader: VaultReader = { identity, uid: accountUid, namespace };
  const ask: Ask = (last) =>
    kvData === undefined ? connected.metadata(reader, place) : connected.data(reader, kvData, last);
  return pollAs(connected.loginOf(reader), ask);
}

/**
 * Without a SecretGrant, a binding learns nothing about the connection, not even that it does not exist. So the problem is an answer, which
 * is only read with a grant.
 */
function failingPoll(problem: Problem, connection: ObjectRef): VaultPoll {
  const group = idOf(connection);
  const fail = (): never => {
    throw problem;
  };
  return {
    id: JSON.stringify([group, problem.reason, problem.message]),
    group,
    refreshMs: FAILING_REFRESH_MS,
    unavailable: "VaultUnavailable",
    ask: async () => fail(),
    fromFile: fail,
  };
}

/** The namespace of the claim of a composed binding; for other bindings, their own. Undefined while that is being computed. */
function claimNamespace(own: string, producedBy: ProducedBy): string | undefined {
  if (producedBy === "pending") return undefined;
  if (producedBy !== "unknown") return producedBy === "none" ? own : (producedBy.claimNamespace ?? own);
  const what =
    "Inlay does not know at the moment for which claim a BindingComposition composes this binding, and so the value of {namespace}";
  const fix = "check its condition Accepted";
  throw new Problem("Unavailable", { what, fix, command: "kubectl get bindingcompositions" });
}

function connectionNotFound(namespace: string, name: string): Problem {
  const message = `there is no VaultConnection ${namespace}/${name}; create it, or correct spec.sources[].vault.connection. Written fields stay`;
  return new Problem("ConnectionNotFound", message);
}
