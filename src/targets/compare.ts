/** Compares the fields of targets with the values that a binding would write, without writing. */
import { fieldManagerOf } from "../api/field-manager.ts";
import { sameJson } from "../apimachinery/json.ts";
import { Problem } from "../apimachinery/problem.ts";
import { decide } from "../apply/decide.ts";
import { formBeside } from "../apply/forms.ts";
import { previewFields } from "../apply/trial.ts";
import { attempt } from "../kube/access-error.ts";
import { getIfExists } from "../kube/get.ts";
import type { LiveSource } from "../transform/live-source.ts";
import { mapConcurrent } from "../workqueue/map-concurrent.ts";
import { type WriteContext, writeAccess } from "./dependencies.ts";
import type { TargetWithRecord } from "./records.ts";
import { examine } from "./sync.ts";

/**
 * Whether a field of a target has another value than the binding would write. Empty fields don't count. Returns a
 * Problem if that can't be known.
 */
export async function holdsOtherValues(
  context: WriteContext,
  targets: readonly TargetWithRecord[],
  sources: ReadonlyMap<string, LiveSource | Problem>,
): Promise<boolean | Problem> {
  const found = await mapConcurrent([...targets], (target) => attempt(differs(context, target, sources)));
  if (found.includes(true)) return true;
  return found.find((each) => each instanceof Problem) ?? false;
}

/** Throws Problem. */
async function differs(
  context: WriteContext,
  { target, ref, record }: TargetWithRecord,
  sources: ReadonlyMap<string, LiveSource | Problem>,
): Promise<boolean> {
  if (ref instanceof Problem) throw ref;
  const access = writeAccess(context, ref);
  const live = await getIfExists(access);
  if (live === undefined) return false;
  const { plan, shape } = await examine(context, target, ref, record, sources, context.account);
  const { fields } = plan;
  const held = fields.filter(({ path }) => (path.get(live) ?? null) !== null);
  const forms = held.map((field) => formBeside(live, field, shape));
  if (forms.includes("other") || (forms.includes("similar") && target.create)) return true;
  if (!forms.includes("similar")) return false;
  // Only the API server knows whether it would store the values in the forms that are there.
  const desired = { plan, shape, fieldManager: fieldManagerOf(context.binding), onConflict: "Force" as const };
  const decision = decide(desired, live, record);
  const after = await previewFields(access, desired, decision, live);
  return after === undefined || held.some(({ path }) => !sameJson(path.get(live), path.get(after)));
}
