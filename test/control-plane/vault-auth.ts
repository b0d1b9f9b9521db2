/**
 * Enables logins of accounts at a Vault server of the tests: by Kubernetes auth, which asks a control plane to review each token,
 * and by AppRole. Writes the roles.
 */
import { stringify } from "yaml";
import { registerSecret } from "../controller/leak-detector.ts";
import type { ControlPlane } from "./control-plane.ts";
import type { Vault } from "./vault.ts";

export interface AppRoleOptions {
  policies: string[];
  /** The time to live of a login, such as `10m`, which is the default. */
  ttl?: string;
  /** The path of the auth method, by default its type. */
  mount?: string;
  /** More fields of the role in Vault's API, such as `token_type`. */
  fields?: object;
}

export interface KubernetesRoleOptions extends AppRoleOptions {
  /** The names and namespaces of the ServiceAccounts that may log in. */
  accounts: string[];
  namespaces: string[];
  /** Without an audience, Vault accepts a token for any. */
  audience?: string;
}

export interface AppRole {
  roleID: string;
  /** Creates another secret ID of the role. */
  newSecretID(): Promise<string>;
}

/** The account with which Vault reviews tokens. It has no other permission. */
const REVIEWER = { namespace: "vault", name: "vault-token-reviewer" };

/** Allows accounts of a control plane to log in, as far as roles permit it. */
export async function enableKubernetesAuth(
  vault: Vault,
  controlPlane: ControlPlane,
  { mount = "kubernetes", url = controlPlane.url }: { mount?: string; url?: string } = {},
): Promise<void> {
  await vault.api("POST", `sys/auth/${mount}`, { type: "kubernetes" });
  await vault.api("POST", `auth/${mount}/config`, {
    kubernetes_host: url,
    kubernetes_ca_cert: controlPlane.caData,
    token_reviewer_jwt: await reviewerToken(controlPlane),
    // This Vault runs outside of pods.
    disable_local_ca_jwt: true,
  });
}

export async function writeKubernetesRole(vault: Vault, name: string, options: KubernetesRoleOptions): Promise<void> {
  const { accounts, namespaces, policies, audience, ttl = "10m", mount = "kubernetes", fields } = options;
  await vault.api("POST", `auth/${mount}/role/${name}`, {
    bound_service_account_names: accounts,
    bound_service_account_namespaces: namespaces,
    ...(audience !== undefined && { audience }),
    token_policies: policies,
    token_ttl: ttl,
    ...fields,
  });
}

export async function enableAppRole(vault: Vault, mount = "approle"): Promise<void> {
  await vault.api("POST", `sys/auth/${mount}`, { type: "approle" });
}

export async function writeAppRole(
  vault: Vault,
  name: string,
  { policies, ttl = "10m", mount = "approle", fields }: AppRoleOptions,
): Promise<AppRole> {
  const path = `auth/${mount}/role/${name}`;
  await vault.api("POST", path, { token_policies: policies, token_ttl: ttl, ...fields });
  const { data } = await vault.api("GET", `${path}/role-id`);
  return {
    roleID: data.role_id,
    newSecretID: async () => registerSecret((await vault.api("POST", `${path}/secret-id`)).data.secret_id),
  };
}

async function reviewerToken(controlPlane: ControlPlane): Promise<string> {
  const { namespace, name } = REVIEWER;
  const role = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name };
  const rules = [{ apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] }];
  const rbac = "rbac.authorization.k8s.io/v1";
  const manifests = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } },
    { apiVersion: rbac, kind: "ClusterRole", metadata: { name }, rules },
    {
      apiVersion: rbac,
      kind: "ClusterRoleBinding",
      metadata: { name },
      roleRef: role,
      subjects: [{ kind: "ServiceAccount", name, namespace }],
    },
  ];
  const stdin = manifests.map((each) => stringify(each)).join("---\n");
  await controlPlane.kubectlWith({ stdin }, "apply", "--server-side", "--filename=-");
  const { stdout } = await controlPlane.kubectl("create", "token", name, `--namespace=${namespace}`, "--duration=24h");
  return registerSecret(stdout.trim());
}
