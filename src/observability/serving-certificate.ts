/** The certificate of the metrics server: read from a folder and reloaded when it changes, or created at the start. */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import type { Log } from "./log.ts";
import { type CertificateAndKey, selfSigned } from "./self-signed.ts";

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
