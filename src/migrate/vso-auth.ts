/** Converts VaultAuths and VaultConnections of the Vault Secrets Operator to VaultConnections of Inlay. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import type { Input } from "./migration.ts";
import { compact, withoutLastSlashes, withoutSlashes } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

/** How the bindings of a VaultAuth log in. */
export interface Login {
  readonly auth: JsonObject | undefined;
  /** The ServiceAccount that logs in. */
  readonly account: string | undefined;
  /** The namespace in Vault. */
  readonly namespace: string | undefined;
  /** The namespaces that may use the VaultAuth, besides its own. */
  readonly allowed: readonly string[];
  /** The server: `namespace/name`, a name, or undefined for the default. */
  readonly server: string | undefined;
  readonly notes: readonly string[];
}

const SEND_NO = "Inlay sends no such headers or parameters; check whether Vault needs them";
const NO_LOGIN = "Inlay logs in with Kubernetes auth, an AppRole or a token; write auth of the VaultConnection by hand";
const ROLE = /^[A-Za-z0-9_.-]{1,256}$/;
const AUDIENCES = ["vault", "openbao"];

export function loginOf({ root }: Input): Login {
  const spec = root.field("spec");
  const method = spec.field("method").text();
  spec.field("headers").refuse(SEND_NO);
  spec.field("params").refuse(SEND_NO);
  // Inlay stores no clients.
  spec.field("storageEncryption").ignore();
  spec
    .field("vaultAuthGlobalRef")
    .refuse("write the fields of the VaultAuthGlobal into this VaultAuth, and convert again");
  const mount = spec.field("mount").text();
  const namespace = spec.field("namespace").text();
  const rest = {
    namespace: namespace === undefined ? undefined : withoutSlashes(namespace),
    allowed: spec.field("allowedNamespaces").texts(),
    server: spec.field("vaultConnectionRef").text(),
  };
  const path = mount === undefined ? {} : { mount: withoutSlashes(mount).replace(/^auth\//, "") };
  const { auth, account, notes } =
    method === "kubernetes"
      ? kubernetes(spec.field("kubernetes"), path)
      : method === "appRole"
        ? appRole(spec.field("appRole"), path)
        : other(spec, method);
  return { auth, account, notes, ...rest };
}

type Method = Pick<Login, "auth" | "account" | "notes">;

function kubernetes(method: Tracked, path: JsonObject): Method {
  const role = method.field("role").text() ?? "";
  if (!ROLE.test(role))
    method.field("role").lose("Inlay needs a role of letters, digits, _, . and -; write auth.kubernetes.role by hand");
  const audiences = method.field("audiences").texts();
  // Inlay's tokens are valid for 10 minutes.
  method.field("tokenExpirationSeconds").ignore();
  const unusual = audiences.filter((each) => !AUDIENCES.includes(each));
  return {
    auth: {
      kubernetes: { ...path, role: ROLE.test(role) ? role : "inlay", ...(audiences.length > 0 && { audiences }) },
    },
    account: method.field("serviceAccount").text(),
    notes: [
      ...(audiences.length === 0
        ? ["Set audience=vault in the role in Vault: Inlay logs in with tokens for that audience."]
        : []),
      ...(unusual.length > 0
        ? [`Add the audience ${unusual.join(", ")} to the policy deploy/policies/tokens.yaml.`]
        : []),
    ],
  };
}

function appRole(method: Tracked, path: JsonObject): Method {
  const roleID = method.field("roleId").text();
  const name = method.field("secretRef").text();
  if (roleID === undefined || name === undefined) method.lose("needs roleId and secretRef; write auth.appRole by hand");
  const secretID = { secret: { name: name ?? "approle", key: "id" } };
  return { auth: { appRole: { ...path, roleID: roleID ?? "unknown", secretID } }, account: undefined, notes: [] };
}

function other(spec: Tracked, method = "none"): Method {
  const field = spec.field(method);
  if (field.exists) field.refuse(NO_LOGIN);
  else spec.field("method").lose(NO_LOGIN);
  return { auth: undefined, account: undefined, notes: [] };
}

/** The fields of a VaultConnection about the server. */
export function serverOf({ root }: Input): JsonObject {
  const spec = root.field("spec");
  const skips = spec.field("skipTLSVerify");
  if (skips.flag() === true)
    skips.lose(
      "Inlay always verifies the certificate of the server; set tls.ca of the VaultConnection to its authority",
    );
  spec.field("headers").refuse(SEND_NO);
  const ca = spec.field("caCertSecretRef").text();
  const serverName = spec.field("tlsServerName").text();
  const tls = compact({ ca: ca === undefined ? undefined : { secret: { name: ca, key: "ca.crt" } }, serverName });
  const timeout = spec.field("timeout").text();
  return compact({
    address: withoutLastSlashes(spec.field("address").text() ?? "") || undefined,
    tls: Object.keys(tls).length > 0 ? tls : undefined,
    timeout,
  });
}
