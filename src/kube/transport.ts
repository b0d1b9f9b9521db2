/**
 * Sends requests and opens line streams over HTTP/2. Watches have their own agents: the API server allows 100 streams
 * per connection, and open watches would block all other requests. Inlay's own deadline covers a request also in the
 * queue, where undici's timeouts don't apply. connector.ts closes connections of silent servers.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, type Dispatcher } from "undici";
import { isTooDeep, parseJson } from "../apimachinery/json.ts";
import { ApiError } from "./api-error.ts";
import { connector, PING_EVERY_MS } from "./connector.ts";
import type { Credentials } from "./credentials.ts";
import { CONTROLLER, type Identity } from "./identity.ts";
import "./orphan-streams.ts";
import { Refusals } from "./refusals.ts";

export interface Request {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** From the server's root, with its query. Names are already encoded. */
  path: string;
  identity: Identity;
  body?: string;
  contentType?: string;
  accept?: string;
  deadlineMs?: number;
  /** Return a 429 like any other answer, instead of waiting and repeating. */
  isOnce?: boolean;
  /** Fail if the answer has too many levels to be read whole. Otherwise null replaces deeper values. */
  isWhole?: boolean;
  /** Asked before each attempt. If it returns false, the request is not sent. */
  mayBeSent?: () => boolean;
}

const DEADLINE_MS = 15_000;
/** How long a replaced agent may finish its requests before it is destroyed. */
const RETIRE_MS = 30_000;
const ATTEMPTS = 4;

/** Connection failures after which a repeatable request is sent again. */
const REPEATABLE = new Set([
  "UND_ERR_INFO",
  "UND_ERR_SOCKET",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ERR_HTTP2_STREAM_ERROR",
  "ERR_HTTP2_GOAWAY_SESSION",
  "ERR_HTTP2_INVALID_SESSION",
]);

export class Transport {
  readonly #credentials: Credentials;
  readonly #deadlineMs: number;
  #requests: Agent;
  #watches: Agent;
  /** Replaced agents that are not destroyed yet. */
  readonly #retired = new Set<Agent>();
  readonly #refusals = new Refusals((signal) => this.#isReady(signal));
  /** The number of open streams of each agent for watches. */
  readonly #open = new Map<Agent, number>();
  /** How far the API server's clock is ahead of this one, in ms. */
  #aheadMs = 0;
  #closed = false;

  constructor(credentials: Credentials, deadlineMs = DEADLINE_MS) {
    this.#credentials = credentials;
    this.#deadlineMs = deadlineMs;
    this.#requests = this.#agent(2);
    this.#watches = this.#agent(null);
  }

  /** One answer, parsed as JSON. Throws ApiError for any status but 2xx, and when `signal` aborts. */
  async request<T>(request: Request, signal?: AbortSignal): Promise<T> {
    const agent = this.#requests;
    const text = await this.#withinDeadline(request, agent, signal, (late) => this.#attempt(request, late));
    return (text === "" ? undefined : parse(request, text)) as T;
  }

  /**
   * The lines of a stream, until the server ends it. Calls `onOpen` when it begins. Throws ApiError if the stream does
   * not begin within the deadline, or with a status other than 2xx, or if it breaks, or if `signal` aborts.
   */
  async *lines(
    request: Request,
    signal: AbortSignal,
    onOpen: () => void = () => {},
  ): AsyncGenerator<string, void, void> {
    const stop = new AbortController();
    const onAbort = () => stop.abort();
    const agent = this.#watches;
    signal.addEventListener("abort", onAbort, { once: true });
    this.#open.set(agent, (this.#open.get(agent) ?? 0) + 1);
    try {
      signal.throwIfAborted();
      const { body } = await this.#withinDeadline(request, agent, signal, async (late) => {
        late.addEventListener("abort", onAbort, { once: true });
        const end = Date.now() + (request.deadlineMs ?? this.#deadlineMs);
        for (;;) {
          const opened = await this.#send(agent, request, stop.signal);
          if (opened.statusCode < 300) {
            this.#refusals.granted(request);
            return opened;
          }
          const error = await refusalIn(request, opened);
          if (!(await this.#refusals.isToBeConfirmed(request, error, end))) throw error;
        }
      });
      onOpen();
      let rest = "";
      body.setEncoding("utf8");
      for await (const chunk of body) {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop() ?? "";
        yield* lines;
      }
    } catch (error) {
      throw asApiError(request, error);
    } finally {
      signal.removeEventListener("abort", onAbort);
      stop.abort();
      this.#left(agent);
    }
  }

  /**
   * The API server's time, with which its timestamps are comparable, in ms of the epoch: from the Date of its last
   * answer, to the second, and never ahead. Local time until the first answer.
   */
  serverTime(): number {
    return Date.now() + this.#aheadMs;
  }

  /** Closes every connection. Pending requests fail. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#requests, this.#watches, ...this.#retired].map((agent) => agent.destroy()));
  }

  async #attempt(request: Request, signal: AbortSignal): Promise<string> {
    const end = Date.now() + (request.deadlineMs ?? this.#deadlineMs);
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await this.#send(this.#requests, request, signal);
        if (answer.statusCode >= 300) throw await refusalIn(request, answer);
        this.#refusals.granted(request);
        return await answer.body.text();
      } catch (error) {
        if (await this.#refusals.isToBeConfirmed(request, error, end)) continue;
        const wait = attempt < ATTEMPTS ? pauseBeforeRepeat(request, error, attempt) : undefined;
        if (wait === undefined || Date.now() + wait > end || signal.aborted) throw asApiError(request, error);
        await sleep(wait, undefined, { signal });
      }
    }
  }

  /** A cluster may deny /readyz to Inlay's account. Then the answer is false. */
  async #isReady(signal: AbortSignal): Promise<boolean> {
    const request: Request = { method: "GET", path: "/readyz", identity: CONTROLLER };
    const { statusCode, body } = await this.#send(this.#requests, request, signal);
    await body.dump();
    return statusCode < 300;
  }

  async #send(agent: Agent, request: Request, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const headers: Record<string, string> = {
      ...(await this.#credentials.headers()),
      accept: request.accept ?? "application/json",
      "user-agent": "inlay",
    };
    if (request.identity !== CONTROLLER) headers["impersonate-user"] = request.identity;
    if (request.body !== undefined) headers["content-type"] = request.contentType ?? "application/json";
    if (request.mayBeSent?.() === false) throw new ApiError(describe(request), 0, "NotLeading");
    const { origin, pathname } = this.#credentials.server;
    const answer = await agent.request({
      origin,
      // The server's URL may have a path, such as that of a cluster in Rancher.
      path: pathname.replace(/\/$/, "") + request.path,
      method: request.method,
      headers,
      signal,
      ...(request.body === undefined ? {} : { body: request.body }),
    });
    const date = Date.parse(String(answer.headers["date"]));
    if (!Number.isNaN(date)) this.#aheadMs = date - Date.now();
    return answer;
  }

  /** Runs `work`. At the deadline, aborts it, and replaces the agent on which it may be stuck. */
  async #withinDeadline<T>(
    request: Request,
    agent: Agent,
    signal: AbortSignal | undefined,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const abort = new AbortController();
    const { promise: ended, reject } = Promise.withResolvers<never>();
    const end = (reason: string) => {
      reject(new ApiError(describe(request), 0, reason));
      abort.abort();
    };
    const timer = setTimeout(() => {
      this.#replace(agent);
      end("DeadlineExceeded");
    }, request.deadlineMs ?? this.#deadlineMs);
    // Handled here too: a request that is still in the queue does not see its signal.
    const onAbort = () => end("Aborted");
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) onAbort();
    try {
      return await Promise.race([work(abort.signal), ended]);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  #replace(agent: Agent): void {
    if (this.#closed) return;
    if (agent === this.#requests) this.#requests = this.#agent(2);
    else if (agent === this.#watches) this.#watches = this.#agent(null);
    else return;
    this.#retired.add(agent);
    // One stream that does not begin must not end those that work: the agent ends with its last stream.
    if (!this.#open.has(agent)) setTimeout(() => this.#end(agent), RETIRE_MS).unref();
  }

  /** A stream on the agent has ended. */
  #left(agent: Agent): void {
    const open = (this.#open.get(agent) ?? 0) - 1;
    if (open > 0) return void this.#open.set(agent, open);
    this.#open.delete(agent);
    if (this.#retired.has(agent)) this.#end(agent);
  }

  #end(agent: Agent): void {
    this.#retired.delete(agent);
    agent.destroy().catch(() => {});
  }

  #agent(connections: number | null): Agent {
    return new Agent({
      allowH2: true,
      connections,
      pipelining: 100,
      // Replaced by Inlay's own deadlines, which also apply to queued requests.
      headersTimeout: 0,
      bodyTimeout: 0,
      h2Options: { pingInterval: PING_EVERY_MS },
      connect: connector(this.#credentials.tls),
    });
  }
}

/** Milliseconds to wait before the request is repeated; undefined if it must not be. */
function pauseBeforeRepeat(request: Request, error: unknown, attempt: number): number | undefined {
  const backoff = 100 * 2 ** attempt * (0.5 + Math.random());
  if (error instanceof ApiError) {
    if (error.status !== 429 || request.isOnce || error.failure !== undefined) return undefined;
    return Math.max((error.retryAfterSeconds ?? 0) * 1000, backoff);
  }
  const code = (error as { code?: string }).code ?? "";
  return request.method !== "POST" && REPEATABLE.has(code) ? backoff : undefined;
}

/** A JSON parser's message quotes the text, so it is dropped. */
function parse(request: Request, text: string): unknown {
  if (request.isWhole && isTooDeep(text)) throw new ApiError(describe(request), 200, "TooDeep");
  try {
    return parseJson(text);
  } catch {
    throw new ApiError(describe(request), 0, "BrokenAnswer");
  }
}

async function refusalIn(request: Request, answer: Dispatcher.ResponseData): Promise<ApiError> {
  const header = answer.headers["retry-after"];
  const retryAfter = typeof header === "string" ? header : undefined;
  return ApiError.fromAnswer(describe(request), answer.statusCode, await answer.body.text(), retryAfter);
}

/** Any failure as an ApiError. Messages of undici or TLS are reduced to their codes. */
function asApiError(request: Request, error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const { code, name } = error as { code?: string; name?: string };
  return new ApiError(describe(request), 0, code ?? name ?? "Error");
}

/** Such as `GET /api/v1/namespaces/registry/secrets/bucket`, without the query, which may be long. */
function describe(request: Request): string {
  return `${request.method} ${request.path.split("?")[0]}`;
}
