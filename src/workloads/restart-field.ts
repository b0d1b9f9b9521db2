/**
 * The field that a workload restarts on, where that is no annotation of its pod template, comes in; what has to be written
 * there, and whether the workload has restarted for what stands there, goes out, as the operators document it. No I/O.
 */
import type { FieldPath } from "../apimachinery/field-path.ts";
import { at, valueAt } from "../apimachinery/fields.ts";
import type { KubeObject } from "../apimachinery/objects.ts";
import { ARGO_ROLLOUT, groupKindOf } from "./group-kinds.ts";
import type { Progress } from "./progress.ts";

/** What a field needs that doesn't take just any text. */
type RestartText = "time" | "true";

/** Strimzi does what such an annotation says if it says true, and takes it away when that is done. */
const STRIMZI = "strimzi.io/";

/** Undefined where every change of the field counts, as in a pod template. */
export const givenText = ({ stampAt, isRestartField }: { stampAt: FieldPath; isRestartField: boolean }) =>
  isRestartField ? textFor(stampAt) : undefined;

function textFor(path: FieldPath): RestartText | undefined {
  const last = path.segments.at(-1);
  if (last?.kind !== "key") return undefined;
  if (last.key === "restartAt") return "time";
  return last.key.startsWith(STRIMZI) ? "true" : undefined;
}

/** What stands there, if it is a text. */
export function restartText(object: KubeObject, path: FieldPath): string | undefined {
  const found = valueAt(object, path);
  return typeof found === "string" ? found : undefined;
}

/** Why a workload that has rolled out otherwise has not restarted yet, where its operator tells; undefined where it has. */
export function restarting(object: KubeObject, path: FieldPath): Progress | undefined {
  const text = restartText(object, path);
  if (text === undefined) return undefined;
  if (textFor(path) === "true")
    return { state: "Rolling", message: `Strimzi takes ${path} away when all pods have restarted` };
  if (groupKindOf(object) !== ARGO_ROLLOUT || textFor(path) !== "time") return undefined;
  const restarted = at(object, "status", "restartedAt");
  if (typeof restarted === "string" && Date.parse(restarted) === Date.parse(text)) return undefined;
  return { state: "Rolling", message: `some of its pods are older than ${path}` };
}

/**
 * The time to write for a change, to the second, as operators write such times. The next one: pods of the second in which it changed may
 * have begun before.
 */
export function restartTime(changed: string): string {
  const next = (Math.floor(Date.parse(changed) / 1000) + 1) * 1000;
  return new Date(next).toISOString().replace(".000Z", "Z");
}
