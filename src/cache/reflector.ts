/**
 * One list and watch comes in, a store that mirrors it goes out, with a call for each object that changed. It resumes
 * from the last version it saw, lists again when that is too old (410), and starts anew a stream that fell silent.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type KubeObject, type Resource, resourceName } from "../apimachinery/objects.ts";
import { ApiError } from "../kube/api-error.ts";
import type { ListWatch } from "../kube/list-watch.ts";

/**
 * `pending` until the first list is in and the watch open; `failed` when the server refuses one of them or does not serve
 * the kind.
 */
export type ReflectorState = { phase: "pending" } | { phase: "synced" } | { phase: "failed"; error: ApiError };

export interface ReflectorEvents<T> {
  /** What is kept of an object. */
  keep(object: KubeObject): T;
  /** `after` is undefined for a deleted object, `before` for a new one. Not called for the objects of the first list. */
  changed(key: string, after: T | undefined, before: T | undefined): void;
  /** The stream is in step for the first time, or recovered, or failed. */
  stateChanged(state: ReflectorState): void;
  /** The stream ended, for whatever reason, and is begun anew. */
  restarted?(reason: RestartReason): void;
  /** Awaited before what the server refuses is asked for again, so that many refused streams are no load. Resolves when `signal` aborts, too. */
  turn?(signal: AbortSignal): Promise<void>;
}

/** `ended` is the server's own way to share the load; `expired`, that it no longer knows the version to go on from. */
export type RestartReason = "ended" | "silent" | "expired" | "refused" | "unavailable";

/** How a stream is, for metrics and readiness. */
export interface StreamState {
  /** Group and plural of what it carries. */
  resource: string;
  phase: ReflectorState["phase"] | "waiting";
  /** The server says that the identity may not have it, or that there is no such kind; or there is no room for it: nothing that time heals. */
  refused: boolean;
  /** Since the server last sent anything on it, a bookmark included. */
  quietSeconds: number;
  /** Since it broke or ended; 0 while it is open, and until it is for the first time. */
  interruptedSeconds: number;
}

/** Bookmarks come once a minute; a stream without a line for this long is taken for dead. */
const SILENCE_MS = 100_000;
/** A stream that lived this long did not fail at once. */
const LASTED_MS = 5_000;
const REFUSALS = [401, 403, 404, 405];
/** What is about this stream alone. 401 is about the controller's own credentials, so about all streams, which come back together. */
export const TAKES_TURNS: readonly number[] = [403, 404, 405];
/** A server in trouble is spared; one that refuses, or is not there at all, is asked often enough to notice that it changed. */
const BACKOFF_MS = { first: 250, most: 30_000, mostWithoutLoad: 4_000 };

/** `namespace/name`, or `name` for cluster-scoped objects. */
export function objectKey(namespace: string | undefined, name: string): string {
  return namespace === undefined || namespace === "" ? name : `${namespace}/${name}`;
}

export class Reflector<T extends { resourceVersion: string }> {
  readonly #source: Pick<ListWatch, "list" | "watch">;
  readonly #events: ReflectorEvents<T>;
  /** Ends the list, the watch or the pause that is under way. One for all: there may be thousands of streams. */
  #end = new AbortController();
  #stopped = false;
  readonly #store = new Map<string, T>();
  #revision = 0;
  #state: ReflectorState = { phase: "pending" };
  #version: string | undefined;
  #heard = performance.now();
  #interrupted: number | undefined;
  #hasListed = false;
  #hasOpened = false;
  #done: Promise<void> = Promise.resolve();

  constructor(source: Pick<ListWatch, "list" | "watch">, events: ReflectorEvents<T>) {
    this.#source = source;
    this.#events = events;
  }

  get state(): ReflectorState {
    return this.#state;
  }

  stateOf(resource: Resource): StreamState {
    const { phase } = this.#state;
    return {
      resource: resourceName(resource),
      phase,
      refused: this.#state.phase === "failed" && REFUSALS.includes(this.#state.error.status),
      quietSeconds: secondsSince(this.#heard),
      interruptedSeconds: this.#interrupted === undefined ? 0 : secondsSince(this.#interrupted),
    };
  }

  get(key: string): T | undefined {
    return this.#store.get(key);
  }

  /** Grows with every change. */
  get revision(): number {
    return this.#revision;
  }

  keys(): IterableIterator<string> {
    return this.#store.keys();
  }

  values(): IterableIterator<T> {
    return this.#store.values();
  }

  start(): void {
    this.#heard = performance.now();
    this.#done = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#end.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    let failures = 0;
    let last: RestartReason | undefined;
    while (!this.#stopped) {
      const since = Date.now();
      let reason: RestartReason = "ended";
      let failure: ApiError | undefined;
      try {
        if (this.#version === undefined) await this.#list();
        reason = await this.#watch();
      } catch (error) {
        if (this.#stopped) return;
        if (!(error instanceof ApiError)) throw error;
        this.#fail(error, failures);
        reason = reasonOf(error);
        failure = error;
      }
      if (this.#stopped) return;
      if (this.#hasOpened) this.#interrupted ??= performance.now();
      this.#events.restarted?.(reason);
      // A stream that lasted is opened again at once, but not all of them in the same instant.
      const lasted = Date.now() - since > LASTED_MS;
      // That a version is too old is no sign of trouble, unless it is the one of a new list.
      const isExpected = reason === "expired" && last !== "expired";
      failures = lasted || isExpected ? 0 : failures + 1;
      last = reason;
      await sleep(this.#pauseAfter(failure, failures), undefined, { signal: this.#end.signal }).catch(() => {});
      if (TAKES_TURNS.includes(failure?.status ?? 0)) await this.#events.turn?.(this.#end.signal);
    }
  }

  #pauseAfter(failure: ApiError | undefined, failures: number): number {
    const isWithoutLoad = this.#state.phase === "failed" || failure?.status === 0;
    const most = isWithoutLoad ? BACKOFF_MS.mostWithoutLoad : BACKOFF_MS.most;
    const pause = Math.min(BACKOFF_MS.first * 2 ** Math.min(failures, 10), most) * (0.5 + Math.random() / 2);
    return Math.max(pause, Math.min((failure?.retryAfterSeconds ?? 0) * 1000, BACKOFF_MS.most));
  }

  /** Lost connections leave the store as it is; refusals and too old versions ask for a new list. */
  #fail(error: ApiError, failures: number): void {
    if (error.status !== 0 && error.status !== 429 && error.status < 500) this.#version = undefined;
    const refused = REFUSALS.includes(error.status);
    if (refused || (this.#state.phase === "pending" && failures > 1)) this.#setState({ phase: "failed", error });
  }

  async #list(): Promise<void> {
    // Of each page, before the next one comes: what is kept of an object may be far less than what it is.
    const seen = new Map<string, T>();
    let version = "";
    for await (const page of this.#source.list(this.#end.signal)) {
      for (const item of page.items) {
        const key = objectKey(item.metadata.namespace, item.metadata.name);
        seen.set(key, this.#keep(key, item));
      }
      version = page.resourceVersion;
      this.#heard = performance.now();
    }
    for (const key of [...this.#store.keys()]) if (!seen.has(key)) this.#put(key, undefined);
    for (const [key, kept] of seen) this.#put(key, kept);
    this.#hasListed = true;
    this.#version = version;
  }

  /** Follows a stream to its end. One that fell silent is given up, which is no error. */
  async #watch(): Promise<RestartReason> {
    const end = this.#end;
    let isSilent = false;
    const alarm = setTimeout(() => {
      isSilent = true;
      end.abort();
    }, SILENCE_MS);
    try {
      const seconds = 300 + Math.floor(Math.random() * 300);
      // Not before: whoever may list and not watch would otherwise be in step again with every try.
      const onOpen = () => {
        this.#heard = performance.now();
        this.#hasOpened = true;
        this.#interrupted = undefined;
        this.#setState({ phase: "synced" });
      };
      for await (const event of this.#source.watch(this.#version as string, seconds, end.signal, onOpen)) {
        alarm.refresh();
        this.#heard = performance.now();
        if (event.type !== "BOOKMARK") {
          const { namespace, name } = event.object.metadata;
          const key = objectKey(namespace, name);
          this.#put(key, event.type === "DELETED" ? undefined : this.#keep(key, event.object));
        }
        this.#version = event.object.metadata.resourceVersion;
      }
      return "ended";
    } catch (error) {
      if (isSilent) return "silent";
      throw error;
    } finally {
      clearTimeout(alarm);
      if (isSilent && !this.#stopped) this.#end = new AbortController();
    }
  }

  #keep(key: string, object: KubeObject): T {
    const before = this.#store.get(key);
    return before?.resourceVersion === object.metadata.resourceVersion ? before : this.#events.keep(object);
  }

  #put(key: string, after: T | undefined): void {
    const before = this.#store.get(key);
    if (after === before) return;
    if (after === undefined) this.#store.delete(key);
    else this.#store.set(key, after);
    this.#revision++;
    if (this.#hasListed) this.#events.changed(key, after, before);
  }

  #setState(state: ReflectorState): void {
    const before = this.#state;
    this.#state = state;
    if (state.phase !== before.phase || statusOf(state) !== statusOf(before)) this.#events.stateChanged(state);
  }
}

const secondsSince = (time: number) => (performance.now() - time) / 1000;

function reasonOf({ status }: ApiError): RestartReason {
  if (status === 410) return "expired";
  return REFUSALS.includes(status) ? "refused" : "unavailable";
}
const statusOf = (state: ReflectorState) => (state.phase === "failed" ? state.error.status : undefined);
