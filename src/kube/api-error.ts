/**
 * What the API server answered instead of what was asked. Only parts that can't hold a value of a Secret are kept:
 * status code, reason, the paths and managers of conflicts. The server's message, which quotes values, is dropped here.
 */
import { SecretValue } from "../apimachinery/secret-value.ts";

/** How the API server and the authors of CRDs say that a field keeps its value, beside the value itself. */
const IMMUTABLE =
  /\bimmutable\b|\boldSelf\b|may not change once set|(?:can ?not|can't|must not|may not) be (?:changed|modified|updated)|updates to .* are forbidden/i;
/** A quote that does not end is one to the end of the text: no text takes more than one pass. */
const QUOTED = /"(?:[^"\\]|\\[\s\S])*(?:"|\\?$)/g;
/** Of what a message says beside the value, in characters: a CRD, a policy or a webhook may say a lot. */
const MAX_MESSAGE = 4096;
/** What a server-side apply is answered, with 500, when a value is not of its field's type. */
const MISREAD = /^failed to (?:create typed patch object|convert new object) /;

/** How a right that is missing is told; what else is answered with 403 comes from admission: a webhook, a policy, a quota. */
const NO_RIGHT = / is forbidden: User "/;

/** What the API server says when the right to act as the account is missing, and not a right of the account. */
const NO_IMPERSONATION = / cannot impersonate resource "serviceaccounts" /;

/** What Node calls a certificate that it does not take, and what to do about it. */
const UNTRUSTED: Record<string, string> = {
  CERT_HAS_EXPIRED: "the server's certificate has expired",
  CERT_NOT_YET_VALID: "the server's certificate is not valid yet: is the clock right?",
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
  UNTRUSTED[code] = "the CA that is given did not sign the server's certificate: correct certificate-authority";

export interface FieldManagerConflict {
  manager: string;
  /** As the API server writes it, such as `.spec.replicas`. */
  path: string;
}

/** What a `Status` says in detail. */
interface Details {
  kind?: string;
  name?: string;
  causes?: { reason?: string; message?: string; field?: string }[];
}

/** `status` is 0 when no answer came at all: connection refused or cut, or the deadline passed. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  /** `NotFound`, `Conflict`, `Invalid`, …; for status 0 the client's own code. */
  readonly reason: string;
  readonly conflicts: readonly FieldManagerConflict[];
  /** The fields that were refused because they can't be changed any more. Sealed: keys of maps stand in them. */
  readonly immutable: SecretValue<readonly string[]>;
  /** A value is not of the type that the API server has for its field. */
  readonly isMisread: boolean;
  /** The account may do what was asked, and admission does not let it in. */
  readonly isDenied: boolean;
  /** Inlay may not act as the ServiceAccount as which it asked. */
  readonly refusesImpersonation: boolean;
  /** Nothing is made in a namespace that is being deleted. */
  readonly namespaceEnds: boolean;
  /** The resource and name that the server's refusal speaks of: not the requested ones when impersonation is refused. */
  readonly subject: { resource: string; name: string };
  readonly retryAfterSeconds: number | undefined;

  constructor(what: string, status: number, reason: string, body?: unknown, retryAfterSeconds?: number) {
    const untrusted = status === 0 ? UNTRUSTED[reason] : undefined;
    const came = reason === "NotLeading" ? "not sent," : status === 0 ? "no answer" : status;
    super(`${what}: ${came} ${reason}${untrusted === undefined ? "" : `, ${untrusted}`}`);
    this.status = status;
    this.reason = reason;
    this.retryAfterSeconds = retryAfterSeconds;
    const message = (body as { message?: unknown } | undefined)?.message;
    const says = (pattern: RegExp) => typeof message === "string" && pattern.test(message);
    this.isMisread = status === 500 && says(MISREAD);
    this.isDenied = status === 403 && says(/./) && !says(NO_RIGHT);
    this.refusesImpersonation = status === 403 && says(NO_IMPERSONATION);
    const { kind = "", name = "", causes = [] } = (body as { details?: Details } | undefined)?.details ?? {};
    this.subject = { resource: kind, name };
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

  /** Builds one from an HTTP answer whose body is, or should be, a `Status`. */
  static fromAnswer(what: string, status: number, text: string, retryAfter?: string): ApiError {
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      // Something between us and the API server may answer in words of its own.
    }
    const given = (body as { reason?: unknown } | undefined)?.reason;
    const reason = typeof given === "string" && /^[A-Za-z]+$/.test(given) ? given : "Error";
    const seconds = Number.parseInt(retryAfter ?? "", 10);
    return new ApiError(what, status, reason, body, Number.isNaN(seconds) ? undefined : seconds);
  }
}

/** Whether `error` says that the very object is not there; a kind that is not served has no such reason. */
export function isNotFound(error: unknown): error is ApiError {
  return isStatus(error, 404) && error.reason === "NotFound";
}

/**
 * Whether the object is not the one that a write is for: it has changed, or another one has its name. To an apply with another uid the
 * API server says, unless the version differs too, that the uid is immutable.
 */
export function isOutdated(error: unknown): error is ApiError {
  return isStatus(error, 409) || (isStatus(error, 422) && error.immutable.reveal().includes("metadata.uid"));
}

/** Whether `error` is the API server's answer with that status code. */
export function isStatus(error: unknown, status: number): error is ApiError {
  return error instanceof ApiError && error.status === status;
}
