/**
 * Connects to Vault servers: with the certificates of the connection, and only to addresses that the configuration allows. The address is
 * checked when the socket resolves it, so a name that changes its address after an earlier check does not bypass the rule.
 */
import { lookup } from "node:dns/promises";
import type { LookupFunction } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { buildConnector } from "undici";
import { Turns } from "../workqueue/turns.ts";
import { namespaceOf } from "./path.ts";
import type { ConnectionServices, ConnectionSettings, Resolve } from "./settings.ts";

/** The system has four threads, also for files. */
const MAX_PER_NAMESPACE = 2;

/** A name with silent name servers blocks one of few threads, so each connection has one running lookup, each namespace two. */
export function fairLookups(resolve: (host: string) => ReturnType<Resolve>): Resolve {
  /** Running lookups, by host. */
  const begun = new Map<string, ReturnType<Resolve>>();
  /** Waiting and running lookups, by connection and host. */
  const asked = new Map<string, ReturnType<Resolve>>();
  /** The end of the last lookup of each connection. */
  const ends = new Map<string, Promise<void>>();
  const turns = new Turns({ perServer: MAX_PER_NAMESPACE });
  const inTurn = (host: string, key: string): ReturnType<Resolve> =>
    new Promise((found, failed) => {
      turns.take(namespaceOf(key), key, host, () => begin(host).then(found, failed));
    });
  const begin = (host: string) => {
    const known = begun.get(host);
    if (known !== undefined) return known;
    const found = resolve(host).finally(() => begun.delete(host));
    begun.set(host, found);
    return found;
  };
  return (host, key) => {
    const id = JSON.stringify([key, host]);
    const known = asked.get(id);
    if (known !== undefined) return known;
    const found = ends.get(key)?.then(() => inTurn(host, key)) ?? inTurn(host, key);
    const end = found
      .then(
        () => {},
        () => {},
      )
      .then(() => {
        asked.delete(id);
        if (ends.get(key) === end) ends.delete(key);
      });
    asked.set(id, found);
    ends.set(key, end);
    return found;
  };
}

/** The lookups of this process. */
const lookUp = fairLookups((host) => lookup(host, { all: true }));

/** How many are kept after their use, and for how many characters of certificates. */
const MAX_KEPT = 64;
const MAX_CHARACTERS = 4 * 1024 ** 2;

/** Connections with the same certificates share a context, which takes up to 20 ms to create. */
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
const contexts = new Contexts();

type Addresses = ConnectionServices["addresses"];

export function dialer(
  settings: Pick<ConnectionSettings, "key" | "ca" | "serverName" | "timeoutMs">,
  { addresses, cpu, resolve = lookUp }: Pick<ConnectionServices, "addresses" | "cpu" | "resolve">,
): buildConnector.connector {
  const { key, ca, serverName, timeoutMs } = settings;
  const connectors = new Map<string, buildConnector.connector>();
  const connectorOf = async (url: URL): Promise<buildConnector.connector> => {
    const context = () => (url.protocol === "https:" ? contexts.of(ca) : undefined);
    const known = connectors.get(url.origin);
    if (known !== undefined) return known;
    const secureContext = await cpu.run(namespaceOf(key), context);
    const connect = buildConnector({
      ...(secureContext && { secureContext }),
      ...(serverName === undefined ? {} : { servername: serverName }),
      // Set explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED in the environment has no effect.
      rejectUnauthorized: true,
      allowH2: false,
      timeout: timeoutMs,
      lookup: admittedLookup(url, addresses, (host) => resolve(host, key)),
    });
    connectors.set(url.origin, connect);
    return connect;
  };
  return (options, callback) => {
    const connector = connectorOf(new URL(`${options.protocol}//${options.host}`));
    connector.then(
      (connect) => connect(options, callback),
      (error: Error) => callback(error, null),
    );
  };
}

/** Fails if any address of the name is not allowed. */
function admittedLookup(
  url: URL,
  addresses: Addresses,
  resolve: (host: string) => ReturnType<Resolve>,
): LookupFunction {
  return (host, options, callback) => {
    const found = resolve(host).then((all) => {
      const refusal = addresses.refusalOf(
        url,
        all.map(({ address }) => address),
      );
      if (refusal !== undefined) throw refusal;
      return [...all];
    });
    found.then(
      (all) => {
        const [first] = all;
        if (options.all) callback(null, all);
        else callback(null, first?.address ?? "", first?.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };
}
