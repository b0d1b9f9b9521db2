/**
 * Converts answers and failures of Vault to Problems. Their messages contain the place, what is wrong and what to do. They never contain
 * text of Vault or OpenSSL, which may quote values.
 */
import { hostOf } from "../api/vault-addresses.ts";
import { catalogue, Problem, type ProblemParts, type Reason, type RetryPolicy } from "../apimachinery/problem.ts";
import { type Distrust, HttpFailure } from "./http-failure.ts";

/** The longest Retry-After that is respected. */
const MAX_RETRY_AFTER_MS = 10 * 60_000;

/** The parts of a message that describe the request. */
export interface Asked {
  /** Such as kv/registry/s3. */
  readonly place: string;
  readonly server: URL;
  readonly timeoutMs: number;
}

/** The message for a reader of a connection whose settings have changed. */
export const REPLACED = "the connection was replaced; Inlay retries over the new one";

/** A Problem with its place in the message, and the time of the next request if it is known. */
export class VaultProblem extends Problem {
  override readonly retryAfterMs: number | undefined;
  constructor(reason: Reason, parts: string | ProblemParts, retryAfterMs?: number, retryPolicy?: RetryPolicy) {
    super(reason, parts, retryPolicy);
    this.retryAfterMs = retryAfterMs === undefined ? undefined : Math.min(retryAfterMs, MAX_RETRY_AFTER_MS);
  }
}

const DISTRUST: Record<Distrust, string> = {
  authority: "its certificate is not signed by a trusted authority; set tls.ca to the certificate of the server's CA",
  expired: "its certificate has expired; renew the certificate of the server",
  early: "its certificate is not valid yet; check the clocks of the server and of the node",
  name: "its certificate is for another name; set tls.serverName to a name in the certificate, or correct the address",
  handshake: "the TLS handshake fails; check that the port of the address serves TLS 1.2 or later",
  other: "its certificate can't be used; check the certificates of the server, and tls.ca",
};

/** Converts an error of a request. Rethrows an error that is neither an HttpFailure nor a Problem, because it is a bug. */
export function failed(error: unknown, { place, server, timeoutMs }: Asked): Problem {
  if (error instanceof VaultProblem) return error;
  if (error instanceof Problem) return error.within(place).with({ retryPolicy: catalogue[error.reason].retry });
  if (!(error instanceof HttpFailure)) throw error;
  const { kind, distrust = "other" } = error;
  const { host } = server;
  const at = [place];
  if (kind === "tls")
    return new Problem("VaultUntrusted", { at, what: `${host} is not trusted: ${DISTRUST[distrust]}` });
  if (kind === "closed") return new Problem("ConnectionNotReady", { at, what: REPLACED });
  const texts: Record<typeof kind, string> = {
    timeout: `${host} did not answer within ${timeoutMs / 1_000}s; check that it runs and that Inlay can connect to it, or increase timeout`,
    refused: `${host} refuses connections; check that the server runs, and its port`,
    unreachable: `there is no route to ${host}; check the address and the network policies`,
    name: `the name ${hostOf(server)} has no address; correct it, or check the DNS of the cluster`,
    broken: `${host} ended the connection without an answer; check that it is Vault, and its log`,
    redirects: `${host} redirects in a way that Inlay does not follow; set address to the server itself`,
    tooLarge: `the answer of ${host} is larger than 1 MiB; store less at one path`,
    notJson: `the answer of ${host} is not from Vault; check that the address is that of a Vault server`,
  };
  return new VaultProblem("VaultUnavailable", { at, what: texts[kind] });
}

/** The problem of an answer that is not from Vault. */
export const notVault = (asked: Asked): Problem => failed(new HttpFailure("notJson"), asked);

/** An answer with a status of its own. */
interface Refusal {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  says(pattern: RegExp): boolean;
}

/** Converts a status that is neither a success nor handled by the caller. */
export function refused(reply: Refusal, { place, server }: Asked): Problem {
  const { status, retryAfterMs } = reply;
  const of = (reason: Reason, what: string) => new VaultProblem(reason, { at: [place], what }, retryAfterMs);
  const unavailable = (what: string) => of("VaultUnavailable", `${server.host} ${what}`);
  if (status === 403) return of("VaultDenied", "Vault denies access; check the policies of the login");
  if (status === 429)
    return of("VaultThrottled", `${server.host} limits requests; increase its quota, or increase refresh`);
  if (status === 503 && reply.says(/\bsealed\b/i)) return of("VaultSealed", `${server.host} is sealed; unseal it`);
  if (status === 472) return unavailable("is a disaster recovery secondary; set address to the primary");
  if (status === 473 || reply.says(/active cluster node not found|standby/i))
    return unavailable("is a standby without an active server; check that the cluster has an active server");
  if (status === 404 || status === 405)
    return unavailable(`has no such operation (status ${status}); check the mount, and that the server is Vault`);
  if (status >= 500) return unavailable(`answered with status ${status}; check the log of the server`);
  return unavailable(`did not accept the request (status ${status}); check the mount, the path and the namespace`);
}
