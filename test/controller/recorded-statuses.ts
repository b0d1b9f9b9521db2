/**
 * Records the statuses that the controller writes during tests, one for each kind and reason of a condition. `INLAY_RECORD_STATUSES=1` adds
 * those that are missing to test/unit/gitops/statuses.json.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { lock } from "../control-plane/lock.ts";
import type { AnyObject } from "./api.ts";
import type { AuditLog } from "./audit.ts";

export const RECORDED = join(import.meta.dirname, "..", "unit", "gitops", "statuses.json");
const KINDS = ["SecretBinding", "BindingComposition", "VaultConnection"];

export async function recordStatuses(log: AuditLog): Promise<void> {
  const states = (await Promise.all(KINDS.map((kind) => log.written(kind)))).flat();
  // Each worker of a run has a control plane of its own, and records into the same file.
  const release = await lock(`${RECORDED}.lock`, { isDone: () => false, onWait: () => {} });
  if (release === "done") return;
  try {
    await merge(states.map(({ object }) => object));
  } finally {
    await release();
  }
}

async function merge(objects: readonly AnyObject[]): Promise<void> {
  const known = new Map(
    (JSON.parse(await readFile(RECORDED, "utf8")) as AnyObject[]).map((each) => [keyOf(each), each]),
  );
  for (const object of objects)
    if (isReported(object) && !known.has(keyOf(object))) known.set(keyOf(object), partOf(object));
  const all = [...known].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
  await writeFile(RECORDED, `${JSON.stringify(all, undefined, 1)}\n`);
}

const isReported = ({ metadata, status }: AnyObject): boolean =>
  status?.conditions?.length > 0 && status.observedGeneration === metadata.generation;

/** Objects with the same conditions, apart from messages and times, count once. */
const keyOf = ({ kind, metadata, spec, status }: AnyObject): string =>
  JSON.stringify([
    kind,
    ...status.conditions.map(({ type, status: is, reason }: AnyObject) => `${type} ${is} ${reason}`),
    spec?.suspend ?? false,
    metadata.deletionTimestamp !== undefined,
  ]);

/** What tools look at. */
function partOf({ apiVersion, kind, metadata, spec, status }: AnyObject): AnyObject {
  const { name, namespace, generation, deletionTimestamp } = metadata;
  const { observedGeneration, conditions } = status;
  return {
    apiVersion,
    kind,
    metadata: { name, namespace, generation, deletionTimestamp },
    spec: { suspend: spec.suspend },
    status: { observedGeneration, conditions },
  };
}
