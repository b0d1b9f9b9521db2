/**
 * Moves the time of the condition Reconciling of an object into the past, instead of waiting for a minute: the status is the clock after
 * which an object is Stalled.
 */
import assert from "node:assert/strict";
import type { AnyObject, Api } from "./api.ts";
import { eventually } from "./eventually.ts";

const MINUTE_MS = 60_000;

/** The object has been in progress for a minute, or will have been in `leftMs`. */
export async function age(api: Api, path: string, leftMs = 0): Promise<void> {
  const { conditions } = (await api.get(path)).status;
  const at = conditions.findIndex(({ type }: AnyObject) => type === "Reconciling");
  const time = new Date(Date.now() - MINUTE_MS + leftMs).toISOString().replace(/\.\d+Z$/, "Z");
  const condition = `/status/conditions/${at}`;
  // Inlay may write the status meanwhile.
  await api.jsonPatch(`${path}/status`, [
    { op: "test", path: `${condition}/type`, value: "Reconciling" },
    { op: "replace", path: `${condition}/lastTransitionTime`, value: time },
  ]);
}

/** The condition Reconciling or Stalled, as `Stalled SourceNotFound`. Undefined if the object has neither. */
export async function progressOf(api: Api, path: string): Promise<string | undefined> {
  const { status } = await api.get(path);
  const progress = status?.conditions?.find(({ type }: AnyObject) => /^(Reconciling|Stalled)$/.test(type));
  return progress && `${progress.type} ${progress.reason}`;
}

export const untilProgress = (api: Api, path: string, expected: string | undefined, withinMs?: number): Promise<void> =>
  eventually(async () => assert.equal(await progressOf(api, path), expected), withinMs);
