/**
 * Polls servers outside of the cluster in the background, once for all bindings that need the same answer, and requeues those bindings when
 * it changes. No reconcile waits for such a server.
 */
import { namespaceIn } from "../api/binding.ts";
import { getOrInsert, SetsByKey } from "../apimachinery/maps.ts";
import { Problem } from "../apimachinery/problem.ts";
import { Turns } from "../workqueue/turns.ts";
import { AnswerCache, type PollAnswer } from "./answer-cache.ts";
import type { Poll, PollState } from "./poll.ts";

interface Entry {
  poll: Poll;
  /** The namespace of its first binding, for the limits. */
  readonly namespace: string;
  /** The namespace has too many polls, so this one is not requested. */
  isRefused: boolean;
  /** The bindings that need the answer, each with its interval. */
  readonly subscribers: Map<string, number>;
  /** The shortest interval. Undefined if it must be computed again. */
  refreshMs?: number | undefined;
  /** The version of the last answer, whether or not its content is cached. */
  version?: string;
  problem?: Problem | undefined;
  failures: number;
  /** When it was last requested, by a monotonic clock; 0 before that. */
  askedAt: number;
  /** The number of the last request, counted over all polls; 0 before that. */
  ask: number;
  /** The number of the last request that has ended. */
  endedAsk: number;
  state: "idle" | "waiting" | "asking";
  /** While it is idle. */
  timer?: NodeJS.Timeout;
  /** Ends the wait for the first answer. */
  patience?: NodeJS.Timeout;
  /** Requested again after the running request. */
  isDue: boolean;
  /** A binding needs the content, which is not cached. */
  isAwaited: boolean;
}

interface Hooks {
  /** Called with the key of each binding whose answer changed. */
  changed(key: string): void;
  /** Called with the key of a binding when all polls that it requested at once have ended. */
  refreshed(key: string): void;
  /** Any other error than Problem is a bug in this program. */
  onError(error: unknown): void;
}

/** For tests. */
interface PollerOptions {
  /** A monotonic clock in ms, which is never 0. */
  now?: () => number;
  /** Returns numbers from 0 to 1. */
  random?: () => number;
  /** The size of the cache. */
  maxBytes?: number;
  /** The most polls of a namespace. */
  maxPolls?: number;
}

/** The most running requests to one server, and the limits of all requests of a namespace. */
const LIMITS = { perServer: 8, perNamespace: { running: 64, perSecond: 50, burst: 2_000 } };
/** How many polls a namespace has. More would take over a minute and a half to request. */
const MAX_POLLS = 5_000;
/** How long a binding waits for a first answer, before it continues without it. */
const PATIENCE_MS = 10_000;
const BACKOFF_MS = { first: 1_000, most: 30_000 };
/** The random part of an interval, so that polls do not coincide. */
const JITTER = 0.1;

export class Poller {
  readonly #hooks: Hooks;
  readonly #now: () => number;
  readonly #random: () => number;
  readonly #entries = new Map<string, Entry>();
  readonly #ids = new Map<string, ReadonlySet<string>>();
  readonly #refreshes = new Map<string, string>();
  /** The bindings that wait for polls that they requested at once, and the number of the last request before that. */
  readonly #refreshing = new Map<string, number>();
  readonly #turns: Turns;
  readonly #maxPolls: number;
  /** The polls of each namespace that are requested, and those that are refused. */
  readonly #namespaces = new Map<string, { count: number; readonly refused: Set<Entry> }>();
  readonly #groups = new SetsByKey<string, Entry>();
  readonly #answers: AnswerCache;
  #asks = 0;
  #isStopped = false;

  constructor(hooks: Hooks, options: PollerOptions = {}) {
    const { now = () => performance.now(), random = Math.random, maxBytes, maxPolls = MAX_POLLS } = options;
    this.#hooks = hooks;
    this.#turns = new Turns(LIMITS, now);
    this.#maxPolls = maxPolls;
    this.#now = now;
    this.#random = random;
    this.#answers = new AnswerCache(maxBytes);
  }

  /**
   * Replaces the polls of a binding. The handler is called when each answer is first known, and when it changes. A changed text in
   * `refresh` requests all of them at once.
   */
  subscribe(key: string, polls: readonly Poll[], refresh = ""): void {
    const ids = new Set(polls.map(({ id }) => id));
    for (const id of this.#ids.get(key) ?? []) if (!ids.has(id)) this.#unsubscribe(key, id);
    for (const poll of polls) {
      const entry = this.#entries.get(poll.id) ?? this.#add(poll, namespaceIn(key));
      entry.poll = poll;
      const before = refreshMsOf(entry);
      const isSooner = poll.refreshMs < before;
      if (isSooner) entry.refreshMs = poll.refreshMs;
      else if (entry.subscribers.get(key) === before) entry.refreshMs = undefined;
      entry.subscribers.set(key, poll.refreshMs);
      if (isSooner && entry.state === "idle" && entry.askedAt > 0 && entry.problem === undefined) this.#schedule(entry);
    }
    const known = this.#refreshes.get(key);
    if (known !== undefined && known !== refresh) {
      this.#refreshing.set(key, this.#asks);
      for (const poll of polls) poll.refreshing?.();
      for (const id of ids) this.#askNow(this.#entries.get(id));
    }
    if (ids.size === 0) {
      this.#ids.delete(key);
      this.#refreshes.delete(key);
      this.#refreshing.delete(key);
    } else {
      this.#ids.set(key, ids);
      this.#refreshes.set(key, refresh);
    }
  }

  /** How many polls there are, and the size of their cached answers. */
  get size(): { polls: number; cachedBytes: number } {
    return { polls: this.#entries.size, cachedBytes: this.#answers.bytes };
  }

  /** The state of a poll to which a binding has subscribed. */
  stateOf<T>({ id, group }: Poll<T>): PollState<T> {
    const entry = this.#entries.get(id);
    if (entry?.problem !== undefined) return { phase: "failed", problem: entry.problem };
    const answer = this.#answers.get(group, id) as PollAnswer<T> | undefined;
    if (answer !== undefined) return { phase: "synced", answer };
    if (entry?.version !== undefined) {
      entry.isAwaited = true;
      this.#askNow(entry);
    }
    return { phase: "pending" };
  }

  /** Whether all polls that a binding requested at once by a changed text have ended. */
  isRefreshed(key: string): boolean {
    const since = this.#refreshing.get(key);
    return (
      since === undefined ||
      [...(this.#ids.get(key) ?? [])].every((id) => {
        const entry = this.#entries.get(id);
        return entry !== undefined && (entry.isRefused || entry.endedAsk > since);
      })
    );
  }

  /** Requests all polls of a group at once. */
  refresh(group: string): void {
    for (const entry of this.#groups.get(group) ?? []) this.#askNow(entry);
  }

  stop(): void {
    this.#isStopped = true;
    for (const { timer, patience } of this.#entries.values()) {
      clearTimeout(timer);
      clearTimeout(patience);
    }
    this.#entries.clear();
    this.#groups.clear();
    this.#namespaces.clear();
    this.#ids.clear();
    this.#refreshing.clear();
    this.#answers.clear();
  }

  #add(poll: Poll, namespace: string): Entry {
    const entry: Entry = {
      poll,
      namespace,
      isRefused: false,
      subscribers: new Map(),
      failures: 0,
      askedAt: 0,
      ask: 0,
      endedAsk: 0,
      state: "idle",
      isDue: false,
      isAwaited: false,
    };
    this.#entries.set(poll.id, entry);
    this.#groups.add(poll.group, entry);
    const own = getOrInsert(this.#namespaces, namespace, () => ({ count: 0, refused: new Set<Entry>() }));
    if (own.count < this.#maxPolls) this.#begin(entry);
    else {
      entry.isRefused = true;
      entry.problem = tooMany(namespace, this.#maxPolls);
      own.refused.add(entry);
    }
    return entry;
  }

  #begin(entry: Entry): void {
    const own = this.#namespaces.get(entry.namespace);
    if (own !== undefined) own.count++;
    entry.patience = setTimeout(() => this.#waitNoLonger(entry), PATIENCE_MS).unref();
    // Subscriptions of the same turn share the request, and their namespaces are known then.
    entry.timer = setTimeout(() => this.#enqueue(entry), 0).unref();
  }

  /** The place of a poll that ended is for one that was refused. */
  #ended({ namespace, isRefused }: Entry): void {
    const own = this.#namespaces.get(namespace);
    if (own === undefined) return;
    if (!isRefused) own.count--;
    const [next] = own.refused;
    if (next !== undefined && own.count < this.#maxPolls) {
      own.refused.delete(next);
      next.isRefused = false;
      next.problem = undefined;
      this.#begin(next);
    }
    if (own.count === 0 && own.refused.size === 0) this.#namespaces.delete(namespace);
  }

  #unsubscribe(key: string, id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.subscribers.delete(key);
    entry.refreshMs = undefined;
    if (entry.subscribers.size > 0) return;
    clearTimeout(entry.timer);
    clearTimeout(entry.patience);
    this.#entries.delete(id);
    this.#groups.remove(entry.poll.group, entry);
    this.#namespaces.get(entry.namespace)?.refused.delete(entry);
    this.#ended(entry);
    this.#answers.delete(entry.poll.group, id);
  }

  /** The binding reports the source, and continues with everything that does not need it. */
  #waitNoLonger(entry: Entry): void {
    if (entry.version !== undefined || entry.problem !== undefined) return;
    const message = "the server has not answered yet; Inlay retries. Check that the server runs";
    entry.problem = new Problem(entry.poll.unavailable, message);
    for (const key of entry.subscribers.keys()) this.#hooks.changed(key);
  }

  #askNow(entry: Entry | undefined): void {
    if (entry?.state === "asking") entry.isDue = true;
    if (entry?.state !== "idle" || entry.isRefused) return;
    clearTimeout(entry.timer);
    this.#enqueue(entry);
  }

  /** Waits until the poll is due, counted from its last request. */
  #schedule(entry: Entry, afterMs = refreshMsOf(entry)): void {
    this.#askIn(entry, entry.askedAt + this.#jittered(afterMs) - this.#now());
  }

  /** Waits with backoff, at least as long as the server demands. */
  #retry(entry: Entry, { retryAfterMs = 0 }: Problem): void {
    const doubled = Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** (entry.failures - 1));
    this.#askIn(entry, Math.max(this.#jittered(doubled), retryAfterMs * (1 + JITTER * this.#random())));
  }

  #askIn(entry: Entry, ms: number): void {
    clearTimeout(entry.timer);
    entry.timer = setTimeout(() => this.#enqueue(entry), Math.max(0, ms)).unref();
  }

  #jittered(ms: number): number {
    return ms * (1 - JITTER + 2 * JITTER * this.#random());
  }

  #enqueue(entry: Entry): void {
    entry.state = "waiting";
    entry.isDue = false;
    const { id, group, queue = group } = entry.poll;
    const isStillNeeded = () => this.#entries.get(id) === entry;
    this.#turns.take(queue, entry.namespace, id, () => (isStillNeeded() ? this.#ask(entry) : undefined));
  }

  async #ask(entry: Entry): Promise<void> {
    const { id, group } = entry.poll;
    entry.state = "asking";
    entry.askedAt = this.#now();
    entry.ask = ++this.#asks;
    let answer: PollAnswer | Problem;
    try {
      answer = await entry.poll.ask(this.#answers.get(group, id));
    } catch (error) {
      if (!(error instanceof Problem)) this.#hooks.onError(error);
      answer =
        error instanceof Problem
          ? error
          : new Problem(entry.poll.unavailable, "unexpected error; see the controller's log");
    }
    if (this.#isStopped || this.#entries.get(id) !== entry) return;
    const isNews = answer instanceof Problem ? this.#failed(entry, answer) : this.#answered(entry, answer);
    entry.state = "idle";
    entry.endedAsk = entry.ask;
    if (entry.isDue) this.#enqueue(entry);
    else if (answer instanceof Problem) this.#retry(entry, answer);
    else this.#schedule(entry, answer.refreshMs);
    if (isNews) for (const key of entry.subscribers.keys()) this.#hooks.changed(key);
    for (const key of this.#refreshing.size === 0 ? [] : entry.subscribers.keys()) {
      if (!this.#refreshing.has(key) || !this.isRefreshed(key)) continue;
      this.#refreshing.delete(key);
      this.#hooks.refreshed(key);
    }
  }

  /** Returns whether the bindings must be notified. */
  #answered(entry: Entry, answer: PollAnswer): boolean {
    const isNews = entry.problem !== undefined || entry.isAwaited || entry.version !== answer.version;
    entry.problem = undefined;
    entry.failures = 0;
    entry.isAwaited = false;
    entry.version = answer.version;
    this.#answers.set(entry.poll.group, entry.poll.id, answer);
    return isNews;
  }

  /** Like `#answered`, for a failure. The former answer is kept, to compare the next one with it. */
  #failed(entry: Entry, problem: Problem): boolean {
    const { problem: before } = entry;
    const isNews = !problem.isSame(before);
    entry.problem = problem;
    entry.failures++;
    return isNews;
  }
}

function refreshMsOf(entry: Entry): number {
  if (entry.refreshMs !== undefined) return entry.refreshMs;
  let least = Number.POSITIVE_INFINITY;
  for (const each of entry.subscribers.values()) least = Math.min(least, each);
  entry.refreshMs = entry.subscribers.size === 0 ? undefined : least;
  return least;
}

const tooMany = (namespace: string, most: number): Problem =>
  new Problem(
    "LimitExceeded",
    `the bindings of namespace ${namespace} read more than ${most} different paths or servers outside of the cluster, and Inlay reads only the first ${most}; remove sources that are not needed`,
  );
