/**
 * Counts how many Deployments roll out at once. It follows a watch of its own, which delivers each change of each Deployment, and
 * does not rely on the status of any binding.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type AnyObject, type Api, RequestFailed } from "./api.ts";
import { eventually } from "./eventually.ts";
import { isRolling } from "./workloads.ts";

export interface Most {
  /** The maximum in all observed namespaces. */
  all: number;
  /** The maximum in one of them. */
  inOne: number;
}

const DEPLOYMENTS = "/apis/apps/v1/deployments";
const WATCH_SECONDS = 300;
/** Pause before the next attempt to watch while the API server is down. */
const AGAIN_MS = 100;

/** How many Deployments of each namespace are rolling out now. */
export async function rollingIn(api: Api, namespaces: readonly string[]): Promise<Map<string, number>> {
  const { items } = await api.get(DEPLOYMENTS);
  const own = items.filter((each: AnyObject) => namespaces.includes(each.metadata.namespace) && isRolling(each));
  return countsOf(own.map(({ metadata }: AnyObject) => metadata.namespace));
}

/** The maximum number of Deployments that rolled out at once while `act` ran. */
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
  /** By uid, the resource version that the watch delivered last for each Deployment. */
  readonly #versions = new Map<string, number>();
  /** By uid, the namespace of each Deployment that rolls out. */
  readonly #rolling = new Map<string, string>();

  constructor(api: Api, namespaces: readonly string[]) {
    this.#api = api;
    this.#namespaces = namespaces;
  }

  /** Follows the watch until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // Each watch begins with all existing Deployments.
      this.#versions.clear();
      this.#rolling.clear();
      try {
        for await (const { type, object } of this.#api.watch(DEPLOYMENTS, WATCH_SECONDS, signal))
          this.#take(type, object);
      } catch (error) {
        // The API server may be down for a while, but it must not refuse the watch.
        if (error instanceof RequestFailed) throw error;
        if (!signal.aborted) await sleep(AGAIN_MS);
      }
    }
  }

  /** Waits until the watch has delivered the Deployments as they are now. */
  async untilShown(): Promise<void> {
    const { items } = await this.#api.get(DEPLOYMENTS);
    await eventually(() => {
      for (const { metadata } of items)
        assert.ok((this.#versions.get(metadata.uid) ?? 0) >= Number(metadata.resourceVersion), metadata.name);
    });
  }

  #take(type: string, object: AnyObject): void {
    // The watch has expired; the next one begins with all existing Deployments.
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
