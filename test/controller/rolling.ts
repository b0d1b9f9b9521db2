/**
 * What is done comes in; how many Deployments truly rolled out at once meanwhile goes out: as the API server's own watch shows
 * each change of each of them, whatever any status says of that.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type AnyObject, type Api, RequestFailed } from "./api.ts";
import { eventually } from "./eventually.ts";
import { isRolling } from "./workloads.ts";

export interface Most {
  /** At one moment, in all namespaces that were looked at. */
  all: number;
  /** At one moment, in one of them. */
  inOne: number;
}

const DEPLOYMENTS = "/apis/apps/v1/deployments";
const WATCH_SECONDS = 300;
/** Before an API server that is away is asked again. */
const AGAIN_MS = 100;

/** How many Deployments of each namespace roll out at this moment. */
export async function rollingIn(api: Api, namespaces: readonly string[]): Promise<Map<string, number>> {
  const { items } = await api.get(DEPLOYMENTS);
  const own = items.filter((each: AnyObject) => namespaces.includes(each.metadata.namespace) && isRolling(each));
  return countsOf(own.map(({ metadata }: AnyObject) => metadata.namespace));
}

/** The most that rolled out at once until `act` had ended. */
export async function mostRolling(api: Api, namespaces: readonly string[], act: () => Promise<unknown>): Promise<Most> {
  const watched = new Watched(api, namespaces);
  const ended = new AbortController();
  const acting = async () => {
    try {
      await act();
      await watched.untilShown();
    } finally {
      ended.abort();
    }
  };
  await Promise.all([acting(), watched.follow(ended.signal)]);
  return watched.most;
}

class Watched {
  readonly most: Most = { all: 0, inOne: 0 };
  readonly #api: Api;
  readonly #namespaces: readonly string[];
  /** By uid, the version of each Deployment as it was shown last. */
  readonly #versions = new Map<string, number>();
  /** By uid, the namespace of each that rolls out. */
  readonly #rolling = new Map<string, string>();

  constructor(api: Api, namespaces: readonly string[]) {
    this.#api = api;
    this.#namespaces = namespaces;
  }

  /** Until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // Each watch begins with all that there are.
      this.#versions.clear();
      this.#rolling.clear();
      try {
        for await (const { type, object } of this.#api.watch(DEPLOYMENTS, WATCH_SECONDS, signal))
          this.#take(type, object);
      } catch (error) {
        // An API server that is away shows nothing; that it refuses to would be another thing.
        if (error instanceof RequestFailed) throw error;
        if (!signal.aborted) await sleep(AGAIN_MS);
      }
    }
  }

  /** Waits until the watch has shown the Deployments as they are now. */
  async untilShown(): Promise<void> {
    const { items } = await this.#api.get(DEPLOYMENTS);
    await eventually(() => {
      for (const { metadata } of items)
        assert.ok((this.#versions.get(metadata.uid) ?? 0) >= Number(metadata.resourceVersion), metadata.name);
    });
  }

  #take(type: string, object: AnyObject): void {
    // As at the end of a watch whose version is too old: the next one begins anew.
    if (type === "ERROR") return;
    const { uid, namespace, resourceVersion } = object.metadata;
    this.#versions.set(uid, Number(resourceVersion));
    if (!this.#namespaces.includes(namespace)) return;
    if (type !== "DELETED" && isRolling(object)) this.#rolling.set(uid, namespace);
    else this.#rolling.delete(uid);
    this.most.all = Math.max(this.most.all, this.#rolling.size);
    this.most.inOne = Math.max(this.most.inOne, ...countsOf([...this.#rolling.values()]).values());
  }
}

function countsOf(namespaces: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const namespace of namespaces) counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
  return counts;
}
