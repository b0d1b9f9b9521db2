/** Classifies why a request to Vault has no usable answer. Drops the texts of OpenSSL, Node and the server. */

export type FailureKind =
  | "timeout"
  | "refused"
  /** No route to the server. */
  | "unreachable"
  /** Its name has no address. */
  | "name"
  | "broken"
  | "tls"
  | "redirects"
  | "tooLarge"
  | "notJson"
  /** The connection was closed by Inlay. */
  | "closed";

/** The problem of a certificate. */
export type Distrust = "authority" | "expired" | "early" | "name" | "handshake" | "other";

const KINDS: Record<string, FailureKind> = {
  ECONNREFUSED: "refused",
  ETIMEDOUT: "timeout",
  UND_ERR_CONNECT_TIMEOUT: "timeout",
  EHOSTUNREACH: "unreachable",
  ENETUNREACH: "unreachable",
  ENETDOWN: "unreachable",
  EHOSTDOWN: "unreachable",
  ENOTFOUND: "name",
  EAI_AGAIN: "name",
  EAI_FAIL: "name",
  EAI_NODATA: "name",
  UND_ERR_DESTROYED: "closed",
  UND_ERR_CLOSED: "closed",
};
const CERTIFICATES: Record<string, Distrust> = {
  CERT_HAS_EXPIRED: "expired",
  CERT_NOT_YET_VALID: "early",
  ERR_TLS_CERT_ALTNAME_INVALID: "name",
  HOSTNAME_MISMATCH: "name",
  DEPTH_ZERO_SELF_SIGNED_CERT: "authority",
  SELF_SIGNED_CERT_IN_CHAIN: "authority",
  UNABLE_TO_GET_ISSUER_CERT: "authority",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "authority",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "authority",
};
const OTHER_CERTIFICATES = /CERT|CRL|^INVALID_(?:CA|PURPOSE)$|^PATH_LENGTH_EXCEEDED$/;
const HANDSHAKES = /^(?:ERR_SSL_|ERR_TLS_|EPROTO$)/;

export class HttpFailure extends Error {
  override readonly name = "HttpFailure";
  readonly kind: FailureKind;
  readonly distrust: Distrust | undefined;
  constructor(kind: FailureKind, distrust?: Distrust) {
    super(kind);
    this.kind = kind;
    this.distrust = distrust;
  }

  /** The label in the metrics. */
  get code(): string {
    return this.kind === "timeout" || this.kind === "refused" || this.kind === "tls" ? this.kind : "error";
  }

  /** Classifies an error of undici, Node or OpenSSL. */
  static of(error: unknown): HttpFailure {
    if (error instanceof HttpFailure) return error;
    const { code = "", errors = [] } = error as { code?: string; errors?: { code?: string }[] };
    // A name may have several addresses. The server refuses only if all of them refuse.
    const other = errors.find((each) => each.code !== code)?.code;
    const distrust = CERTIFICATES[code];
    if (distrust !== undefined) return new HttpFailure("tls", distrust);
    if (HANDSHAKES.test(code)) return new HttpFailure("tls", "handshake");
    if (OTHER_CERTIFICATES.test(code)) return new HttpFailure("tls", "other");
    return new HttpFailure(KINDS[other ?? code] ?? "broken");
  }
}

/** Whether to repeat a request: the server had closed a connection that was kept alive. */
export function isBroken(error: unknown): boolean {
  return ["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"].includes((error as { code?: string }).code ?? "");
}
