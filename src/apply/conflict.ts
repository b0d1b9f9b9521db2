/** Explains a conflict with another field manager: who owns which field, why, and what helps. Pure. */

import type { FieldPath } from "../apimachinery/field-path.ts";
import { sameJson } from "../apimachinery/json.ts";
import { pointAt } from "../apimachinery/json-pointer.ts";
import { type JsonValue, type KubeObject, quoted } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { otherAppliers, ownEntries } from "./ownership.ts";

/** A field that another manager owns. */
export interface Contested {
  readonly path: string;
  readonly manager: string;
  /**
   * `default`: the API server filled the field in when the manager wrote the object. `restored`: the manager wrote the object from a backup,
   * once. `immutable`: taking over does not help.
   */
  readonly cause: "set" | "default" | "restored" | "immutable";
}

/** Programs that restore objects from backups, as field managers. */
const RESTORERS = new Set(["velero-server"]);

/** `held` is the path as in managedFields. */
export function contestedField(
  path: FieldPath,
  held: FieldPath,
  manager: string,
  live: KubeObject,
  shape: Pick<TargetShape, "defaultAt" | "isImmutable">,
): Contested {
  const cause = isImmutable(path, live, shape)
    ? "immutable"
    : holdsDefault(path, held, manager, live, shape)
      ? "default"
      : RESTORERS.has(manager)
        ? "restored"
        : "set";
  return { path: String(path), manager, cause };
}

/** Says who owns which field, and how the binding can take it over, or why it can't. */
export function conflict(contested: readonly Contested[]): Problem {
  const of = (wanted: Contested["cause"]) => contested.filter(({ cause }) => cause === wanted);
  const fixed = of("immutable");
  if (fixed.length > 0) {
    const message = `${said(fixed, "and can't be changed on an existing object, by the rules of its kind")}; nothing was written, and onConflict: Force would not help. Delete the object, and create it again without the field or with this value; or set create on the target, so that the binding creates it; or remove the field from the binding`;
    return new Problem("Immutable", message);
  }
  const [others, restored, defaults] = [of("set"), of("restored"), of("default")];
  const isAlone = others.length === 0;
  const fixes = [
    !isAlone && `Remove the field from what that manager applies, or set ${FORCE}`,
    defaults.length > 0 &&
      `${isAlone ? "Set" : "For a default, set"} ${FORCE}: a manager that does not set the field itself does not change it back`,
    restored.length > 0 &&
      `${isAlone ? "Set" : "After a restore, set"} ${FORCE}: the backup is not restored again by itself. When the binding is ready, you may remove onConflict`,
  ];
  const who = [
    said(others),
    said(restored, "since it restored the object from a backup"),
    said(defaults, "only because the API server filled in the default of the kind when that manager wrote the object"),
  ];
  const [owners, help] = [who.filter(Boolean).join(", "), fixes.filter(Boolean).join(". ")];
  return new Problem("Conflict", `${owners}; nothing was written. ${help}`);
}

const FORCE = "onConflict: Force on the target to take it over";

/** Empty if no field is contested for this reason. */
function said(contested: readonly Contested[], why?: string): string {
  const owners = contested.map(({ path, manager }) => `${path} belongs to ${quoted(manager)}`).join(", ");
  return why === undefined || owners === "" ? owners : `${owners} ${why}`;
}

/** A manager that applies sets the field itself: an apply owns no defaults. */
function holdsDefault(
  path: FieldPath,
  held: FieldPath,
  manager: string,
  live: KubeObject,
  shape: Pick<TargetShape, "defaultAt">,
): boolean {
  const applied = otherAppliers(live, "", held).includes(manager);
  const isKnown = ownEntries(live, manager).length > 0;
  const value = defaultOf(path, shape);
  return isKnown && !applied && value !== undefined && sameJson(path.get(live), value);
}

/** The default of the field, or its part of the default of an object around it. */
function defaultOf(path: FieldPath, { defaultAt }: Pick<TargetShape, "defaultAt">): JsonValue | undefined {
  const own = defaultAt(path);
  if (own !== undefined || !path.isPlain) return own;
  for (let parent = path.parent, depth = 1; parent !== undefined; parent = parent.parent, depth++) {
    const around = defaultAt(parent);
    if (around === undefined) continue;
    const keys = path.segments.slice(-depth).map((segment) => (segment.kind === "key" ? segment.key : ""));
    const within = pointAt(around, keys);
    if (within !== undefined) return within;
  }
  return undefined;
}

/** A Secret or ConfigMap can make its data immutable by itself. */
function isImmutable(path: FieldPath, live: KubeObject, shape: Pick<TargetShape, "isImmutable">): boolean {
  const [first] = path.segments;
  const isData = first?.kind === "key" && (first.key === "data" || first.key === "binaryData");
  return (isData && live["immutable"] === true) || shape.isImmutable(path);
}
