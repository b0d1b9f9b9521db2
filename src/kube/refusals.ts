/**
 * Whether a 403 is to be believed. An API server that begins refuses everything until it has read its roles, so what was allowed before
 * is asked for a second time, once the server says that it is ready.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "./api-error.ts";
import type { Identity } from "./identity.ts";

interface Asked {
  identity: Identity;
  method: string;
  /** With its query. */
  path: string;
}

/** From the first refusal of a kind to the second try, at least: another API server may be the one that begins. */
const CONFIRM_MS = 1_500;
/** How long it is waited for that the API server is ready. */
const READY_WITHIN_MS = 10_000;
const READY_EVERY_MS = 500;
/** Beyond so many, all is forgotten: then a 403 is believed until there was another good answer. */
const KEPT = 20_000;
/** Group, version and namespace of a request, and its plural. */
const COLLECTION = /^(?:\/api\/[^/]+|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/[^/]+(?=\/))?\/[^/?]+/;

export class Refusals {
  readonly #isReady: (signal: AbortSignal) => Promise<boolean>;
  /** What was allowed last time; while second tries wait, what they wait for. */
  readonly #granted = new Map<string, Promise<void> | undefined>();
  /** Requests that are made a second time. */
  readonly #tried = new WeakSet<Asked>();
  #ready: Promise<void> | undefined;

  /** `isReady` asks the API server. What it throws counts as no. */
  constructor(isReady: (signal: AbortSignal) => Promise<boolean>) {
    this.#isReady = isReady;
  }

  /** The API server did what was asked. */
  granted(request: Asked): void {
    if (this.#granted.size >= KEPT) this.#granted.clear();
    this.#granted.set(keyOf(request), undefined);
  }

  /**
   * Whether a request that failed is to be made a second time, after 1.5 to 11.5 s. False at once where its answer is to be
   * believed, or `end`, in ms of the epoch, leaves no time for that.
   */
  async isToBeConfirmed(request: Asked, error: unknown, end: number): Promise<boolean> {
    if (!(error instanceof ApiError) || error.status !== 403 || error.isDenied) return false;
    const key = keyOf(request);
    if (!this.#granted.has(key)) return false;
    if (this.#tried.has(request) || Date.now() + CONFIRM_MS + READY_WITHIN_MS > end) {
      this.#granted.delete(key);
      return false;
    }
    this.#tried.add(request);
    const pause = this.#granted.get(key) ?? this.#pause();
    this.#granted.set(key, pause);
    await pause;
    // Should the second try fail otherwise, as by another end of the API server, the next refusal is confirmed like this one.
    if (this.#granted.get(key) === pause) this.#granted.set(key, undefined);
    return true;
  }

  async #pause(): Promise<void> {
    await sleep(CONFIRM_MS, undefined, { ref: false });
    this.#ready ??= this.#untilReady();
    await this.#ready;
  }

  /** One for all that are refused at the same time. */
  async #untilReady(): Promise<void> {
    const end = Date.now() + READY_WITHIN_MS;
    const signal = AbortSignal.timeout(READY_WITHIN_MS);
    while (!(await this.#isReady(signal).catch(() => false)) && Date.now() < end)
      await sleep(READY_EVERY_MS, undefined, { ref: false });
    this.#ready = undefined;
  }
}

/** What an identity does to a kind in a namespace, whatever the name. */
function keyOf({ identity, method, path }: Asked): string {
  const [collection = ""] = COLLECTION.exec(path) ?? [];
  const isOfOne = path[collection.length] === "/";
  const verb = path.includes("watch=true") ? "WATCH" : isOfOne ? method : `${method}*`;
  return `${identity}|${verb}|${collection}`;
}
