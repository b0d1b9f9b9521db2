/**
 * Requests tokens of ServiceAccounts (TokenRequest), each as the account itself: RBAC must allow the account to create
 * its own tokens. A token is short-lived, bound to no object, and kept only by the caller.
 */
import { stringifyJson } from "../apimachinery/json.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import {
  AccessDenied,
  accountNotFound,
  mayNotImpersonate,
  OPEN_ACCOUNT,
  refusal,
  tokenAccess,
} from "./access-error.ts";
import { ApiError, isNotFound } from "./api-error.ts";
import { pathOf } from "./client.ts";
import { describeIdentity, type Identity } from "./identity.ts";
import type { RequestSender } from "./transport.ts";

/** The shortest lifetime that the API server grants. */
const LIFETIME_SECONDS = 600;
/** The manifests contain this role for accounts named inlay. */
const LOGIN_ROLE = "inlay-vault-login";

interface Sender {
  transport: RequestSender;
  /** Whether this replica may send requests now. */
  mayBeSent(): boolean;
  /** The kind of the role inlay-vault-login: in an installation for one namespace, it is a Role. */
  loginRole: "clusterrole" | "role";
}

/** A token of the account for these audiences, valid for ten minutes. Throws Problem. */
export async function requestToken(
  sender: Sender,
  identity: Identity,
  audiences: readonly string[],
): Promise<SecretValue<string>> {
  const { transport, mayBeSent } = sender;
  const [, , namespace = "", name = ""] = identity.split(":");
  const ref: ObjectRef = { resource: SERVICE_ACCOUNTS, namespace, name };
  const spec = { audiences, expirationSeconds: LIFETIME_SECONDS };
  try {
    const { status } = await transport.request<{ status: { token: string } }>({
      method: "POST",
      path: pathOf(SERVICE_ACCOUNTS, namespace, name, "token"),
      identity,
      body: stringifyJson({ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec }),
      mayBeSent,
    });
    return new SecretValue(status.token);
  } catch (error) {
    throw problemOf(error, sender, identity, ref, audiences);
  }
}

function problemOf(
  error: unknown,
  sender: Sender,
  identity: Identity,
  ref: ObjectRef,
  audiences: readonly string[],
): Problem {
  if (!(error instanceof ApiError)) throw error;
  if (error.refusesImpersonation) return mayNotImpersonate(identity);
  if (error.status === 422 || error.isDenied) {
    const what = `admission refuses a token of ${describeIdentity(identity)} for the audiences ${audiences.join(", ")}`;
    const message = `${what}; add the missing audiences to variables.audiences of the ValidatingAdmissionPolicy inlay-account-tokens, or correct spec.auth.kubernetes.audiences of the VaultConnection`;
    return new Problem("Rejected", message);
  }
  if (error.status === 403) return forbidden(sender, identity, ref);
  if (isNotFound(error)) return accountNotFound(identity, "which logs in to Vault");
  return refusal(error, { identity, ref, verbs: ["create"] }, "create");
}

function forbidden({ loginRole }: Sender, identity: Identity, account: ObjectRef): Problem {
  const { namespace, name } = account;
  const isOpen = name === OPEN_ACCOUNT;
  const [kind, role] = isOpen ? [loginRole, LOGIN_ROLE] : (["role", `${name}-vault-login`] as const);
  const bind = `kubectl create rolebinding ${role} -n ${namespace} --${kind}=${role} --serviceaccount=${namespace}:${name}`;
  const make = `kubectl create role ${role} -n ${namespace} --verb=create --resource=serviceaccounts/token --resource-name=${name}`;
  const what = `${describeIdentity(identity)} may not create the token with which it logs in to Vault`;
  return new AccessDenied({ identity, ...tokenAccess(account) }, what, isOpen ? bind : `${make} && ${bind}`);
}
