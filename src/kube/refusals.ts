/**
 * Decides whether to trust a 403. A starting API server refuses everything until it has loaded its roles. So requests
 * that were allowed before are repeated once, after the server is ready.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ApiError, type Asked } from "./api-error.ts";

/**
 * The minimum time from the first refusal to the repetition: with several API servers, a second one may be starting.
 */
const CONFIRM_MS = 1_500;
/** How long to wait until the API server is ready. */
const READY_WITHIN_MS = 10_000;
const CONFIRMED_WITHIN_MS = CONFIRM_MS + READY_WITHIN_MS;
const READY_EVERY_MS = 500;
/** Beyond this number everything is forgotten, and a 403 is trusted until the next success. */
const KEPT = 20_000;
/** Group, version and namespace of a request, and its plural. */
const COLLECTION = /^(?:\/api\/[^/]+|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/[^/]+(?=\/))?\/[^/?]+/;

export class Refusals {
  readonly #isReady: (signal: AbortSignal) => Promise<boolean>;
  /** What was allowed last time; while repetitions wait, the promise that they wait for. */
  readonly #granted = new Map<string, Promise<void> | undefined>();
  /** Requests that are being repeated. */
  readonly #tried = new WeakSet<Asked>();
  #ready: Promise<void> | undefined;

  /** `isReady` asks the API server. An error counts as false. */
  constructor(isReady: (signal: AbortSignal) => Promise<boolean>) {
    this.#isReady = isReady;
  }

  /** Records that the API server allowed a request. */
  granted(request: Asked): void {
    if (this.#granted.size >= KEPT) this.#granted.clear();
    this.#granted.set(keyOf(request), undefined);
  }

  /**
   * Whether to repeat a failed request, after 1.5 to 11.5 s. Returns false at once if the answer can be trusted, or if the request's
   * deadline is shorter than that. Throws ApiError with DeadlineExceeded if the answer came too late to be confirmed: the next request
   * has the time. `since` and `end`, in ms of the epoch: the request's start and its deadline.
   */
  async isToBeConfirmed(request: Asked, error: unknown, since: number, end: number): Promise<boolean> {
    if (!(error instanceof ApiError) || error.status !== 403 || error.isDenied) return false;
    const key = keyOf(request);
    if (!this.#granted.has(key)) return false;
    if (this.#tried.has(request) || since + CONFIRMED_WITHIN_MS > end) {
      this.#granted.delete(key);
      return false;
    }
    if (Date.now() + CONFIRMED_WITHIN_MS > end)
      throw new ApiError(`${request.method} ${request.path.split("?")[0]}`, 0, "DeadlineExceeded");
    this.#tried.add(request);
    const pause = this.#granted.get(key) ?? this.#pause();
    this.#granted.set(key, pause);
    await pause;
    // If the repetition fails for another reason, such as a restart of the API server, the next refusal is confirmed
    // again.
    if (this.#granted.get(key) === pause) this.#granted.set(key, undefined);
    return true;
  }

  async #pause(): Promise<void> {
    await sleep(CONFIRM_MS, undefined, { ref: false });
    this.#ready ??= this.#untilReady();
    await this.#ready;
  }

  /** One wait for all requests that are refused at the same time. */
  async #untilReady(): Promise<void> {
    const end = Date.now() + READY_WITHIN_MS;
    const signal = AbortSignal.timeout(READY_WITHIN_MS);
    while (!(await this.#isReady(signal).catch(() => false)) && Date.now() < end)
      await sleep(READY_EVERY_MS, undefined, { ref: false });
    this.#ready = undefined;
  }
}

/** Identity, verb, kind and namespace of a request, without the name. */
function keyOf({ identity, method, path }: Asked): string {
  const [collection = ""] = COLLECTION.exec(path) ?? [];
  const isOfOne = path[collection.length] === "/";
  const verb = path.includes("watch=true") ? "WATCH" : isOfOne ? method : `${method}*`;
  return `${identity}|${verb}|${collection}`;
}
