/**
 * What is done comes in; how many Deployments truly rolled out at once meanwhile goes out: as one answer of the API server
 * shows them again and again, whatever any status says of that.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type AnyObject, type Api, RequestFailed } from "./api.ts";
import { isRolling } from "./workloads.ts";

export interface Most {
  /** At one moment, in all namespaces that were looked at. */
  all: number;
  /** At one moment, in one of them. */
  inOne: number;
}

const PAUSE_MS = 100;

/** How many Deployments of each namespace roll out at this moment. */
export async function rollingIn(api: Api, namespaces: readonly string[]): Promise<Map<string, number>> {
  const { items } = await api.get("/apis/apps/v1/deployments");
  const counts = new Map<string, number>();
  for (const { metadata } of items.filter(isRolling)) {
    const { namespace } = metadata;
    if (namespaces.includes(namespace)) counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
  }
  return counts;
}

/** The most that rolled out at once until `act` had ended. */
export async function mostRolling(api: Api, namespaces: readonly string[], act: () => Promise<unknown>): Promise<Most> {
  const most: Most = { all: 0, inOne: 0 };
  const done = act().then(
    () => ({}),
    (error: unknown) => ({ error }),
  );
  for (;;) {
    const ended: AnyObject | undefined = await Promise.race([done, sleep(PAUSE_MS)]);
    if (ended?.error !== undefined) throw ended.error;
    // An API server that is away shows nothing; that it refuses to would be another thing.
    const counts = await rollingIn(api, namespaces).catch((error: unknown) => {
      if (error instanceof RequestFailed) throw error;
      return new Map<string, number>();
    });
    most.all = Math.max(
      most.all,
      [...counts.values()].reduce((sum, count) => sum + count, 0),
    );
    most.inOne = Math.max(most.inOne, ...counts.values());
    if (ended !== undefined) return most;
  }
}
