/** An operator that owns the pod templates of a team's workloads: it removes every annotation that is not its own. */
import { setTimeout as sleep } from "node:timers/promises";
import type { AnyObject } from "./api.ts";
import type { TestNamespace } from "./test-namespace.ts";

const WATCH_SECONDS = 300;
const AGAIN_MS = 50;
export const OPERATOR = "example-operator";

export interface Reverting {
  /** The generations of each workload in which it has removed annotations. */
  readonly removed: Map<string, Set<number>>;
  stop(): Promise<void>;
}

export function revertRestarts(team: TestNamespace, plural = "deployments"): Reverting {
  const ended = new AbortController();
  const removed = new Map<string, Set<number>>();
  const collection = team.path("apps/v1", plural);
  const take = async (object: AnyObject) => {
    if (object.spec.template.metadata.annotations === undefined) return;
    const template = { metadata: { annotations: null } };
    // Whatever has changed meanwhile. If it was removed already, nothing changes.
    const before = object.metadata.generation;
    const { metadata } = await team.api.merge(
      `${collection}/${object.metadata.name}`,
      { spec: { template } },
      OPERATOR,
    );
    if (metadata.generation > before)
      removed.set(metadata.name, (removed.get(metadata.name) ?? new Set()).add(metadata.generation));
  };
  const follow = async () => {
    while (!ended.signal.aborted) {
      try {
        for await (const { type, object } of team.api.watch(collection, WATCH_SECONDS, ended.signal))
          if (type !== "DELETED" && type !== "ERROR") await take(object);
      } catch (error) {
        if (!ended.signal.aborted) throw error;
      }
      if (!ended.signal.aborted) await sleep(AGAIN_MS);
    }
  };
  const following = follow();
  return {
    removed,
    stop: async () => {
      ended.abort();
      await following;
    },
  };
}
