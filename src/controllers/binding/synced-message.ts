/** Says in one sentence what the targets of a binding hold, and whether its rollout lags behind. Pure. */
import type { Condition } from "../../api/binding.ts";
import { describeObject } from "../../apimachinery/objects.ts";
import { catalogue } from "../../apimachinery/problem.ts";
import type { TargetOutcome } from "../../targets/outcome.ts";

/** `notes` are about all targets together. The notes of each target are in its entry of the status. */
export function syncedMessage(outcomes: readonly TargetOutcome[], notes: readonly string[]): string {
  const counted = outcomes.filter(({ excluded }) => excluded === undefined);
  const [first] = counted;
  if (first === undefined)
    return notes[0] ?? outcomes[0]?.excluded?.message ?? "there are no targets to write, only workloads to restart";
  const count = counted.length;
  const { kind, namespace, name } = first.record;
  const isOneKind = counted.every(({ record }) => record.kind === kind);
  const many = isOneKind ? `${kind} objects` : "targets";
  const [who, verb, are] =
    count === 1 ? [describeObject(kind, namespace, name), "has", "is"] : [`all ${count} ${many}`, "have", "are"];
  const fields = counted.reduce((sum, { record }) => sum + (record.paths?.length ?? 0), 0);
  const what = fields === 1 ? "the value of 1 field" : `the values of ${fields} fields`;
  const more = notes.length > 0 || outcomes.some(({ excluded, note }) => (excluded ?? note) !== undefined);
  return `${who} ${fields === 0 ? `${are} up to date` : `${verb} ${what}`}${more ? "; see the notes in status" : ""}`;
}

/** Reasons of a rollout that does not continue by itself, besides those of a Problem. */
const HALTED: readonly string[] = ["RolloutFailed", "RestartBlocked", "RestartReverted"];

/** A hint for the condition Ready, which is about fields, if the rollout needs attention. */
export function rolloutHint(rolledOut: Condition | undefined): string {
  if (rolledOut?.status !== "False") return "";
  const { reason } = rolledOut;
  if (!HALTED.includes(reason) && !Object.hasOwn(catalogue, reason)) return "";
  return `; the rollout is not complete (${reason}), see the condition RolledOut`;
}
