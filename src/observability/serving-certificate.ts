/**
 * The certificate of the metrics server: that of a folder, followed while it changes, or one that is made at the start and that
 * nothing else knows.
 */
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import type { Log } from "./log.ts";
import { type CertificateAndKey, selfSigned } from "./self-signed.ts";

/** A kubelet swaps a link to a folder when a Secret changes, which nothing tells of as simply as reading. */
const EVERY_MS = 5_000;

export class ServingCertificate {
  readonly #folder: string | undefined;
  readonly #log: Pick<Log, "info" | "error">;
  #current: CertificateAndKey;
  /** Why the files can't be used, if they can't be. */
  #trouble: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** Of `tls.crt` and `tls.key` in a folder; without one, self-signed. Throws Error if the files can't be used. */
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

  /** Calls `changed` with each other pair that the folder has from now on. */
  follow(changed: (pair: CertificateAndKey) => void): void {
    if (this.#folder !== undefined) this.#timer = setInterval(() => void this.look(changed), EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Files that can't be used change nothing: a kubelet or an issuer may be about to replace the other one. */
  async look(changed: (pair: CertificateAndKey) => void): Promise<void> {
    try {
      const next = await read(this.#folder as string);
      this.#trouble = undefined;
      if (next.cert === this.#current.cert && next.key === this.#current.key) return;
      this.#current = next;
      changed(next);
      this.#log.info({ folder: this.#folder }, "/metrics is served with the certificate as it is now");
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      if (error.message === this.#trouble) return;
      this.#trouble = error.message;
      this.#log.error({ error: error.message }, "/metrics goes on with the certificate that it had");
    }
  }
}

/** Throws Error without a word of what the files hold. */
async function read(folder: string): Promise<CertificateAndKey> {
  try {
    const [cert = "", key = ""] = await Promise.all(
      ["tls.crt", "tls.key"].map((name) => readFile(join(folder, name), "utf8")),
    );
    createSecureContext({ cert, key });
    return { cert, key };
  } catch (error) {
    const { code = "not PEM" } = error as { code?: string };
    throw new Error(
      `the certificate in ${folder} can't be used: ${code}; put tls.crt and tls.key there, which belong together, as a Secret of type kubernetes.io/tls has them`,
    );
  }
}
