/**
 * Mirrors the objects of one list and watch in a store, and calls back for each object that changes. It resumes from the last version,
 * lists again when that version is too old (410), and restarts a stream that has become silent.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { type KubeObject, type Resource, resourceName } from "../apimachinery/objects.ts";
import { ApiError } from "../kube/api-error.ts";
import type { ListWatch } from "../kube/list-watch.ts";

/**
 * `pending` until the first list is complete and the watch is open; `failed` when the server refuses one of them, does not serve the
 * kind, or can't convert or decode it. A stream in sync stays so until such a failure has lasted.
 */
export type ReflectorState = { phase: "pending" } | { phase: "synced" } | { phase: "failed"; error: ApiError };

/** How an object arrived. */
interface Shown {
  /** The version of the event, or for a later list the last version before it. Undefined for the objects of the first list. */
  since: string | undefined;
  /** The watch has reported it as added: it was just created, or has become visible to a selector. */
  isAdded: boolean;
  /** It is the whole object, also if the stream otherwise asks for metadata. */
  isWhole: boolean;
}

export interface ReflectorEvents<T> {
  /** Returns the parts of an object that are kept. `before` is what was kept of it. */
  keep(object: KubeObject, before: T | undefined, shown: Shown): T;
  /** What was kept of an object of a list that failed afterwards. What was kept before stays. */
  dropped?(key: string, kept: T): void;
  /** `after` is undefined for a deleted object, `before` for a new one. Not called for the objects of the first list. */
  changed(key: string, after: T | undefined, before: T | undefined): void;
  /** Does the work for one object, at once or when it is its turn. Without it, all work is done at once. */
  run?(work: () => void): Promise<void>;
  /** The stream is in sync for the first time, has recovered, or has failed. */
  stateChanged(state: ReflectorState): void;
  /** The stream ended, for any reason, and is restarted. */
  restarted?(reason: RestartReason): void;
  /** Awaited before a refused request is repeated, so that many refused streams cause little load. Also resolves when `signal` aborts. */
  turn?(signal: AbortSignal): Promise<void>;
}

/**
 * `ended`: the server closed the stream, which it does to share the load. `expired`: the server no longer has the version to resume from.
 */
export type RestartReason = "ended" | "silent" | "expired" | "refused" | "unavailable";

/** The state of a stream, for metrics and readiness. */
export interface StreamState {
  /** Group and plural of the kind. */
  resource: string;
  phase: ReflectorState["phase"] | "waiting";
  /** The server denies the stream, does not serve the kind, or no slot is free: nothing that time alone fixes. */
  refused: boolean;
  /** The server does not serve the kind. */
  unserved?: boolean;
  /** Seconds since the server last sent anything, a bookmark included. */
  quietSeconds: number;
  /** Seconds since the stream broke or ended; 0 while it is open, and before it was open for the first time. */
  interruptedSeconds: number;
  /** Of a shared stream: its account and scope, and how many subjects it shows to subscribers. */
  stream?: string;
  subscribers?: number;
}

/** Bookmarks arrive once a minute, so a stream without a line for this long counts as broken. */
const SILENCE_MS = 100_000;
/** A stream that lived this long did not fail at once. */
const LASTED_MS = 5_000;
/** A webhook that restarts fails for less than this. */
const BRIEF_FAILURE_MS = 5_000;
/** Milliseconds of work on a page after which the event loop gets a turn. */
const SLICE_MS = 10;
const REFUSALS = [401, 403, 404, 405];

/** Whether the server refuses the stream, or can't list or watch this kind until that is fixed. */
const isRefusal = ({ status, failure }: ApiError) => REFUSALS.includes(status) || failure !== undefined;
/** Whether it concerns this stream alone. 401 concerns the controller's own credentials, so all streams recover together. */
export const takesTurns = (error: ApiError): boolean => error.status !== 401 && isRefusal(error);

/** A server in trouble gets fewer requests. A server that refuses, or can't be reached, is tried often enough to notice a change. */
const BACKOFF_MS = { first: 250, most: 30_000, mostWithoutLoad: 4_000 };

/** `namespace/name`, or `name` for cluster-scoped objects. */
export function objectKey(namespace: string | undefined, name: string): string {
  return namespace === undefined || namespace === "" ? name : `${namespace}/${name}`;
}

export class Reflector<T extends { resourceVersion: string }> {
  readonly #source: Pick<ListWatch, "list" | "watch">;
  readonly #events: ReflectorEvents<T>;
  /** Ends the list, the watch or the pause that is under way. There may be thousands of streams, so all of these share it. */
  #end = new AbortController();
  #stopped = false;
  readonly #store = new Map<string, T>();
  #revision = 0;
  #state: ReflectorState = { phase: "pending" };
  /** The version to resume from; undefined if a list is due. */
  #version: string | undefined;
  /** The last version that was seen; undefined before the end of the first list. */
  #seen: string | undefined;
  #heard = performance.now();
  #interrupted: number | undefined;
  /** When the first of the last attempts failed that all failed because the kind can't be converted or decoded. */
  #failing: number | undefined;
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
      refused: this.#state.phase === "failed" && isRefusal(this.#state.error),
      unserved: this.#state.phase === "failed" && this.#state.error.status === 404,
      quietSeconds: secondsSince(this.#heard),
      interruptedSeconds: this.#interrupted === undefined ? 0 : secondsSince(this.#interrupted),
    };
  }

  get(key: string): T | undefined {
    return this.#store.get(key);
  }

  /** Increases with every change. */
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
    this.#done = this.#follow();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#end.abort();
    await this.#done;
  }

  async #follow(): Promise<void> {
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
      // A stream that lasted is opened again at once, with a random delay so that not all streams open in the same instant.
      const lasted = Date.now() - since > LASTED_MS;
      // An expired version is no sign of trouble, unless it is the version of a new list.
      const isExpected = reason === "expired" && last !== "expired";
      failures = lasted || isExpected ? 0 : failures + 1;
      last = reason;
      await sleep(this.#pauseAfter(failure, failures), undefined, { signal: this.#end.signal }).catch(() => {});
      if (failure !== undefined && this.#state.phase === "failed" && takesTurns(failure))
        await this.#events.turn?.(this.#end.signal);
    }
  }

  #pauseAfter(failure: ApiError | undefined, failures: number): number {
    // A list that can't be converted or decoded is work for the server each time.
    const isWithoutLoad = (this.#state.phase === "failed" && failure?.failure === undefined) || failure?.status === 0;
    const most = isWithoutLoad ? BACKOFF_MS.mostWithoutLoad : BACKOFF_MS.most;
    const pause = Math.min(BACKOFF_MS.first * 2 ** Math.min(failures, 10), most) * (0.5 + Math.random() / 2);
    return Math.max(pause, Math.min((failure?.retryAfterSeconds ?? 0) * 1000, BACKOFF_MS.most));
  }

  /** A lost connection or a brief failure keeps the store and resumes. A refusal or an expired version needs a new list. */
  #fail(error: ApiError, failures: number): void {
    this.#failing = error.failure === undefined ? undefined : (this.#failing ?? Date.now());
    const isBrief = this.#failing !== undefined && Date.now() - this.#failing < BRIEF_FAILURE_MS;
    const refused = isRefusal(error) && !(isBrief && this.#state.phase === "synced");
    if (refused || (error.status !== 0 && error.status !== 429 && error.status < 500)) this.#version = undefined;
    if (refused || (this.#state.phase === "pending" && failures > 1)) this.#setState({ phase: "failed", error });
  }

  async #list(): Promise<void> {
    // Each page is reduced before the next one arrives: the kept part of an object may be far smaller than the object.
    const seen = new Map<string, T>();
    let version = "";
    try {
      for await (const page of this.#source.list(this.#end.signal)) {
        let began = performance.now();
        for (const item of page.items) {
          const key = objectKey(item.metadata.namespace, item.metadata.name);
          const shown = { since: this.#seen, isAdded: false, isWhole: false };
          await this.#run(() => void seen.set(key, this.#keep(key, item, shown)));
          if (performance.now() - began < SLICE_MS) continue;
          await nextTurn();
          began = performance.now();
        }
        version = page.resourceVersion;
        this.#heard = performance.now();
      }
    } catch (error) {
      for (const [key, kept] of seen) if (this.#store.get(key) !== kept) this.#events.dropped?.(key, kept);
      throw error;
    }
    for (const key of [...this.#store.keys()]) if (!seen.has(key)) this.#put(key, undefined);
    for (const [key, kept] of seen) this.#put(key, kept);
    this.#hasListed = true;
    this.#version = version;
    this.#seen = version;
  }

  /** Follows a stream to its end. A silent stream is closed, which is no error. */
  async #watch(): Promise<RestartReason> {
    const end = this.#end;
    let isSilent = false;
    let opened = Number.POSITIVE_INFINITY;
    const alarm = setTimeout(() => {
      isSilent = true;
      end.abort();
    }, SILENCE_MS);
    try {
      const seconds = 300 + Math.floor(Math.random() * 300);
      // Only once the watch is open. Otherwise an identity that may list but not watch would be in sync again after every attempt.
      const onOpen = () => {
        this.#heard = performance.now();
        this.#hasOpened = true;
        this.#interrupted = undefined;
        opened = Date.now();
        this.#setState({ phase: "synced" });
      };
      for await (const event of this.#source.watch(this.#version as string, seconds, end.signal, onOpen)) {
        alarm.refresh();
        this.#heard = performance.now();
        const { resourceVersion: version } = event.object.metadata;
        if (event.type !== "BOOKMARK") {
          const { namespace, name } = event.object.metadata;
          const key = objectKey(namespace, name);
          const shown = { since: version, isAdded: event.type === "ADDED", isWhole: event.isWhole ?? false };
          await this.#run(() =>
            this.#put(key, event.type === "DELETED" ? undefined : this.#keep(key, event.object, shown)),
          );
        }
        this.#version = version;
        this.#seen = version;
      }
      return "ended";
    } catch (error) {
      if (isSilent) return "silent";
      throw error;
    } finally {
      clearTimeout(alarm);
      if (Date.now() - opened > LASTED_MS) this.#failing = undefined;
      if (isSilent && !this.#stopped) this.#end = new AbortController();
    }
  }

  #run(work: () => void): Promise<void> | void {
    return this.#events.run === undefined ? work() : this.#events.run(work);
  }

  #keep(key: string, object: KubeObject, shown: Shown): T {
    const before = this.#store.get(key);
    const isSame = before?.resourceVersion === object.metadata.resourceVersion;
    return isSame ? before : this.#events.keep(object, before, shown);
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
    if (state.phase !== before.phase || essenceOf(state) !== essenceOf(before)) this.#events.stateChanged(state);
  }
}

const secondsSince = (time: number) => (performance.now() - time) / 1000;

function reasonOf(error: ApiError): RestartReason {
  if (error.status === 410) return "expired";
  return isRefusal(error) ? "refused" : "unavailable";
}

const essenceOf = (state: ReflectorState) => (state.phase === "failed" ? state.error.essence : undefined);
