/**
 * TLS contexts by their certificates, made when a connection is opened. A context takes milliseconds, and 20 for a usual bundle of all
 * public authorities, so connections with the same certificates share it.
 */
import { createSecureContext, type SecureContext } from "node:tls";

/** How many are kept after their use, and for how many characters of certificates. */
const MAX_KEPT = 64;
const MAX_CHARACTERS = 4 * 1024 ** 2;

export class Contexts {
  readonly #make: (ca: string | undefined) => SecureContext;
  /** By certificates, in PEM. The most recently used are at the end. */
  readonly #kept = new Map<string, SecureContext>();
  #characters = 0;

  constructor(make: (ca: string | undefined) => SecureContext = contextOf) {
    this.#make = make;
  }

  /** Undefined: the authorities that Node trusts. */
  of(ca: string | undefined): SecureContext {
    const key = ca ?? "";
    const context = this.#kept.get(key) ?? this.#make(ca);
    if (!this.#kept.delete(key)) this.#characters += key.length;
    this.#kept.set(key, context);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MAX_KEPT && this.#characters <= MAX_CHARACTERS) break;
      this.#kept.delete(oldest);
      this.#characters -= oldest.length;
    }
    return context;
  }
}

const contextOf = (ca: string | undefined): SecureContext =>
  createSecureContext({ minVersion: "TLSv1.2", ...(ca === undefined ? {} : { ca }) });

/** The contexts of this process. */
export const contexts = new Contexts();
