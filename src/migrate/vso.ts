/** Converts VaultStaticSecrets of the Vault Secrets Operator to bindings, and its VaultAuths and VaultConnections to connections. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import { NotTranslated, type Resolve, reference } from "./go-expression.ts";
import { type Input, metadataOf, type Output, type Tool } from "./migration.ts";
import {
  accountNotes,
  compact,
  filled,
  keyPath,
  nonEmpty,
  refreshOf,
  templateField,
  withoutLastSlashes,
} from "./parts.ts";
import type { Tracked } from "./tracked.ts";
import { authMountAt, connectionNotes, VaultPaths, vaultPathAt } from "./vault-paths.ts";

/** How the bindings of a VaultAuth log in. */
interface Login {
  readonly auth: JsonObject | undefined;
  /** The ServiceAccount that logs in. */
  readonly account: string | undefined;
  /** The namespace in Vault. */
  readonly namespace: string | undefined;
  /** The namespaces that may use the VaultAuth, besides its own. */
  readonly allowed: readonly string[];
  /** The server: `namespace/name`, a name, or undefined for the default. */
  readonly server: string | undefined;
  /** The audiences of the tokens with which it logs in. Undefined without tokens. */
  readonly audiences?: readonly string[];
}

const SEND_NO = "Inlay sends no such headers or parameters; check whether Vault needs them";
const NO_LOGIN = "Inlay logs in with Kubernetes auth, an AppRole or a token; write auth of the VaultConnection by hand";
const ROLE = /^[A-Za-z0-9_.-]{1,256}$/;
const AUDIENCES = ["vault", "openbao"];

function loginOf({ root }: Input): Login {
  const spec = root.field("spec");
  const method = spec.field("method").text();
  spec.refuseFields({
    headers: SEND_NO,
    params: SEND_NO,
    vaultAuthGlobalRef: "write the fields of the VaultAuthGlobal into this VaultAuth, and convert again",
  });
  // Inlay stores no clients.
  spec.ignore("storageEncryption");
  const mount = compact({ mount: authMountAt(spec.field("mount")) });
  const rest = {
    namespace: vaultPathAt(spec.field("namespace")),
    allowed: spec.field("allowedNamespaces").texts(),
    server: spec.field("vaultConnectionRef").text(),
  };
  if (method === "kubernetes") return { ...rest, ...kubernetes(spec.field("kubernetes"), mount) };
  if (method === "appRole") return { ...rest, ...appRole(spec.field("appRole"), mount) };
  return { ...rest, ...other(spec, method) };
}

type Method = Pick<Login, "auth" | "account" | "audiences">;

function kubernetes(method: Tracked, path: JsonObject): Method {
  const role = method.field("role").text() ?? "";
  if (!ROLE.test(role))
    method.field("role").lose("Inlay needs a role of letters, digits, _, . and -; write auth.kubernetes.role by hand");
  const audiences = method.field("audiences").texts();
  // Inlay's tokens are valid for 10 minutes.
  method.ignore("tokenExpirationSeconds");
  return {
    auth: {
      kubernetes: compact({ ...path, role: ROLE.test(role) ? role : "inlay", audiences: nonEmpty(audiences) }),
    },
    account: method.field("serviceAccount").text(),
    audiences,
  };
}

function appRole(method: Tracked, path: JsonObject): Method {
  const [roleID, name] = method.textsOf("roleId", "secretRef");
  if (roleID === undefined || name === undefined) method.lose("needs roleId and secretRef; write auth.appRole by hand");
  const secretID = { secret: { name: name ?? "approle", key: "id" } };
  return { auth: { appRole: { ...path, roleID: roleID ?? "unknown", secretID } }, account: undefined };
}

function other(spec: Tracked, method = "none"): Method {
  const field = spec.field(method);
  if (field.exists) field.refuse(NO_LOGIN);
  else spec.field("method").lose(NO_LOGIN);
  return { auth: undefined, account: undefined };
}

/** The fields of a VaultConnection about the server. */
function serverOf({ root }: Input): JsonObject {
  const spec = root.field("spec");
  const skips = spec.field("skipTLSVerify");
  if (skips.flag() === true)
    skips.lose(
      "Inlay always verifies the certificate of the server; set tls.ca of the VaultConnection to its authority",
    );
  spec.field("headers").refuse(SEND_NO);
  const [ca, serverName, timeout, address = ""] = spec.textsOf(
    "caCertSecretRef",
    "tlsServerName",
    "timeout",
    "address",
  );
  return compact({
    address: withoutLastSlashes(address) || undefined,
    tls: filled({ ca: ca === undefined ? undefined : { secret: { name: ca, key: "ca.crt" } }, serverName }),
    timeout,
  });
}

const KEEP = "keep the Vault Secrets Operator for this object";
const DYNAMIC = `Inlay reads KV secrets engines, and no other; ${KEEP}. A binding can read the Secret that it writes`;
const KEPT: Readonly<Record<string, string>> = {
  VaultDynamicSecret: DYNAMIC,
  VaultPKISecret: DYNAMIC,
  HCPVaultSecretsApp: `Inlay does not read HCP Vault Secrets; ${KEEP}`,
  HCPAuth: `Inlay does not read HCP Vault Secrets; ${KEEP}`,
  CSISecrets: `Inlay has no CSI driver; ${KEEP}`,
  VaultAuthGlobal: "write its fields into each VaultAuth that refers to it, and convert again",
  SecretTransformation:
    "write its templates, includes and excludes into each VaultStaticSecret that refers to it, and convert again",
};
const SOURCE = "vault";
const DEFAULT = "default";
const DELETE =
  "Delete the VaultStaticSecret with kubectl delete --cascade=orphan, after this binding is ready. Otherwise, Kubernetes deletes the Secret with it.";

/** A VaultAuth, with what its bindings read. */
interface Auth extends Login {
  readonly input: Input;
  readonly paths: VaultPaths;
}

export const VSO: Tool = {
  title: "the Vault Secrets Operator",
  objects: "VaultStaticSecrets, VaultAuths and VaultConnections",
  owns: ({ apiVersion }) => String(apiVersion).startsWith("secrets.hashicorp.com/"),
  convert(inputs, output) {
    const of = (kind: string) => inputs.filter((input) => input.kind === kind);
    const auths: Auth[] = of("VaultAuth").map((input) => ({ input, ...loginOf(input), paths: new VaultPaths() }));
    const servers = of("VaultConnection").map((input) => ({ input, spec: serverOf(input), isUsed: false }));
    for (const input of of("VaultStaticSecret")) convertSecret(input, auths, output);
    for (const auth of auths) {
      const server = find(auth.server, auth.input, servers);
      if (server !== undefined) server.isUsed = true;
      convertAuth(auth, server, output);
    }
    for (const { input, isUsed } of servers) {
      metadataOf(input);
      if (!isUsed) input.root.lose("no VaultAuth in these files uses this VaultConnection; convert them together");
    }
    for (const { root, kind } of inputs) {
      if (["VaultAuth", "VaultConnection", "VaultStaticSecret"].includes(kind)) continue;
      root.refuse(KEPT[kind] ?? `Inlay does not know the kind ${kind}; ${KEEP}`);
    }
  },
};

/** Finds what a reference names: `namespace/name`, a name in the same namespace, or `default` in any namespace. */
function find<T extends { input: Input }>(ref: string | undefined, from: Input, all: readonly T[]): T | undefined {
  const [first = "", second] = (ref ?? DEFAULT).split("/");
  const [namespace, name] = second === undefined ? [from.namespace, first] : [first, second];
  const named = all.filter(({ input }) => input.name === name);
  const own = named.find(({ input }) => input.namespace === namespace);
  return own ?? (ref === undefined ? named[0] : undefined);
}

function convertAuth(auth: Auth, server: { input: Input; spec: JsonObject } | undefined, output: Output): void {
  const { root, name, namespace } = auth.input;
  const metadata = metadataOf(auth.input);
  const paths = auth.paths.sorted;
  if (paths.length === 0)
    root.lose(
      "no VaultStaticSecret in these files uses this VaultAuth, so its paths in Vault are unknown; convert them together",
    );
  if (server === undefined)
    root.field("spec", "vaultConnectionRef").lose("this VaultConnection is not in these files; convert them together");
  if (paths.length === 0 || server === undefined || auth.auth === undefined) return;
  if (server.spec["tls"] !== undefined && server.input.namespace !== namespace)
    server.input.root
      .field("spec", "caCertSecretRef")
      .lose(`copy this Secret to the namespace ${namespace} of the converted VaultConnection`);
  const spec = compact({
    ...server.spec,
    namespace: auth.namespace,
    serviceAccountName: auth.account,
    auth: auth.auth,
    paths,
  });
  // Only alone, the operator reads * as all namespaces.
  const all = auth.allowed.join() === "*" ? [{ namespaceSelector: { names: ["*"] } }] : undefined;
  for (const from of all ?? auth.allowed.filter((each) => each !== "*").map((each) => ({ namespace: each })))
    output.grant({ kind: "VaultConnection", namespace, name }, from, auth.input);
  const unusual = auth.audiences?.filter((each) => !AUDIENCES.includes(each)) ?? [];
  const notes = [
    ...connectionNotes(server.spec, auth.audiences?.length === 0),
    ...(unusual.length > 0
      ? [`Add the audience ${unusual.join(", ")} to the policy deploy/policies/tokens.yaml.`]
      : []),
  ];
  output.add("VaultConnection", { name, namespace, ...metadata }, spec, [auth.input, server.input], notes);
}

function convertSecret(input: Input, auths: readonly Auth[], output: Output): void {
  const { root, name, namespace } = input;
  const spec = root.field("spec");
  const ref = spec.field("vaultAuthRef");
  const auth = find(ref.text(), input, auths);
  if (auth === undefined)
    ref.lose("this VaultAuth is not in these files; convert them together, or write the VaultConnection by hand");
  const [mount = "", path = ""] = spec.fields("mount", "path").map(vaultPathAt);
  auth?.paths.add(mount, path);
  const inVault = spec.field("namespace");
  const vaultNamespace = vaultPathAt(inVault);
  if (vaultNamespace !== undefined && vaultNamespace !== auth?.namespace)
    inVault.lose(
      "Inlay reads from the namespace in Vault of the VaultConnection; write a VaultConnection for this namespace",
    );
  const target = targetOf(spec.field("destination"));
  // Inlay always detects changes.
  spec.field("hmacSecretData").ignore();
  const rollout = rolloutOf(spec.field("rolloutRestartTargets"));
  const type = spec.field("type");
  if (!["kv-v1", "kv-v2"].includes(type.text() ?? "")) type.lose("must be kv-v1 or kv-v2; correct it");
  const version = spec.field("version").integer() ?? 0;
  const data = { mount, path, ...(type.text() === "kv-v1" ? { kv: 1 } : version > 0 && { version }) };
  const isInstant = spec.field("syncConfig", "instantUpdates").flag() === true;
  const every = refreshOf(spec.field("refreshAfter"));
  const refresh = isInstant ? "5s" : every;
  const account = auth?.account;
  if ((target["fields"] as JsonObject[]).length === 0) return;
  const connection = connectionOf(ref, auth, input, output);
  const binding = compact({
    serviceAccountName: account,
    sources: [{ name: SOURCE, vault: { connection, ...(refresh !== undefined && { refresh }), data } }],
    targets: [target],
    rollout,
  });
  const notes = [
    DELETE,
    ...(isInstant ? ["Inlay receives no events of Vault. It reads every 5 seconds instead."] : []),
    ...accountNotes(account),
  ];
  output.add("SecretBinding", { name, namespace, ...metadataOf(input) }, binding, [input], notes);
}

/** The VaultAuth decides which other namespaces use it. The default one, which an object without vaultAuthRef uses, is for all. */
function connectionOf(ref: Tracked, auth: Auth | undefined, input: Input, output: Output): JsonObject {
  const { namespace } = input;
  const named = ref.text();
  const [first = "", second] = (named ?? DEFAULT).split("/");
  const other = auth?.input.namespace ?? (second === undefined ? namespace : first);
  const name = second ?? first;
  if (other === namespace) return { name };
  const allowed = auth?.allowed ?? [];
  if (auth !== undefined && named === undefined)
    output.grant({ kind: "VaultConnection", namespace: other, name }, { namespace }, input);
  else if (auth !== undefined && !allowed.includes(namespace) && allowed.join() !== "*")
    ref.lose(
      `allowedNamespaces of the VaultAuth ${other}/${name} does not have ${namespace}, so the operator refuses to use it${name === DEFAULT ? " unless it is the default one in the namespace of the operator" : ""}; log in with a VaultAuth of this namespace. Or ask its owner, and write a SecretGrant in ${other} for ${namespace}`,
    );
  return { name, namespace: other };
}

function targetOf(destination: Tracked): JsonObject {
  const [creates, overwrites] = destination.fields("create", "overwrite").map((each) => each.flag() === true);
  const [labels, annotations] = destination.fields("labels", "annotations").map((each) => each.map());
  const [type, name] = destination.textsOf("type", "name");
  // Like the operator, Inlay sets the type, labels and annotations only of a Secret that it creates.
  const manifest = compact({ type, metadata: filled({ labels, annotations }) });
  return compact({
    apiVersion: "v1",
    kind: "Secret",
    name,
    onConflict: "Force",
    create: creates ? { ...(overwrites ? { adopt: "Any", exact: true } : { adopt: "Equal" }), manifest } : undefined,
    fields: fieldsOf(destination.field("transformation")),
  });
}

function fieldsOf(transformation: Tracked): JsonObject[] {
  const [include = [], exclude = []] = transformation.fields("includes", "excludes").map((each) => each.texts());
  const excludesRaw = transformation.field("excludeRaw");
  if (excludesRaw.flag() !== true)
    excludesRaw.lose(
      "Inlay does not write the key _raw, which has the whole response of Vault as JSON. If a program reads it, keep the Vault Secrets Operator for this object. Otherwise set excludeRaw: true, and convert again",
    );
  // Inlay syncs at once.
  transformation.field("resync").ignore();
  transformation
    .field("transformationRefs")
    .refuse(
      "write the templates, includes and excludes of the SecretTransformation into this VaultStaticSecret, and convert again",
    );
  const templates = transformation.field("templates").entries();
  const all = {
    path: "data",
    from: compact({ source: SOURCE, include: nonEmpty(include), exclude: nonEmpty(exclude) }),
  };
  if (templates.length === 0) return [all];
  if (!exclude.includes(".*"))
    transformation
      .field("templates")
      .lose("a target has either all data or single keys; add a field for each other key that your programs read");
  return templates.flatMap(([key, template]) => {
    const named = template.field("keyOverride").text() ?? template.field("name").text() ?? key;
    return templateField(keyPath("data", named), template.field("text"), ofSecrets);
  });
}

/** Templates read `.Secrets.key`, or `get .Secrets "key"`. */
const ofSecrets: Resolve = ([first, key, ...more]) => {
  if (first === "Secrets" && typeof key === "string" && more.length === 0) return reference(SOURCE, [key]);
  throw new NotTranslated("a value that is no key of .Secrets");
};

const KINDS: Readonly<Record<string, JsonObject>> = {
  Deployment: { kind: "Deployment" },
  StatefulSet: { kind: "StatefulSet" },
  DaemonSet: { kind: "DaemonSet" },
  "argo.Rollout": { kind: "Rollout", restartPath: "spec.restartAt" },
};

function rolloutOf(restarts: Tracked): JsonObject | undefined {
  const targets = restarts.list().flatMap((each): JsonObject[] => {
    const [kind = "", name = ""] = each.textsOf("kind", "name");
    const known = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
    if (known === undefined)
      each
        .field("kind")
        .lose("Inlay does not know this kind; add it to rollout.targets with its template or restartPath");
    return known === undefined ? [] : [{ ...known, name }];
  });
  if (targets.length === 0) return undefined;
  return { targets, stamp: { annotation: "vso.secrets.hashicorp.com/restartedAt", value: "Time" } };
}
