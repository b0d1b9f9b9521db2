/**
 * Sends requests and opens line streams over HTTP/2. Watches have their own agents: the API server allows 100 streams
 * per connection, and open watches would block all other requests. Inlay's own deadline covers a request also in the
 * queue, where undici's timeouts don't apply. connector.ts closes connections of silent servers.
 */
import { setImmediate as immediate, setTimeout as sleep } from "node:timers/promises";
import { Agent, type Dispatcher } from "undici";
import { listAt } from "../apimachinery/fields.ts";
import { isTooDeep } from "../apimachinery/json.ts";
import { Counts } from "../apimachinery/maps.ts";
import { type CpuScheduler, finish } from "../workqueue/cpu-scheduler.ts";
import {
  type AnswerForm,
  LARGE_CHARACTERS,
  lengthOfOwners,
  MAX_CHARACTERS,
  MAX_OWNERS,
  MAX_OWNERS_CHARACTERS,
  parseAnswer,
} from "./answer-text.ts";
import { ApiError } from "./api-error.ts";
import { connector, PING_EVERY_MS } from "./connector.ts";
import type { Credentials } from "./credentials.ts";
import { CONTROLLER, homeOf, type Identity, MARK_HEADER } from "./identity.ts";
import { ALL_NAMESPACES, FREE_CHARACTERS, LargeAnswers, type Permit } from "./large-answers.ts";
import "./orphan-streams.ts";
import { Refusals } from "./refusals.ts";

export interface Request {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** From the server's root, with its query. Names are already encoded. */
  path: string;
  identity: Identity;
  /** The binding for which it is sent as an account (identity.ts). */
  mark?: string;
  body?: string;
  contentType?: string;
  accept?: string;
  deadlineMs?: number;
  /** Return a 429 like any other answer, instead of waiting and repeating. */
  isOnce?: boolean;
  /** Fail if the answer has too many levels to be read whole. Otherwise null replaces deeper values. */
  isWhole?: boolean;
  /** What the answer contains; `whole` by default. */
  form?: AnswerForm;
  /** The most characters of the answer; MAX_CHARACTERS by default. */
  maxCharacters?: number;
  /** Asked before each attempt. If it returns false, the request is not sent. */
  mayBeSent?: () => boolean;
}

export interface TransportOptions {
  deadlineMs?: number;
  /** Parses large answers, and all events of watches, on behalf of their namespaces. Without it, they are parsed at once. */
  cpu?: Pick<CpuScheduler, "quick" | "steps">;
  /** The namespace of the controller. */
  ownNamespace?: string;
  /** Called for each answer that is too large, except for pages of lists, which are then requested with fewer objects. */
  tooLarge?: () => void;
}

/** An API server explains an error in fewer characters. If not, only the status counts. */
const MAX_ERROR_CHARACTERS = 1024 ** 2;
/** How long an answer for all namespaces is parsed in a turn of the event loop. */
const TURN_MS = 10;

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

/** What most clients need of the transport. */
export type RequestSender = Pick<Transport, "request">;

export class Transport {
  readonly #credentials: Credentials;
  readonly #deadlineMs: number;
  readonly #options: TransportOptions;
  readonly #large = new LargeAnswers();
  #requests: Agent;
  #watches: Agent;
  /** Replaced agents that are not destroyed yet. */
  readonly #retired = new Set<Agent>();
  readonly #refusals = new Refusals((signal) => this.#isReady(signal));
  /** The number of open streams of each agent for watches. */
  readonly #open = new Counts<Agent>();
  /** How far the API server's clock is ahead of this one, in ms. */
  #aheadMs = 0;
  #closed = false;

  constructor(credentials: Credentials, options: TransportOptions = {}) {
    this.#credentials = credentials;
    this.#options = options;
    this.#deadlineMs = options.deadlineMs ?? DEADLINE_MS;
    this.#requests = this.#agent(2);
    this.#watches = this.#agent(null);
  }

  /** One answer, parsed as JSON. Throws ApiError for any status but 2xx, and when `signal` aborts. */
  async request<T>(request: Request, signal?: AbortSignal): Promise<T> {
    const agent = this.#requests;
    const permit = this.#large.permit(this.#groupOf(request));
    try {
      const work = (late: AbortSignal) => this.#attempt(request, permit, late);
      const text = await this.#withinDeadline(request, agent, signal, work, permit);
      return (text === "" ? undefined : await this.#parse(request, text)) as T;
    } catch (error) {
      if (error instanceof ApiError && error.reason === "TooLarge" && request.maxCharacters === undefined)
        this.#options.tooLarge?.();
      throw error;
    } finally {
      permit.release();
    }
  }

  /**
   * What `read` returns for each line of a stream, until the server ends it. A line of more than MAX_CHARACTERS is cut there, to some more
   * characters. Calls `onOpen` when the stream begins. Throws ApiError if the stream does not begin within the deadline, or with a status
   * other than 2xx, or if it breaks, or if `signal` aborts.
   */
  async *lines<T>(
    request: Request,
    signal: AbortSignal,
    onOpen: () => void,
    read: (line: string) => Generator<unknown, T, void>,
  ): AsyncGenerator<T, void, void> {
    const stop = new AbortController();
    const onAbort = () => stop.abort();
    const agent = this.#watches;
    const group = this.#groupOf(request);
    const permit = this.#large.permit(group);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#open.add(agent, 1);
    try {
      signal.throwIfAborted();
      const { body } = await this.#withinDeadline(request, agent, signal, async (late) => {
        late.addEventListener("abort", onAbort, { once: true });
        const since = Date.now();
        const end = since + (request.deadlineMs ?? this.#deadlineMs);
        for (;;) {
          const opened = await this.#send(agent, request, stop.signal);
          if (opened.statusCode < 300) {
            this.#refusals.granted(request);
            return opened;
          }
          const error = await refusalIn(request, opened, permit, stop.signal);
          if (!(await this.#refusals.isToBeConfirmed(request, error, since, end))) throw error;
        }
      });
      onOpen();
      let line = "";
      body.setEncoding("utf8");
      for await (const chunk of body as AsyncIterable<string>) {
        let from = 0;
        for (let end = chunk.indexOf("\n"); end >= 0; end = chunk.indexOf("\n", from)) {
          const text = line.length <= MAX_CHARACTERS ? line + chunk.slice(from, end) : line;
          line = "";
          if (text.length > MAX_CHARACTERS) this.#options.tooLarge?.();
          yield await this.#readLine(group, text, read(text));
          permit.release();
          from = end + 1;
        }
        if (line.length <= MAX_CHARACTERS) line += chunk.slice(from);
        // There may be thousands of streams.
        if (line.length > LARGE_CHARACTERS) await permit.take(stop.signal);
      }
    } catch (error) {
      throw asApiError(request, error);
    } finally {
      signal.removeEventListener("abort", onAbort);
      stop.abort();
      permit.release();
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

  async #attempt(request: Request, permit: Permit, signal: AbortSignal): Promise<string> {
    const since = Date.now();
    const end = since + (request.deadlineMs ?? this.#deadlineMs);
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await this.#send(this.#requests, request, signal);
        if (answer.statusCode >= 300) throw await refusalIn(request, answer, permit, signal);
        this.#refusals.granted(request);
        const text = await textOf(answer, request.maxCharacters ?? MAX_CHARACTERS, permit, signal);
        if (text === undefined) throw new ApiError(describe(request), 200, "TooLarge");
        return text;
      } catch (error) {
        if (await this.#refusals.isToBeConfirmed(request, error, since, end)) continue;
        const wait = attempt < ATTEMPTS ? pauseBeforeRepeat(request, error, attempt) : undefined;
        if (wait === undefined || Date.now() + wait > end || signal.aborted) throw asApiError(request, error);
        await sleep(wait, undefined, { signal });
      }
    }
  }

  /** A JSON parser's message quotes the text, so it is dropped. */
  async #parse(request: Request, text: string): Promise<unknown> {
    try {
      return await this.#inTurns(this.#groupOf(request), text, parsing(request, text));
    } catch (error) {
      if (error instanceof ApiError) throw error;
      throw new ApiError(describe(request), 0, "BrokenAnswer");
    }
  }

  /** Reads a text on behalf of a namespace. What serves all namespaces is not delayed by the share of one. */
  async #inTurns<T>(group: string, text: string, work: Generator<unknown, T, void>): Promise<T> {
    const { cpu } = this.#options;
    if (cpu === undefined || text.length < LARGE_CHARACTERS) return finish(work);
    if (group !== ALL_NAMESPACES) return cpu.steps(group, work);
    for (;;) {
      await immediate();
      const end = performance.now() + TURN_MS;
      let step = work.next();
      while (!step.done && performance.now() < end) step = work.next();
      if (step.done) return step.value;
    }
  }

  /** Users of a namespace choose how often its objects change, so small lines count too. */
  #readLine<T>(group: string, line: string, work: Generator<unknown, T, void>): Promise<T> {
    const { cpu } = this.#options;
    if (cpu === undefined || group === ALL_NAMESPACES || line.length >= LARGE_CHARACTERS)
      return this.#inTurns(group, line, work);
    return cpu.quick(group, () => finish(work));
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
    if (request.mark !== undefined) headers[MARK_HEADER] = request.mark;
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

  /** The namespace on whose behalf an answer is read: that of the path, or of the account. Inlay's own accounts read for all namespaces. */
  #groupOf({ path, identity }: Request): string {
    const [, namespace = homeOf(identity)] = /\/namespaces\/([^/?]+)/.exec(path) ?? [];
    return namespace === undefined || namespace === this.#options.ownNamespace ? ALL_NAMESPACES : namespace;
  }

  /** Runs `work`. At the deadline, aborts it, and replaces the agent on which it may be stuck. */
  async #withinDeadline<T>(
    request: Request,
    agent: Agent,
    signal: AbortSignal | undefined,
    work: (signal: AbortSignal) => Promise<T>,
    permit?: Permit,
  ): Promise<T> {
    const abort = new AbortController();
    const { promise: ended, reject } = Promise.withResolvers<never>();
    const end = (reason: string) => {
      reject(new ApiError(describe(request), 0, reason));
      abort.abort();
    };
    const timer = setTimeout(() => {
      // An answer that waits for others is not stuck.
      if (!permit?.isWaiting) this.#replace(agent);
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
    if (this.#open.add(agent, -1) === 0 && this.#retired.has(agent)) this.#end(agent);
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

/** Also throws ApiError. */
function* parsing(request: Request, text: string): Generator<void, unknown, void> {
  const { form = "whole", isWhole } = request;
  const mayHaveMany = form === "whole" && text.length > MAX_OWNERS_CHARACTERS;
  if (mayHaveMany && lengthOfOwners(text) > MAX_OWNERS_CHARACTERS)
    throw new ApiError(describe(request), 200, "TooManyOwners");
  if (isWhole && isTooDeep(text)) throw new ApiError(describe(request), 200, "TooDeep");
  yield;
  const answer = yield* parseAnswer(text, form);
  if (form === "whole" && listAt(answer, "metadata", "managedFields").length > MAX_OWNERS)
    throw new ApiError(describe(request), 200, "TooManyOwners");
  return answer;
}

async function refusalIn(
  request: Request,
  answer: Dispatcher.ResponseData,
  permit: Permit,
  signal: AbortSignal,
): Promise<ApiError> {
  const header = answer.headers["retry-after"];
  const retryAfter = typeof header === "string" ? header : undefined;
  const text = (await textOf(answer, MAX_ERROR_CHARACTERS, permit, signal)) ?? "";
  const error = ApiError.fromAnswer(describe(request), answer.statusCode, text, retryAfter);
  const { method, path, identity } = request;
  error.asked = { method, path, identity };
  return error;
}

/** The text of an answer; undefined if it is longer than `most` characters. Then the rest is not read. */
async function textOf(
  { headers, body }: Dispatcher.ResponseData,
  most: number,
  permit: Permit,
  signal: AbortSignal,
): Promise<string | undefined> {
  const length = headers["content-length"];
  if (typeof length === "string" && Number(length) <= FREE_CHARACTERS) return await body.text();
  let text = "";
  body.setEncoding("utf8");
  // Leaving the loop ends the stream.
  for await (const chunk of body as AsyncIterable<string>) {
    text += chunk;
    if (text.length > most) return undefined;
    if (text.length > FREE_CHARACTERS) await permit.take(signal);
  }
  return text;
}

/** Any failure as an ApiError. Messages of undici or TLS are reduced to their codes. */
function asApiError(request: Request, error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const { code, name } = error as { code?: unknown; name?: string };
  return new ApiError(describe(request), 0, typeof code === "string" ? code : (name ?? "Error"));
}

/** Such as `GET /api/v1/namespaces/registry/secrets/bucket`, without the query, which may be long. */
function describe(request: Request): string {
  return `${request.method} ${request.path.split("?")[0]}`;
}
