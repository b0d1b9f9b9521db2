/** The certificate of the metrics server: read from a folder and reloaded when it changes, or created at the start. */
import { generateKeyPairSync, randomBytes, sign, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import type { Log } from "./log.ts";

export interface CertificateAndKey {
  cert: string;
  key: string;
}

const DAY_MS = 86_400_000;
/** As long as controller-runtime's. */
const VALID_DAYS = 365;

// The tags of ASN.1 and the object identifiers that are used, in DER.
const [INTEGER, BIT_STRING, OCTET_STRING, OID, UTF8, UTC_TIME, SEQUENCE, SET] = [2, 3, 4, 6, 12, 23, 48, 49] as const;
const DNS_NAME = 0x82;
const explicit = (tag: number) => 0xa0 + tag;
const oid = (hex: string) => der(OID, Buffer.from(hex, "hex"));
const COMMON_NAME = oid("550403");
const SUBJECT_ALT_NAME = oid("551d11");
const EXTENDED_KEY_USAGE = oid("551d25");
const SERVER_AUTH = oid("2b06010505070301");
const ECDSA_WITH_SHA256 = der(SEQUENCE, oid("2a8648ce3d040302"));

/**
 * Node can't create certificates. This writes one fixed form in DER (RFC 5280), which is smaller than a package for all.
 * Creates a certificate for these DNS names. The first is its subject. It is valid from an hour ago.
 */
export function selfSigned(names: readonly [string, ...string[]], now = Date.now()): CertificateAndKey {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8, Buffer.from(names[0])))));
  const serial = randomBytes(16);
  serial[0] = 0x40 | ((serial[0] ?? 0) & 0x3f); // positive, and no leading zero
  const validity = [now - DAY_MS / 24, now + VALID_DAYS * DAY_MS].map((time) => der(UTC_TIME, utcTime(time)));
  const alternatives = names.map((each) => der(DNS_NAME, Buffer.from(each)));
  const extensions = [
    der(SEQUENCE, SUBJECT_ALT_NAME, der(OCTET_STRING, der(SEQUENCE, ...alternatives))),
    der(SEQUENCE, EXTENDED_KEY_USAGE, der(OCTET_STRING, der(SEQUENCE, SERVER_AUTH))),
  ];
  const toBeSigned = der(
    SEQUENCE,
    der(explicit(0), der(INTEGER, Buffer.of(2))), // version 3
    der(INTEGER, serial),
    ECDSA_WITH_SHA256,
    name,
    der(SEQUENCE, ...validity),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(explicit(3), der(SEQUENCE, ...extensions)),
  );
  const signature = der(BIT_STRING, Buffer.of(0), sign("sha256", toBeSigned, privateKey));
  const certificate = der(SEQUENCE, toBeSigned, ECDSA_WITH_SHA256, signature).toString("base64");
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${certificate.replace(/.{64}/g, "$&\n").trimEnd()}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

/** A value with its tag and its length. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), content]);
  const bytes = length < 0x100 ? Buffer.of(length) : Buffer.of(length >> 8, length & 0xff);
  return Buffer.concat([Buffer.of(tag, 0x80 + bytes.length), bytes, content]);
}

/** `YYMMDDhhmmssZ`: for years from 1950 to 2049. */
const utcTime = (time: number) => Buffer.from(`${new Date(time).toISOString().slice(2, 19).replace(/[-:T]/g, "")}Z`);

/** The kubelet replaces a link when a Secret changes. Reading the files regularly is simpler than watching that. */
const EVERY_MS = 5_000;

export class ServingCertificate {
  readonly #folder: string | undefined;
  readonly #log: Pick<Log, "info" | "error">;
  #current: CertificateAndKey;
  /** Why the files can't be used, if so. */
  #trouble: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** Loads `tls.crt` and `tls.key` from a folder; without a folder, creates a self-signed pair. Throws Error if the files can't be used. */
  static async load(folder: string | undefined, log: Pick<Log, "info" | "error">): Promise<ServingCertificate> {
    const current = folder === undefined ? selfSigned([hostname(), "localhost"]) : await read(folder);
    return new ServingCertificate(folder, current, log);
  }

  private constructor(folder: string | undefined, current: CertificateAndKey, log: Pick<Log, "info" | "error">) {
    this.#folder = folder;
    this.#current = current;
    this.#log = log;
  }

  get current(): CertificateAndKey {
    return this.#current;
  }

  /** When the current certificate expires, in seconds since 1970. */
  get expiresAt(): number {
    return Date.parse(new X509Certificate(this.#current.cert).validTo) / 1_000;
  }

  /** Calls `changed` with each new pair in the folder. */
  follow(changed: (pair: CertificateAndKey) => void): void {
    if (this.#folder !== undefined) this.#timer = setInterval(() => void this.look(changed), EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Keeps the current pair if the files can't be used: the kubelet or the issuer may be about to replace the other file. */
  async look(changed: (pair: CertificateAndKey) => void): Promise<void> {
    try {
      const next = await read(this.#folder as string);
      this.#trouble = undefined;
      if (next.cert === this.#current.cert && next.key === this.#current.key) return;
      this.#current = next;
      changed(next);
      this.#log.info({ folder: this.#folder }, "reloaded the certificate of /metrics");
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      if (error.message === this.#trouble) return;
      this.#trouble = error.message;
      this.#log.error(
        { error: error.message },
        "can't use the changed certificate of /metrics; the former one stays in use",
      );
    }
  }
}

/** Throws Error without any content of the files. */
async function read(folder: string): Promise<CertificateAndKey> {
  try {
    const [cert = "", key = ""] = await Promise.all(
      ["tls.crt", "tls.key"].map((name) => readFile(join(folder, name), "utf8")),
    );
    createSecureContext({ cert, key });
    return { cert, key };
  } catch (error) {
    const { code = "not PEM" } = error as { code?: string };
    const why = code === "ENOENT" ? "tls.crt or tls.key does not exist" : code;
    throw new Error(
      `can't use the certificate in ${folder}: ${why}; store a matching pair of tls.crt and tls.key there, as in a Secret of type kubernetes.io/tls`,
    );
  }
}
