/**
 * Errors of the API server. They show only facts that can't contain a value of a Secret: status code, reason, the paths
 * and managers of conflicts, and the names of webhooks and policies. The server's message quotes values, so it is
 * dropped.
 */
import { SecretValue } from "../apimachinery/secret-value.ts";
import type { Identity } from "./identity.ts";
import { type Denial, denialIn, type Failure, failureIn, refusesDryRun } from "./server-text.ts";

/** The parts of a request that RBAC decides on. */
export interface Asked {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  identity: Identity;
}

/** The verbs that a method may have. The first one is assumed if the caller means another. */
const VERBS: Record<Asked["method"], readonly string[]> = {
  GET: ["get", "list", "watch"],
  POST: ["create"],
  PUT: ["update"],
  // An apply may create the object.
  PATCH: ["patch", "create"],
  DELETE: ["delete"],
};

/** The verb of the request: the one that the caller means, if the request can have it. */
export function verbOf({ method }: Asked, meant: string): string {
  const [first = meant] = VERBS[method];
  return VERBS[method].includes(meant) ? meant : first;
}

interface AskedObject {
  resource: { group: string; version: string; plural: string };
  namespace: string | undefined;
  name?: string;
}

/** The object of a request; undefined if its path is none of a resource. */
export function objectOf(path: string): AskedObject | undefined {
  const parts =
    /^\/(?:api|apis\/([^/]+))\/([^/]+)(?:\/namespaces\/([^/]+)(?=\/))?\/([^/?]+)(?:\/([^/?]+))?(?:\/([^/?]+))?/.exec(
      path,
    );
  if (parts === null) return undefined;
  const [, group = "", version = "", namespace, kind = "", name, subresource] = parts;
  const plural = subresource === undefined ? kind : `${kind}/${subresource}`;
  const named = name === undefined ? {} : { name: decodeURIComponent(name) };
  return { resource: { group, version, plural }, namespace, ...named };
}

/**
 * How the API server and authors of CRDs say that a field is immutable. Applied to the message without quoted values.
 */
const IMMUTABLE =
  /\bimmutable\b|\boldSelf\b|may not change once set|(?:can ?not|can't|must not|may not) be (?:changed|modified|updated)|updates to .* are forbidden/i;
/** An unclosed quote extends to the end of the text, so that the match takes one pass. */
const QUOTED = /"(?:[^"\\]|\\[\s\S])*(?:"|\\?$)/g;
/** How much of a message without values is read, in characters: messages of CRDs, policies and webhooks may be long. */
const MAX_MESSAGE = 4096;
/** The message of a server-side apply, with status 500, if a value does not have the type of its field. */
const MISREAD = /^failed to (?:create typed patch object|convert new object) /;

/** The message for a missing permission. Any other 403 comes from admission: a webhook, a policy, a quota. */
const NO_RIGHT = / is forbidden: User "/;

/** The message if the permission to impersonate the account is missing, not a permission of the account. */
const NO_IMPERSONATION = / cannot impersonate resource "serviceaccounts" /;

/** etcd's message for an object that is larger than it stores, with status 500, from the server and from its client. */
const TOO_LARGE = /\brequest is too large\b|\bmessage larger than max\b/;

/** Node's codes for certificates that it rejects, with what is wrong and how to fix it. */
const UNTRUSTED: Record<string, string> = {
  CERT_HAS_EXPIRED: "the server's certificate has expired: renew it",
  CERT_NOT_YET_VALID: "the server's certificate is not valid yet: check the clocks",
  ERR_TLS_CERT_ALTNAME_INVALID:
    "the server's certificate is for another name: correct the kubeconfig's server, or set its tls-server-name",
};
for (const code of [
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
])
  UNTRUSTED[code] = "the configured CA did not sign the server's certificate: correct certificate-authority";

export interface FieldManagerConflict {
  manager: string;
  /** As the API server writes it, such as `.spec.replicas`. */
  path: string;
}

/** Why a field is not valid. Both texts may contain values, and the field may contain keys of maps. */
export interface Cause {
  /** Such as `FieldValueRequired`. */
  reason: string;
  field: string;
  message: string;
}

/** The details of a `Status`. */
interface Details {
  kind?: string;
  name?: string;
  causes?: { reason?: string; message?: string; field?: string }[];
}

/** `status` is 0 if there was no answer: connection refused or cut, or the deadline passed. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  /** `NotFound`, `Conflict`, `Invalid`, …; for status 0 the client's own code. */
  readonly reason: string;
  readonly conflicts: readonly FieldManagerConflict[];
  /** The fields whose change was refused because they are immutable. Sealed: they contain keys of maps. */
  readonly immutable: SecretValue<readonly string[]>;
  /** The fields that are not valid. Sealed, and never to be printed. */
  readonly causes: SecretValue<readonly Cause[]>;
  /** Not an outage, but a failure that lasts until it is fixed. */
  readonly failure: Failure | undefined;
  /** The policy or webhook that denied the request. */
  readonly denial: Denial | undefined;
  /** A webhook with side effects does not support dry runs. */
  readonly refusesDryRun: boolean;
  /** A value does not have the type of its field. */
  readonly isMisread: boolean;
  /** The account has the permission, but admission refused the request. */
  readonly isDenied: boolean;
  /** Inlay may not impersonate the ServiceAccount. */
  readonly refusesImpersonation: boolean;
  /** The namespace is being deleted, so nothing can be created in it. */
  readonly namespaceEnds: boolean;
  /** The object, or the request, is larger than the API server accepts. */
  readonly isTooLarge: boolean;
  /** The resource and name in the server's refusal. If impersonation is refused, these are the account's. */
  readonly subject: { resource: string; name: string };
  readonly retryAfterSeconds: number | undefined;
  /** The request that was refused, which may be another one than its caller means: a write first reads. */
  asked: Asked | undefined;

  constructor(what: string, status: number, reason: string, body?: unknown, retryAfterSeconds?: number) {
    const untrusted = status === 0 ? UNTRUSTED[reason] : undefined;
    const came = reason === "NotLeading" ? "not sent," : status === 0 ? "no answer" : status;
    super(`${what}: ${came} ${reason}${untrusted === undefined ? "" : `, ${untrusted}`}`);
    this.status = status;
    this.reason = reason;
    this.retryAfterSeconds = retryAfterSeconds;
    const given = (body as { message?: unknown } | undefined)?.message;
    const text = typeof given === "string" ? given : "";
    const says = (pattern: RegExp) => pattern.test(text);
    this.failure = failureIn(status, text);
    this.denial = status === 0 ? undefined : denialIn(text);
    this.refusesDryRun = status === 400 && refusesDryRun(text);
    this.isMisread = status === 500 && this.failure === undefined && says(MISREAD);
    this.isDenied = status === 403 && says(/./) && !says(NO_RIGHT);
    this.isTooLarge = status === 413 || (status === 500 && says(TOO_LARGE));
    this.refusesImpersonation = status === 403 && says(NO_IMPERSONATION);
    const { kind = "", name = "", causes = [] } = (body as { details?: Details } | undefined)?.details ?? {};
    this.subject = { resource: kind, name };
    this.causes = new SecretValue(
      causes.flatMap(({ reason: why = "", message = "", field }) =>
        status === 422 && field !== undefined ? [{ reason: why, field, message: message.slice(-MAX_MESSAGE) }] : [],
      ),
    );
    this.immutable = new SecretValue(
      causes.flatMap(({ message: why = "", field = "" }) =>
        status === 422 && IMMUTABLE.test(why.replaceAll(QUOTED, "").slice(0, MAX_MESSAGE)) ? [field] : [],
      ),
    );
    this.namespaceEnds = causes.some(({ reason: why }) => why === "NamespaceTerminating");
    this.conflicts = causes
      .filter((cause) => cause.reason === "FieldManagerConflict")
      .map(({ message: why = "", field: path = "" }) => ({
        manager: /^conflict with "([^"]*)"/.exec(why)?.[1] ?? "another manager",
        path,
      }));
  }

  /** All that decides the advice on a failed stream, as a text to compare. */
  get essence(): string {
    return [this.status, this.reason, this.failure?.of, this.refusesImpersonation].join();
  }

  /** Builds an error from an HTTP answer whose body should be a `Status`. */
  static fromAnswer(what: string, status: number, text: string, retryAfter?: string): ApiError {
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      // A proxy before the API server may answer with other text.
    }
    const given = (body as { reason?: unknown } | undefined)?.reason;
    const reason = typeof given === "string" && /^[A-Za-z]+$/.test(given) ? given : "Error";
    const seconds = Number.parseInt(retryAfter ?? "", 10);
    return new ApiError(what, status, reason, body, Number.isNaN(seconds) ? undefined : seconds);
  }
}

/** Whether the object does not exist. For a kind that is not served, the API server gives another reason. */
export function isNotFound(error: unknown): error is ApiError {
  return isStatus(error, 404) && error.reason === "NotFound";
}

/**
 * Whether the object has changed since it was read, or another object has its name. In the second case the API server
 * answers an apply with 422: metadata.uid is immutable.
 */
export function isOutdated(error: unknown): error is ApiError {
  return isStatus(error, 409) || (isStatus(error, 422) && error.immutable.reveal().includes("metadata.uid"));
}

/** Whether `error` is an answer of the API server with that status code. */
export function isStatus(error: unknown, status: number): error is ApiError {
  return error instanceof ApiError && error.status === status;
}

/** Undefined if the API server answers with 404: also if it does not serve the kind. Throws ApiError. */
export async function ifFound<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isStatus(error, 404)) return undefined;
    throw error;
  }
}
