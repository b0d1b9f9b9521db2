/**
 * Knows the restart fields of operators that are not annotations of a pod template: what to write there, and whether the workload
 * has restarted for it, as the operators document it. No I/O.
 */
import type { FieldPath } from "../apimachinery/field-path.ts";
import { at, valueAt } from "../apimachinery/fields.ts";
import type { KubeObject } from "../apimachinery/objects.ts";
import { ARGO_ROLLOUT, groupKindOf } from "./group-kinds.ts";
import type { Progress } from "./progress.ts";

/** The text that a field needs if it does not accept every text. */
type RestartText = "time" | "true";

/** Strimzi restarts the pods for such an annotation with the value true, and removes it afterwards. */
const STRIMZI = "strimzi.io/";

/** Undefined if every change of the field restarts the workload, as in a pod template. */
export const givenText = ({ stampAt, isRestartField }: { stampAt: FieldPath; isRestartField: boolean }) =>
  isRestartField ? textFor(stampAt) : undefined;

function textFor(path: FieldPath): RestartText | undefined {
  const last = path.segments.at(-1);
  if (last?.kind !== "key") return undefined;
  if (last.key === "restartAt") return "time";
  return last.key.startsWith(STRIMZI) ? "true" : undefined;
}

/** The text in the field, if it is a text. */
export function restartText(object: KubeObject, path: FieldPath): string | undefined {
  const found = valueAt(object, path);
  return typeof found === "string" ? found : undefined;
}

/**
 * Why a workload that has rolled out otherwise has not restarted yet, if its operator shows that; undefined if it has restarted.
 */
export function restarting(object: KubeObject, path: FieldPath): Progress | undefined {
  const text = restartText(object, path);
  if (text === undefined) return undefined;
  if (textFor(path) === "true")
    return { state: "Rolling", message: `waiting for Strimzi to restart all pods and to remove ${path}` };
  if (groupKindOf(object) !== ARGO_ROLLOUT || textFor(path) !== "time") return undefined;
  const restarted = at(object, "status", "restartedAt");
  if (typeof restarted === "string" && Date.parse(restarted) === Date.parse(text)) return undefined;
  return { state: "Rolling", message: `some of its pods are older than ${path}` };
}

/**
 * The time to write for a change, in full seconds as operators write such times. The next second, because pods that started
 * earlier in the same second may have the former value.
 */
export function restartTime(changed: string): string {
  const next = (Math.floor(Date.parse(changed) / 1000) + 1) * 1000;
  return new Date(next).toISOString().replace(".000Z", "Z");
}
