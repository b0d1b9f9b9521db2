/**
 * Resolves host names for all connections. The system has few threads for that, and a name with silent name servers blocks one for long. So
 * each connection has one running lookup at a time, each namespace two, and connections share lookups of the same host.
 */
import { lookup } from "node:dns/promises";
import { Turns } from "../workqueue/turns.ts";
import { namespaceOf } from "./path.ts";
import type { Resolve } from "./settings.ts";

/** The system has four threads, also for files. */
const MAX_PER_NAMESPACE = 2;

export function fairLookups(resolve: (host: string) => ReturnType<Resolve>): Resolve {
  /** Running lookups, by host. */
  const begun = new Map<string, ReturnType<Resolve>>();
  /** Waiting and running lookups, by connection and host. */
  const asked = new Map<string, ReturnType<Resolve>>();
  /** The end of the last lookup of each connection. */
  const ends = new Map<string, Promise<void>>();
  const turns = new Turns({ perServer: MAX_PER_NAMESPACE });
  const inTurn = (host: string, key: string): ReturnType<Resolve> =>
    new Promise((found, failed) => {
      turns.take(namespaceOf(key), key, host, () => begin(host).then(found, failed));
    });
  const begin = (host: string) => {
    const known = begun.get(host);
    if (known !== undefined) return known;
    const found = resolve(host).finally(() => begun.delete(host));
    begun.set(host, found);
    return found;
  };
  return (host, key) => {
    const id = JSON.stringify([key, host]);
    const known = asked.get(id);
    if (known !== undefined) return known;
    const found = ends.get(key)?.then(() => inTurn(host, key)) ?? inTurn(host, key);
    const end = found
      .then(
        () => {},
        () => {},
      )
      .then(() => {
        asked.delete(id);
        if (ends.get(key) === end) ends.delete(key);
      });
    asked.set(id, found);
    ends.set(key, end);
    return found;
  };
}

/** The lookups of this process. */
export const lookUp = fairLookups((host) => lookup(host, { all: true }));
