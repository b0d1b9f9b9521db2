/**
 * What should stand in a target, what stands there, and the record of what is ours come in; whether to write, and how,
 * goes out. Pure.
 */
import type { TargetStatus } from "../model/binding.ts";
import type { FieldPath } from "../model/field-path.ts";
import { sameJson } from "../model/json.ts";
import type { KubeObject } from "../model/kube-object.ts";
import type { Plan, PlannedField } from "../model/plan.ts";
import { Problem } from "../model/problem.ts";
import { SecretValue } from "../model/secret-value.ts";
import { otherHoldersOf } from "./leaves.ts";
import { heldBeside, heldPart, holds } from "./ownership.ts";

export interface Desired {
  plan: Plan;
  fieldManager: string;
  conflicts: "Fail" | "Force";
}

export interface Decision {
  write: boolean;
  /** Take the fields from whoever holds them: because the binding says so, or because they are ours by record. */
  force: boolean;
  /** Paths that are written for the first time. */
  acquires: string[];
  /** Objects that will come to be on the way to those paths. */
  parents: string[];
  /**
   * Fields of ours that are not written now, their value being missing, say, and which are to stay: an apply that left them out would remove them, so
   * it says again what stands there.
   */
  carried: PlannedField[];
  /**
   * Paths under our name that the binding does not name: a binding of the same name wrote them, and its record went with
   * it. An apply without them would take them out, so they are given up before.
   */
  strays: FieldPath[];
  /** Managers who hold a path of ours that differs now. */
  takenBy: string[];
}

/** The paths of a record, when it speaks of this very object and not of one of the same name before it. */
export function recordedPaths(record: TargetStatus | undefined, live: KubeObject): string[] {
  return record?.uid === live.metadata.uid ? (record.paths ?? []) : [];
}

/** The fields of the binding that are not written now, and stay as they are. */
export function waitingIn({ plan: { leftOut, kept = [] } }: Desired): FieldPath[] {
  return [...leftOut.flatMap(({ path, why }) => (why.policy.onMissing === "Wait" ? [path] : [])), ...kept];
}

/** Throws Problem("Conflict") when a field not ours yet is another's, and the binding does not say to take it. */
export function decide(desired: Desired, live: KubeObject, record: TargetStatus | undefined): Decision {
  const entries = live.metadata.managedFields ?? [];
  const recorded = new Set(recordedPaths(record, live));
  const { fields } = desired.plan;
  const isEqual = fields.map((field) => stands(field, live, desired.fieldManager));
  const acquired = fields.filter(({ path }) => !recorded.has(String(path)));
  const acquires = acquired.map(({ path }) => String(path));
  const strays = heldBeside(live, desired.fieldManager, [...fields.map(({ path }) => path), ...waitingIn(desired)]);
  const isDone = fields.every(({ path }, i) => isEqual[i] && holds(entries, desired.fieldManager, path));

  const holders = fields.map(({ path, value }, i) =>
    isEqual[i] ? [] : otherHoldersOf(live, desired.fieldManager, path, value.reveal()),
  );
  const contested = fields.flatMap(({ path }, i) =>
    recorded.has(String(path)) ? [] : (holders[i] ?? []).map((manager) => ({ path: String(path), manager })),
  );
  if (contested.length > 0 && desired.conflicts === "Fail") throw conflict(contested);
  const carried = waitingIn(desired).flatMap((path) => {
    const value = heldPart(live, desired.fieldManager, path);
    return value === undefined ? [] : [{ path, value: new SecretValue(value), fromSecret: true }];
  });
  return {
    write: !isDone || strays.length > 0,
    strays,
    force: desired.conflicts === "Force" || acquired.length < fields.length,
    carried,
    acquires,
    parents: missingParents(
      acquired.map(({ path }) => path),
      live,
    ),
    takenBy: [...new Set(holders.flat())],
  };
}

/** Whether the value stands there. Beside what is ours of an object, defaults and fields of others may stand. */
export function stands({ path, value }: PlannedField, live: KubeObject, manager: string): boolean {
  const wanted = value.reveal();
  if (sameJson(path.get(live), wanted)) return true;
  return typeof wanted === "object" && sameJson(heldPart(live, manager, path), wanted);
}

/** Says who holds which field, and how to let the binding have it. */
export function conflict(contested: readonly { path: string; manager: string }[]): Problem {
  const who = contested.map(({ path, manager }) => `${path} belongs to ${JSON.stringify(manager)}`).join(", ");
  return new Problem(
    "Conflict",
    `${who}; nothing was written. Take the field out of what that manager applies, or set conflicts: Force on the target to take it over`,
  );
}

function missingParents(paths: readonly FieldPath[], live: KubeObject): string[] {
  const missing = new Set<string>();
  for (const path of paths) {
    for (let parent = path.parent; parent !== undefined && parent.get(live) === undefined; parent = parent.parent) {
      missing.add(String(parent));
    }
  }
  return [...missing];
}
