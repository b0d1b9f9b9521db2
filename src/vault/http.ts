/**
 * Sends requests to Vault. One deadline covers the time in the queue, the connection and the whole answer. The size of an answer is
 * limited. A token is never sent to a server that the configuration does not allow, even after a redirect.
 */
import { lookup } from "node:dns/promises";
import type { LookupFunction } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { Agent, buildConnector, type Dispatcher } from "undici";
import { retryAfterMs } from "../apimachinery/duration.ts";
import { isObject, parseJson } from "../apimachinery/json.ts";
import { BoundedMap, getOrInsert } from "../apimachinery/maps.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { Turns } from "../workqueue/turns.ts";
import { type Asked, notVault } from "./failures.ts";
import { HttpFailure, isBroken } from "./http-failure.ts";
import { namespaceOf } from "./path.ts";
import type { ConnectionServices, ConnectionSettings, Operation, Resolve } from "./settings.ts";

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
  const begin = (host: string) => getOrInsert(begun, host, () => resolve(host).finally(() => begun.delete(host)));
  return (host, key) => {
    const id = JSON.stringify([key, host]);
    const known = asked.get(id);
    if (known !== undefined) return known;
    const found = ends.get(key)?.then(() => inTurn(host, key)) ?? inTurn(host, key);
    const end = Promise.allSettled([found]).then(() => {
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
  /** By certificates, in PEM. The most recently used are the newest. */
  readonly #kept = new BoundedMap<string, SecureContext>(MAX_KEPT, MAX_CHARACTERS, (_, { length }) => length);

  constructor(make: (ca: string | undefined) => SecureContext = contextOf) {
    this.#make = make;
  }

  /** Undefined: the authorities that Node trusts. */
  of(ca: string | undefined): SecureContext {
    const key = ca ?? "";
    const context = this.#kept.get(key) ?? this.#make(ca);
    this.#kept.set(key, context);
    return context;
  }
}

const contextOf = (ca: string | undefined): SecureContext =>
  createSecureContext({ minVersion: "TLSv1.2", ...(ca === undefined ? {} : { ca }) });

/** The contexts of this process. */
const contexts = new Contexts();

type Addresses = ConnectionServices["addresses"];

function dialer(
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

/**
 * Checks the address when the socket resolves it, so a name that changes its address later does not bypass the rule.
 * Fails if any address of the name is not allowed.
 */
function admittedLookup(
  url: URL,
  addresses: Addresses,
  resolve: (host: string) => ReturnType<Resolve>,
): LookupFunction {
  return (host, options, callback) => {
    const found = resolve(host).then((all) => {
      const known = all.map(({ address }) => address);
      const refusal = addresses.refusalOf(url, known);
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

/** By default, Vault stores at most 1 MiB in an entry. */
const MAX_ANSWER = 1024 ** 2;
const MAX_REDIRECTS = 2;
const MAX_SOCKETS = 8;
/** How long sockets and TLS contexts are kept without requests. */
const IDLE_MS = 60_000;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** Only these redirects keep the method and the body. */
const KEEPING_REDIRECTS = new Set([307, 308]);

export interface VaultRequest {
  readonly operation: Operation;
  readonly method: "GET" | "POST";
  /** Below /v1/, encoded. */
  readonly path: string;
  readonly token?: SecretValue<string>;
  readonly body?: SecretValue<JsonObject>;
  /** A server other than the connection's. */
  readonly server?: URL;
}

export class VaultReply {
  readonly status: number;
  /** When the server wants the next request. */
  readonly retryAfterMs: number | undefined;
  readonly text: SecretValue<string>;
  #value: SecretValue<unknown> | undefined;
  constructor(status: number, text: string, retryAfterMs?: number) {
    this.status = status;
    this.text = new SecretValue(text);
    this.retryAfterMs = retryAfterMs;
  }

  /** Throws Problem. */
  json(asked: Asked): JsonObject {
    const value = this.#parsed();
    if (!isObject(value)) throw notVault(asked);
    return value;
  }

  /** Whether `errors` or `warnings` match. They may quote values, so they are only classified. */
  says(pattern: RegExp): boolean {
    const value = this.#parsed();
    if (!isObject(value)) return false;
    const texts = [value["errors"], value["warnings"]].flatMap((each) => (Array.isArray(each) ? each : []));
    return texts.some((each) => typeof each === "string" && pattern.test(each));
  }

  /** Parses the answer, which takes time for a large one. Its other methods then take none. */
  parse(): void {
    this.#parsed();
  }

  #parsed(): unknown {
    this.#value ??= new SecretValue(attemptJson(this.text.reveal()));
    return this.#value.reveal();
  }
}

function attemptJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Sends requests. */
export interface VaultSender {
  /** Throws HttpFailure, or Problem if the configuration does not allow the server. */
  send(request: VaultRequest): Promise<VaultReply>;
}

type Services = Pick<ConnectionServices, "addresses" | "metrics" | "cpu" | "resolve">;
type Settings = Pick<ConnectionSettings, "key" | "address" | "namespace" | "ca" | "serverName" | "timeoutMs">;

export class VaultHttp implements VaultSender {
  readonly #settings: Settings;
  readonly #services: Services;
  /** Its sockets and TLS contexts, while there are requests. */
  #agent: Agent | undefined;
  #running = 0;
  #idle: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(settings: Settings, services: Services) {
    this.#settings = settings;
    this.#services = services;
  }

  async send(request: VaultRequest): Promise<VaultReply> {
    const abort = new AbortController();
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      reject(new HttpFailure("timeout"));
      abort.abort();
    }, this.#settings.timeoutMs);
    let code = "error";
    this.#running++;
    clearTimeout(this.#idle);
    try {
      const reply = await Promise.race([this.#follow(request, abort.signal), late]);
      code = String(reply.status);
      return reply;
    } catch (error) {
      if (error instanceof Problem) throw error;
      const failure = HttpFailure.of(error);
      code = failure.code;
      throw failure;
    } finally {
      clearTimeout(timer);
      this.#services.metrics.requested(request.operation, code);
      if (--this.#running === 0 && !this.#isClosed) this.#idle = setTimeout(() => this.#drop(), IDLE_MS).unref();
    }
  }

  /** Closes every connection. Running requests fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idle);
    await this.#agentNow().destroy();
  }

  #drop(): void {
    void this.#agent?.destroy();
    this.#agent = undefined;
  }

  #agentNow(): Agent {
    this.#agent ??= new Agent({
      connections: MAX_SOCKETS,
      // Our own deadline applies instead, also while a request is queued.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: dialer(this.#settings, this.#services),
    });
    return this.#agent;
  }

  async #follow(request: VaultRequest, signal: AbortSignal): Promise<VaultReply> {
    let server = request.server ?? this.#settings.address;
    for (let redirects = 0; ; redirects++) {
      const refusal = this.#services.addresses.refusal(server);
      if (refusal !== undefined) throw redirects === 0 ? refusal : redirected(refusal);
      const answer = await this.#answerOf(server, request, signal).catch((error) => {
        throw redirects > 0 && error instanceof Problem ? redirected(error) : error;
      });
      // A health request is about this server, so redirects are not followed.
      if (!REDIRECTS.has(answer.statusCode) || request.operation === "health") return replyOf(answer);
      answer.body.on("error", () => {}).destroy();
      if (redirects === MAX_REDIRECTS) throw new HttpFailure("redirects");
      server = redirectOf(server, request, answer);
    }
  }

  /** Repeats the request if the server has just closed a connection that was kept alive. */
  async #answerOf(server: URL, request: VaultRequest, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    try {
      return await this.#once(server, request, signal);
    } catch (error) {
      if (request.method !== "GET" || !isBroken(error) || signal.aborted) throw error;
      return this.#once(server, request, signal);
    }
  }

  #once(server: URL, request: VaultRequest, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const { namespace } = this.#settings;
    const headers: Record<string, string> = {
      accept: "application/json",
      "user-agent": "inlay",
      "x-vault-request": "true",
    };
    // Health requests must not name a namespace.
    if (namespace !== undefined && request.operation !== "health") headers["x-vault-namespace"] = namespace;
    if (request.token !== undefined) headers["x-vault-token"] = request.token.reveal();
    if (request.body !== undefined) headers["content-type"] = "application/json";
    return this.#agentNow().request({
      origin: server.origin,
      path: `/v1/${request.path}`,
      method: request.method,
      headers,
      signal,
      ...(request.body === undefined ? {} : { body: JSON.stringify(request.body.reveal()) }),
    });
  }
}

/** Uses only the server of a redirect: it gets the same request, so a redirect can't choose what is read. */
function redirectOf(from: URL, request: VaultRequest, answer: Dispatcher.ResponseData): URL {
  const { location } = answer.headers;
  const to = typeof location === "string" && URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  const isKept = request.method === "GET" || KEEPING_REDIRECTS.has(answer.statusCode);
  const isSafe = to?.protocol === "https:" || (to?.protocol === "http:" && from.protocol === "http:");
  if (to === undefined || !isKept || !isSafe) throw new HttpFailure("redirects");
  return new URL(to.origin);
}

const redirected = (refusal: Problem) => refusal.with({ what: `the server redirects, but ${refusal.what}` });

async function replyOf({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<VaultReply> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    // Leaving the loop closes the connection.
    if (size > MAX_ANSWER) throw new HttpFailure("tooLarge");
    chunks.push(chunk);
  }
  let text = "";
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    // An answer that is not text is not JSON either.
  }
  return new VaultReply(statusCode, text, retryAfterMs(headers["retry-after"]));
}
