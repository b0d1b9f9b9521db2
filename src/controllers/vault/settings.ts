/** Computes the address and the login of a VaultConnection from its spec and the Secrets and ConfigMaps that it names. */
import { isDeepStrictEqual } from "node:util";
import type { ConnectionSpec, VaultConnection } from "../../api/connection.ts";
import { parseDuration } from "../../apimachinery/duration.ts";
import { describeObject, idOf, type KubeObject } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { CONFIG_MAPS } from "../../apimachinery/resources.ts";
import { SecretValue } from "../../apimachinery/secret-value.ts";
import { objectKey } from "../../cache/reflector.ts";
import type { Identity } from "../../kube/identity.ts";
import { pemBundle } from "../../transform/pem.ts";
import { TOKEN } from "../../vault/auth.ts";
import { type NamedKey, namedKeys } from "../../vault/named-keys.ts";
import type { Auth, ConnectionSettings } from "../../vault/settings.ts";

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
