/** Vault on the command line: the parts of the file of values that replaces its servers, and VaultConnections as they are in files. */
import type { Source } from "../api/binding.ts";
import type { VaultConnection } from "../api/vault-connection.ts";
import { isObject, stringifyJson } from "../apimachinery/json.ts";
import {
  describeObject,
  type JsonObject,
  type JsonValue,
  type KubeObject,
  type ObjectRef,
} from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SECRETS, SERVICE_ACCOUNTS, VAULT_CONNECTIONS } from "../apimachinery/resources.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { READ_VERBS, tokenAccess } from "../kube/access-error.ts";
import { logsIn, namedKeys, namedObjects, needsAccount } from "../vault/named-keys.ts";
import type { ConnectionState, VaultAnswer, VaultConnected } from "../vault/types.ts";
import type { StoreFiles } from "./poll.ts";
import type { ConnectionKind, FilePart } from "./source.ts";

type VaultSource = NonNullable<Source["vault"]>;

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

export const VAULT_FILE_PARTS: Readonly<Record<"data" | "metadata" | "health", FilePart>> = {
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
export function answerFromFile(
  files: StoreFiles,
  { data, metadata, health }: VaultSource,
  connection: ObjectRef,
): VaultAnswer {
  const answer = (
    part: keyof typeof VAULT_FILE_PARTS,
    key: string,
    fields = files.fieldsOf(part, key),
  ): VaultAnswer => {
    if (fields === undefined) files.missing(part, key);
    const custom = part === "health" ? {} : textsIn(files.fieldsOf("metadata", key)?.["custom_metadata"]);
    return { version: VERSION, content: fields && { data: bytesIn(fields), custom: new SecretValue(custom) } };
  };
  if (health !== undefined) {
    const address = health.address ?? specOf(files.find(connection))?.address;
    if (address !== undefined) return answer("health", serverKey(address));
    const called = describeObject(connection.resource.kind, connection.namespace, connection.name);
    files.note(`the address of ${called} is unknown; add it to the files, or set an address in the source`);
    return { version: VERSION, content: undefined };
  }
  const { mount, path } = data ?? metadata;
  const key = `${mount}/${path}`;
  if (data === undefined) return answer("metadata", key);
  // The file may have an entry for one version.
  return answer("data", key, files.fieldsOf("data", `${key} version ${data.version}`) ?? files.fieldsOf("data", key));
}

export const VAULT_CONNECTION_KIND: ConnectionKind = {
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

const bytesIn = (fields: JsonObject) =>
  new Map(
    Object.entries(fields).map(
      ([key, value]) => [key, new SecretValue<Uint8Array>(Buffer.from(textOf(value)))] as const,
    ),
  );

const textsIn = (custom: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(isObject(custom) ? custom : {}).map(([key, value]) => [key, textOf(value)]));
