/**
 * Connects to Vault servers: with the certificates of the connection, and only to addresses that the configuration lists. An address
 * is checked where the socket gets it, so a name that changes its address between a check and the connection gains nothing.
 */
import { X509Certificate } from "node:crypto";
import { lookup } from "node:dns/promises";
import type { LookupFunction } from "node:net";
import { createSecureContext } from "node:tls";
import { buildConnector } from "undici";
import { Problem } from "../apimachinery/problem.ts";
import type { ConnectionServices, ConnectionSettings, Resolve } from "./settings.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

type Addresses = ConnectionServices["addresses"];

const resolveAll: Resolve = (host) => lookup(host, { all: true });

/** Throws Problem if `ca` has no certificate. */
export function dialer(
  settings: Pick<ConnectionSettings, "ca" | "serverName" | "timeoutMs">,
  addresses: Addresses,
  resolve = resolveAll,
): buildConnector.connector {
  const { ca, serverName, timeoutMs } = settings;
  if (ca !== undefined) checkCa(ca);
  const secureContext = createSecureContext({ minVersion: "TLSv1.2", ...(ca === undefined ? {} : { ca }) });
  const connectors = new Map<string, buildConnector.connector>();
  const connectorOf = (url: URL): buildConnector.connector => {
    const known = connectors.get(url.origin);
    if (known !== undefined) return known;
    const connect = buildConnector({
      secureContext,
      ...(serverName === undefined ? {} : { servername: serverName }),
      // Said, so that NODE_TLS_REJECT_UNAUTHORIZED in the environment changes nothing.
      rejectUnauthorized: true,
      allowH2: false,
      timeout: timeoutMs,
      lookup: admittedLookup(url, addresses, resolve),
    });
    connectors.set(url.origin, connect);
    return connect;
  };
  return (options, callback) => connectorOf(new URL(`${options.protocol}//${options.host}`))(options, callback);
}

/** Fails for a name of which any address is not admitted. */
function admittedLookup(url: URL, addresses: Addresses, resolve: Resolve): LookupFunction {
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

/** Node ignores a text without a certificate, and trusts no server then. */
function checkCa(ca: string): void {
  const what = "tls.ca: the key that it names";
  const blocks = ca.match(CERTIFICATE) ?? [];
  if (blocks.length === 0)
    throw new Problem("VaultUntrusted", `${what} has no certificate in PEM; write the CA's there`);
  for (const [at, block] of blocks.entries()) {
    try {
      new X509Certificate(block);
    } catch {
      throw new Problem("VaultUntrusted", `${what} has a certificate that can't be read, number ${at + 1}; correct it`);
    }
  }
}
