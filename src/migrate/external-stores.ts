/** Reads the SecretStores of the External Secrets Operator: how bindings read Vault or Secrets of another namespace. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import { type Input, metadataOf, type Output } from "./migration.ts";
import { compact, labelSelectorOf, nonEmpty, withoutLastSlashes } from "./parts.ts";
import type { Tracked } from "./tracked.ts";
import { authMountAt, connectionNotes, VaultPaths, vaultPathAt } from "./vault-paths.ts";

export type Store =
  | {
      readonly provider: "kubernetes";
      readonly input: Input;
      readonly namespace: string;
      /** Only some namespaces may use it. */
      readonly isRestricted: boolean;
    }
  | VaultStore
  | { readonly provider: "other"; readonly input: Input };

interface VaultStore {
  readonly provider: "vault";
  readonly input: Input;
  readonly paths: VaultPaths;
  /** The namespace of the VaultConnection. */
  readonly namespace: string;
  readonly mount: string | undefined;
  readonly kv: 1 | 2;
  readonly spec: JsonObject;
  /** Those of the tokens with which it logs in. Undefined without tokens. */
  readonly audiences: readonly string[] | undefined;
  /** Who may use a ClusterSecretStore, as far as it can be converted. Undefined for the namespaces that do. */
  readonly from: readonly JsonObject[] | undefined;
}

const KEEP = "keep External Secrets for this store. A binding can read the Secrets that it writes";

export function storeOf(input: Input): Store {
  const spec = input.root.field("spec");
  // Inlay retries and reads by its own settings.
  spec.ignore("retrySettings", "refreshInterval");
  const provider = spec.field("provider");
  if (provider.field("vault").exists) return vault(provider.field("vault"), input);
  if (provider.field("kubernetes").exists) {
    const conditions = spec.field("conditions");
    const isRestricted = conditions.exists && JSON.stringify(conditions.peek()) !== "[]";
    conditions.refuse("write a SecretGrant for the namespaces that may read each Secret, if any: none is printed");
    return { provider: "kubernetes", input, namespace: kubernetes(provider.field("kubernetes")), isRestricted };
  }
  const [name, first] = provider.entries()[0] ?? [];
  if (first === undefined) provider.lose(`no provider; ${KEEP}`);
  else first.refuse(`Inlay reads Vault, OpenBao and objects of the cluster, but not ${name}; ${KEEP}`);
  return { provider: "other", input };
}

const IN_CLUSTER = /^(https:\/\/)?kubernetes\.default(\.svc(\.cluster\.local)?)?(:443)?\/?$/;

function kubernetes(provider: Tracked): string {
  const url = provider.field("server", "url");
  if (!IN_CLUSTER.test(url.text() ?? "kubernetes.default")) url.lose(`Inlay reads its own cluster; ${KEEP}`);
  else provider.field("server").ignore("caBundle", "caProvider");
  // The account of the binding reads the Secrets.
  provider.ignore("auth", "authRef");
  return provider.field("remoteNamespace").text() ?? "default";
}

function vault(provider: Tracked, input: Input): VaultStore {
  // They concern reads after writes.
  provider.ignore("readYourWrites", "forwardInconsistent", "checkAndSet");
  provider.refuseFields({
    headers: "Inlay sends no such headers; check whether Vault needs them",
    tls: "Inlay has no client certificates; use another login",
    caBundle: "write the certificates to a ConfigMap, and its name to tls.ca.configMap of the VaultConnection",
  });
  const login = loginOf(provider.field("auth"), input);
  const inVault = provider.field("namespace").text();
  const auth = provider.field("auth", "namespace");
  if (auth.exists && auth.text() !== inVault)
    auth.lose("Inlay logs in to the namespace in Vault that it reads; write the login by hand");
  const kv = provider.field("version").oneOf(["v2", "v1"], "must be v1 or v2; correct it") === "v1" ? 1 : 2;
  const ca = caOf(provider.field("caProvider"), login.namespace);
  const spec = compact({
    address: withoutLastSlashes(provider.field("server").text() ?? "") || undefined,
    namespace: vaultPathAt(provider.field("namespace")),
    tls: ca === undefined ? undefined : { ca },
    serviceAccountName: login.account,
    auth: login.auth,
  });
  const conditions = input.root.field("spec", "conditions").list();
  return {
    provider: "vault",
    input,
    paths: new VaultPaths(),
    namespace: login.namespace,
    mount: vaultPathAt(provider.field("path")),
    kv,
    spec,
    audiences: login.audiences,
    from: conditions.length === 0 ? undefined : conditions.flatMap(conditionOf),
  };
}

function caOf(provider: Tracked, namespace: string): JsonObject | undefined {
  if (!provider.exists) return undefined;
  const [type, name = "", key = "ca.crt"] = provider.textsOf("type", "name", "key");
  const other = provider.field("namespace");
  if ((other.text() ?? namespace) !== namespace)
    other.lose(`copy this object to the namespace ${namespace} of the VaultConnection`);
  if (type !== "Secret" && type !== "ConfigMap") provider.field("type").lose("must be Secret or ConfigMap; correct it");
  return { [type === "ConfigMap" ? "configMap" : "secret"]: { name, key } };
}

interface Login {
  readonly auth?: JsonObject;
  readonly account?: string | undefined;
  readonly namespace: string;
  readonly audiences?: readonly string[];
}

function loginOf(auth: Tracked, input: Input): Login {
  const namespaceOf = (ref: Tracked): string => {
    const namespace = ref.field("namespace");
    const own = namespace.text() ?? input.namespace;
    if (own === "")
      namespace.lose(
        "a ClusterSecretStore names the namespace of its credentials; the VaultConnection is converted to the namespace default",
      );
    return own === "" ? "default" : own;
  };
  const keyOf = (ref: Tracked, key: string) => ({
    secret: { name: ref.field("name").text() ?? "unknown", key: ref.field("key").text() ?? key },
  });
  const [kubernetes, appRole, token] = auth.fields("kubernetes", "appRole", "tokenSecretRef");
  if (kubernetes.exists) {
    const account = kubernetes.field("serviceAccountRef");
    kubernetes
      .field("secretRef")
      .refuse("Inlay creates short-lived tokens instead of reading one; name the ServiceAccount in serviceAccountName");
    if (!account.exists)
      kubernetes.lose("name the ServiceAccount that logs in, in serviceAccountName of the VaultConnection");
    const audiences = account.field("audiences").texts();
    const method = compact({
      mount: authMountAt(kubernetes.field("mountPath")),
      role: kubernetes.field("role").text() ?? "",
      audiences: nonEmpty(audiences),
      as: "Connection",
    });
    return {
      auth: { kubernetes: method },
      account: account.field("name").text(),
      namespace: namespaceOf(account),
      audiences,
    };
  }
  if (appRole.exists) {
    const [mount, roleID = "unknown"] = appRole.textsOf("path", "roleId");
    const secret = appRole.field("secretRef");
    appRole.field("roleRef").refuse("write the RoleID itself to auth.appRole.roleID; it is not secret");
    const method = compact({ mount, roleID, secretID: keyOf(secret, "secretId") });
    return { auth: { appRole: method }, namespace: namespaceOf(secret) };
  }
  if (token.exists) return { auth: { token: keyOf(token, "token") }, namespace: namespaceOf(token) };
  auth.refuse("Inlay logs in with Kubernetes auth, an AppRole or a token; write auth of the VaultConnection by hand");
  return { namespace: input.namespace || "default" };
}

/** A condition of a ClusterSecretStore as an entry of `from` in a SecretGrant. */
function conditionOf(condition: Tracked): JsonObject[] {
  condition.field("namespaceRegexes").refuse("a SecretGrant has names with * and ?; add them to spec.from");
  const labels = labelSelectorOf(condition.field("namespaceSelector"));
  const named = condition
    .field("namespaces")
    .texts()
    .map((namespace) => ({ namespace }));
  return [...(labels === undefined ? [] : [{ namespaceSelector: labels }]), ...named];
}

/** The store that a reference names. Reports an unknown one. */
export function findStore(ref: Tracked, input: Input, stores: readonly Store[]): Store | undefined {
  const [name, kind = "SecretStore"] = ref.textsOf("name", "kind");
  if (name === undefined) return undefined;
  const found = stores.find(
    (each) =>
      each.input.kind === kind &&
      each.input.name === name &&
      (kind === "ClusterSecretStore" || each.input.namespace === input.namespace),
  );
  if (found === undefined) ref.lose(`the ${kind} ${name} is not in these files; convert them together`);
  return found;
}

/** The VaultConnections for the stores that the converted bindings use. */
export function writeConnections(stores: readonly Store[], output: Output): void {
  for (const store of stores) {
    const metadata = metadataOf(store.input);
    if (store.provider !== "vault") continue;
    const { input, namespace, spec, from } = store;
    const paths = store.paths.sorted;
    if (paths.length === 0) {
      input.root.lose(
        "no object in these files uses this store, so its paths in Vault are unknown; convert them together",
      );
      continue;
    }
    if (spec["auth"] === undefined) continue;
    for (const each of from ?? []) output.grant({ kind: "VaultConnection", namespace, name: input.name }, each, input);
    const notes = connectionNotes(spec, store.audiences?.length === 0);
    output.add("VaultConnection", { name: input.name, namespace, ...metadata }, { ...spec, paths }, [input], notes);
  }
}
