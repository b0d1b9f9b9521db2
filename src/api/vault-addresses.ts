/**
 * Checks URLs of Vault servers against `vault.addresses` in the configuration. Inlay never connects to a link-local
 * address, even if listed: cloud providers serve credentials there. Pure.
 */
import { BlockList, isIP } from "node:net";
import { Problem } from "../apimachinery/problem.ts";

const ENTRY = /^(?:(https?):\/\/)?(\[[0-9A-Fa-f:./]+\]|[^[\]:]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[^[\]]*)(?::(\d+))?$/;
const NAME = /^(?:\*\.)?[a-z0-9](?:[-a-z0-9_]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9_]*[a-z0-9])?)*$/;
const EXAMPLES =
  "write, for example, vault.vault.svc:8200, *.vault.svc, 10.0.0.0/8:8200, [fd00::/8]:8200 or http://127.0.0.1:8200";
const MAX_PORT = 65_535;
const DEFAULT_PORTS: Record<string, string> = { "https:": "443", "http:": "80" };
const BITS = { ipv4: 32, ipv6: 128 } as const;

const linkLocal = new BlockList();
// In a rule for IPv4, Node includes the IPv6 addresses that map to it, such as ::ffff:169.254.1.1.
linkLocal.addSubnet("169.254.0.0", 16, "ipv4");
linkLocal.addSubnet("fe80::", 10, "ipv6");
// The same addresses through a gateway from IPv6 to IPv4 (RFC 6052).
linkLocal.addSubnet("64:ff9b::a9fe:0", 112, "ipv6");

/** An entry of the list. */
interface Listed {
  readonly protocol: string;
  /** Undefined: any port. */
  readonly port: string | undefined;
  /** Whether the entry lists a host name. Always false for an entry with addresses. */
  hasName(name: string): boolean;
  /** Undefined for an entry with a name. */
  readonly addresses: BlockList | undefined;
}

export class VaultAddresses {
  readonly #listed: readonly Listed[];

  /** Throws Error with the position of an invalid entry, and why it is invalid. */
  constructor(entries: readonly string[]) {
    this.#listed = entries.map((entry, at) => parseEntry(entry, `vault.addresses[${at}]`));
  }

  /**
   * Why Inlay may not connect to the host of a URL. If a host name is not listed, but its addresses may be, this
   * returns undefined. `refusalOf` decides then, when the addresses are known.
   */
  refusal(url: URL): Problem | undefined {
    const host = hostOf(url);
    if (isIP(host) !== 0) return this.refusalOf(url, [host]);
    const candidates = this.#candidates(url);
    const isPossible = candidates.some((each) => each.addresses !== undefined || each.hasName(host));
    return isPossible ? undefined : notListed(url);
  }

  /** Why Inlay may not connect to these addresses, to which the host of the URL resolves. */
  refusalOf(url: URL, addresses: readonly string[]): Problem | undefined {
    const host = hostOf(url);
    if (addresses.some((each) => isIn(linkLocal, each))) {
      const what = isIP(host) === 0 ? `${host} resolves to` : `${host} is`;
      const why = `${what} a link-local address, and Inlay never connects to one; use another address of the server`;
      return new Problem("ForbiddenAddress", why);
    }
    const candidates = this.#candidates(url);
    if (candidates.some((each) => each.hasName(host))) return undefined;
    const isListed = (address: string) => candidates.some((each) => each.addresses && isIn(each.addresses, address));
    return addresses.length > 0 && addresses.every(isListed) ? undefined : notListed(url);
  }

  #candidates(url: URL): Listed[] {
    const port = portOf(url);
    return this.#listed.filter(
      (each) => each.protocol === url.protocol && (each.port === undefined || each.port === port),
    );
  }
}

/** The host of a URL as it is compared: without the brackets of IPv6, in lower case, and without a final dot. */
export function hostOf(url: URL): string {
  return url.hostname
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "")
    .toLowerCase();
}

/** The entry that lists the URL: `vault.vault.svc:8200`, with http:// before it where that is the scheme. */
function entryOf(url: URL): string {
  const host = hostOf(url);
  const scheme = url.protocol === "http:" ? "http://" : "";
  return `${scheme}${isIP(host) === 6 ? `[${host}]` : host}:${portOf(url)}`;
}

const portOf = (url: URL): string => url.port || (DEFAULT_PORTS[url.protocol] ?? "");

function notListed(url: URL): Problem {
  const entry = entryOf(url);
  const what = `Inlay may not connect to ${entry}: vault.addresses does not list it`;
  return new Problem(
    "ForbiddenAddress",
    `${what}; add it to vault.addresses in the configuration of Inlay: - ${entry}`,
  );
}

function parseEntry(entry: string, field: string): Listed {
  const what = `${field}: ${JSON.stringify(entry)}`;
  const [, scheme = "https", given = "", port] = ENTRY.exec(entry) ?? [];
  if (given === "") throw new Error(`${what} is not an address; ${EXAMPLES}`);
  if (port !== undefined && (Number(port) < 1 || Number(port) > MAX_PORT)) {
    throw new Error(`${what} has the port ${port}; ports are from 1 to ${MAX_PORT}`);
  }
  const common = { protocol: `${scheme}:`, port: port === undefined ? undefined : String(Number(port)) };
  const host = given.replace(/^\[(.*)\]$/, "$1");
  const [address = "", length, ...rest] = host.split("/");
  if (isIP(address) !== 0 && rest.length === 0) {
    return { ...common, hasName: () => false, addresses: subnetOf(address, length, what) };
  }
  const name = host.replace(/\.$/, "").toLowerCase();
  // Text such as 10.0.0.256 looks like an address, but is invalid, and never matches a name.
  if (given !== host || !NAME.test(name) || /^[\d.]+$/.test(name))
    throw new Error(`${what} is not an address; ${EXAMPLES}`);
  const suffix = name.slice(1);
  const hasName = name.startsWith("*.") ? (other: string) => other.endsWith(suffix) : (other: string) => other === name;
  return { ...common, hasName, addresses: undefined };
}

function subnetOf(address: string, length: string | undefined, what: string): BlockList {
  const family = isIP(address) === 4 ? "ipv4" : "ipv6";
  const bits = length === undefined ? BITS[family] : Number(length);
  if (length !== undefined && (!/^\d+$/.test(length) || bits > BITS[family])) {
    throw new Error(`${what} has the prefix /${length}; use /0 to /${BITS[family]}`);
  }
  const list = new BlockList();
  list.addSubnet(address, bits, family);
  return list;
}

/** Ignores the zone of an address, as in fe80::1%eth0. */
function isIn(list: BlockList, address: string): boolean {
  const [plain = ""] = address.split("%");
  return list.check(plain, isIP(plain) === 4 ? "ipv4" : "ipv6");
}
