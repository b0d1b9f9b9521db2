/**
 * Serves `/metrics` over HTTPS to users who may `get` it. As with controller-runtime, bearer tokens are never sent in plain text, and the
 * certificate is self-signed unless one is given.
 */
import { generateKeyPairSync, hash, randomBytes, sign, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Server, Socket } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import { BoundedMap, getOrInsert } from "../apimachinery/maps.ts";
import type { Client } from "../kube/client.ts";
import { answer, answerWith, type HttpServer, listen, type MetricsText } from "./http-server.ts";
import { describeError, type Log } from "./log.ts";

const PATH = "/metrics";
/** How long an answer is cached, in milliseconds. A revoked permission or an expired token still counts that long. */
const REMEMBERED_MS = { 200: 60_000, 401: 60_000, 403: 30_000 } as const;
/** The number of cached tokens for each kind of answer. The oldest are dropped. */
const MAX_REMEMBERED = 1_000;
/**
 * The reviews at the same time for unknown tokens, so that a flood of them causes little load. Tokens from an address with an allowed token
 * have as many of their own: a scraper gets a new token about each hour.
 */
const REVIEWS_AT_ONCE = 4;
const REVIEWS_PER_SECOND = 10;

/**
 * 200: may scrape. 401: no token, or an unknown one. 403: a known user without the permission. 429: too many unknown tokens. 503: no
 * answer.
 */
type ScrapeStatus = keyof typeof REMEMBERED_MS | 429 | 503;

type Verdict = keyof typeof REMEMBERED_MS;

/** Asks the API server about the token and the permission to `get` /metrics. Limits the rate of reviews for unknown tokens. */
export class MetricsAccess {
  readonly #reviews: Pick<Client, "userOf" | "mayGetPath">;
  readonly #log: Pick<Log, "warn">;
  /** By the SHA-256 of a token, when its answer expires. Allowed tokens are separate, so that a flood does not displace them. */
  readonly #allowed = new BoundedMap<string, number>(MAX_REMEMBERED);
  readonly #refused = new BoundedMap<string, { verdict: Verdict; until: number }>(MAX_REMEMBERED);
  /** At most one review for each token at a time. */
  readonly #underWay = new Map<string, Promise<ScrapeStatus>>();
  /** Addresses that sent an allowed token. */
  readonly #addresses = new BoundedMap<string, true>(MAX_REMEMBERED);
  readonly #strangers = new Budget();
  readonly #known = new Budget();
  /** Failing reviews are logged once, until one succeeds. */
  #isFailing = false;

  constructor(reviews: Pick<Client, "userOf" | "mayGetPath">, log: Pick<Log, "warn">) {
    this.#reviews = reviews;
    this.#log = log;
  }

  /** `address`: the address of the client. */
  async check(authorization: string | undefined, address = ""): Promise<ScrapeStatus> {
    const token = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
    if (token === undefined) return 401;
    const digest = hash("sha256", token, "base64");
    const until = this.#allowed.get(digest);
    const now = performance.now();
    if (until !== undefined && now < until) return 200;
    const refused = this.#refused.get(digest);
    if (refused !== undefined && now < refused.until) return refused.verdict;
    const underWay = this.#underWay.get(digest);
    if (underWay !== undefined) return underWay;
    // A token from a known address does not wait behind unknown tokens.
    const budget = this.knows(address) ? this.#known : this.#strangers;
    if (until === undefined && !budget.take(now)) return 429;
    const review = this.#review(token, digest).finally(() => {
      this.#underWay.delete(digest);
      if (until === undefined) budget.giveBack();
    });
    this.#underWay.set(digest, review);
    const status = await review;
    if (status === 200) this.#addresses.set(address, true);
    return status;
  }

  /** Whether this address sent an allowed token before. */
  knows(address: string): boolean {
    return this.#addresses.has(address);
  }

  async #review(token: string, digest: string): Promise<ScrapeStatus> {
    try {
      const user = await this.#reviews.userOf(token);
      const verdict = user === undefined ? 401 : (await this.#reviews.mayGetPath(user, PATH)) ? 200 : 403;
      this.#isFailing = false;
      this.#remember(digest, verdict);
      return verdict;
    } catch (error) {
      if (!this.#isFailing)
        this.#log.warn(
          { error: describeError(error) },
          "can't check requests for /metrics; allow the controller to create tokenreviews and subjectaccessreviews",
        );
      this.#isFailing = true;
      return 503;
    }
  }

  #remember(digest: string, verdict: Verdict): void {
    const until = performance.now() + REMEMBERED_MS[verdict];
    this.#allowed.delete(digest);
    this.#refused.delete(digest);
    if (verdict === 200) this.#allowed.set(digest, until);
    else this.#refused.set(digest, { verdict, until });
  }
}

/** Limits the cost of reviews. */
class Budget {
  #atOnce = 0;
  #second = { start: Number.NEGATIVE_INFINITY, reviews: 0 };

  take(now: number): boolean {
    if (this.#atOnce >= REVIEWS_AT_ONCE) return false;
    if (now - this.#second.start >= 1_000) this.#second = { start: now, reviews: 0 };
    if (++this.#second.reviews > REVIEWS_PER_SECOND) return false;
    this.#atOnce += 1;
    return true;
  }

  giveBack(): void {
    this.#atOnce -= 1;
  }
}

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

/** The certificate of the metrics server: read from a folder and reloaded when it changes, or created at the start. */
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

interface MetricsServerOptions {
  port: number;
  /** Has `tls.crt` and `tls.key`. Without it, the certificate is self-signed. */
  certDir: string | undefined;
  metrics: MetricsText;
  /** Called once with the time at which the certificate in use expires, in seconds since 1970. */
  observeCertificate?(expiresAt: () => number): void;
  access: Pick<MetricsAccess, "check" | "knows">;
  log: Pick<Log, "info" | "error">;
}

/**
 * A scraper needs one connection. If more than this many connections have not read the metrics, each new one closes another. Clients that
 * send nothing, or too slowly, are disconnected.
 */
const MAX_CONNECTIONS = 100;
const SLOW_MS = 10_000;
/** How often Node looks for slow clients. */
const CHECKED_EVERY_MS = 1_000;
/** How long a scraper's connection is kept between scrapes, which are a minute apart by default. */
const KEPT_MS = 90_000;

const REFUSALS: Record<Exclude<ScrapeStatus, 200>, [text: string, headers?: Record<string, string>]> = {
  401: ["send the token of a ServiceAccount: Authorization: Bearer TOKEN\n", { "www-authenticate": "Bearer" }],
  403: ["you may not get /metrics; bind the ClusterRole inlay-metrics-reader to this account\n"],
  429: ["too many unknown tokens at once\n", { "retry-after": "1" }],
  503: ["the API server did not answer whether you may get /metrics; see the controller's log\n"],
};

/** Throws Error if the certificate can't be used, or Node's error if the port can't be opened. */
export async function serveMetrics(options: MetricsServerOptions): Promise<HttpServer> {
  const { port, certDir, metrics, access, log } = options;
  const certificate = await ServingCertificate.load(certDir, log);
  options.observeCertificate?.(() => certificate.expiresAt);
  const handle = async ({ url = "", method, headers, socket }: IncomingMessage, response: ServerResponse) => {
    // Only clients that may scrape keep their connection.
    response.setHeader("connection", "close");
    if (url.split("?")[0] !== "/metrics") return answer(response, 404, "not found\n");
    if (method !== "GET") return answer(response, 405, "GET only\n", { allow: "GET" });
    const status = await access.check(headers.authorization, socket.remoteAddress);
    if (status !== 200) return answer(response, status, ...REFUSALS[status]);
    response.removeHeader("connection");
    connections.keep(socket);
    return answerWith(response, metrics);
  };
  // Not imported for the same reason as in http-server.ts, and loaded only when it is used.
  const { createServer } = process.getBuiltinModule("node:https");
  const slow = { handshakeTimeout: SLOW_MS, headersTimeout: SLOW_MS, requestTimeout: SLOW_MS };
  const limits = { ...slow, keepAliveTimeout: KEPT_MS, connectionsCheckingInterval: CHECKED_EVERY_MS };
  const server = createServer({ ...certificate.current, ...limits }, (request, response) => {
    void handle(request, response);
  });
  const connections = new Connections(server, access);
  const { port: taken, stop } = await listen(server, port);
  certificate.follow((pair) => server.setSecureContext(pair));
  return {
    port: taken,
    stop: () => {
      certificate.stop();
      return stop();
    },
  };
}

/** Limits the connections that have not read the metrics, so that one address can't prevent connections of another. */
class Connections {
  /** By address and port, in the order in which they were opened. */
  readonly #strangers = new Map<string, Map<number, Socket>>();
  readonly #access: Pick<MetricsAccess, "knows">;

  constructor(server: Server, access: Pick<MetricsAccess, "knows">) {
    this.#access = access;
    // The same number is reserved for clients that may scrape.
    server.maxConnections = 2 * MAX_CONNECTIONS;
    server.on("connection", (socket) => {
      const { remoteAddress = "", remotePort = 0 } = socket;
      getOrInsert(this.#strangers, remoteAddress, () => new Map<number, Socket>()).set(remotePort, socket);
      socket.once("close", () => this.#remove(remoteAddress, remotePort));
      this.#excess()?.destroy();
    });
  }

  /** Stops counting the connection. `socket` is the TLS socket, not that of the server's event. */
  keep({ remoteAddress = "", remotePort = 0 }: Socket): void {
    this.#remove(remoteAddress, remotePort);
  }

  #remove(address: string, port: number): void {
    const sockets = this.#strangers.get(address);
    sockets?.delete(port);
    if (sockets?.size === 0) this.#strangers.delete(address);
  }

  /**
   * Above the limit: the oldest connection of the address with the most. If several have the most, of an address without an allowed token.
   */
  #excess(): Socket | undefined {
    let [total, most, oldest]: [number, number, Socket | undefined] = [0, 0, undefined];
    for (const [address, sockets] of this.#strangers) {
      total += sockets.size;
      const weight = sockets.size - (this.#access.knows(address) ? 0.5 : 0);
      if (weight > most) [most, [oldest]] = [weight, sockets.values()];
    }
    return total > MAX_CONNECTIONS ? oldest : undefined;
  }
}
