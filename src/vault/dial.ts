/**
 * Connects to Vault servers: with the certificates of the connection, and only to addresses that the configuration allows. The address is
 * checked when the socket resolves it, so a name that changes its address after an earlier check does not bypass the rule.
 */
import type { LookupFunction } from "node:net";
import { buildConnector } from "undici";
import { contexts } from "./contexts.ts";
import { lookUp } from "./lookups.ts";
import { namespaceOf } from "./path.ts";
import type { ConnectionServices, ConnectionSettings, Resolve } from "./settings.ts";

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
