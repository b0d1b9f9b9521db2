/** Computes the fields of a claim that patches write from its bindings. Pure. */
import { at, conditionIn, fieldsAt, pickFields } from "../apimachinery/fields.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { type Claim, claimObject } from "./claim.ts";
import type { CompiledBinding, CompiledComposition } from "./compile.ts";
import { applyPatch } from "./patches/apply.ts";
import { Work } from "./patches/work.ts";

interface WriteBack {
  /** All fields of the claim that patches write, with their present values where a patch has nothing to write. */
  readonly fields: JsonObject;
  /** Whether the claim has all these values already. */
  readonly isSame: boolean;
  readonly problems: readonly Problem[];
}

/**
 * `present` are the existing bindings. `failed` contains the reasons why others could not be created or updated, by the names of their
 * entries.
 */
export function writeBack(
  { bindings, writes }: CompiledComposition,
  present: ReadonlyMap<string, object>,
  failed: ReadonlyMap<string, Problem>,
  claim: Claim,
): WriteBack {
  const before = pickFields(claimObject(claim), writes);
  let fields = structuredClone(before);
  const problems: Problem[] = [];
  const work = new Work();
  for (const entry of bindings) {
    const { name, patches } = entry;
    const problem = failed.get(name);
    const there = present.get(name);
    const binding =
      problem === undefined ? there : failedBinding(entry, there as JsonObject | undefined, problem, claim);
    if (binding === undefined) continue;
    for (const patch of patches) {
      if (patch.direction !== "ToComposite") continue;
      // A failing patch may have changed a part.
      const changed = structuredClone(fields);
      const outcome = attemptSync(() => applyPatch(patch, binding as JsonObject, changed, work));
      if (outcome instanceof Problem) problems.push(outcome);
      else if (outcome.outcome === "written") fields = changed;
      // A binding that was not created lacks most fields, for a reason that is already known.
      else if (patch.isRequired && problem === undefined)
        problems.push(
          new Problem("FieldNotFound", { at: [patch.place], what: `the binding has no ${outcome.path} yet` }),
        );
    }
  }
  return { fields, isSame: sameJson(fields, before), problems };
}

/**
 * The binding for patches if it could not be created or updated: its present state, with the problem as its conditions. The time
 * and generation are those of the binding's last condition, or the creation of the claim and the generation of the binding, so that a restart of
 * the controller changes nothing.
 */
function failedBinding(
  { base }: CompiledBinding,
  there: JsonObject | undefined,
  { reason, message }: Problem,
  claim: Claim,
): JsonObject {
  const status = fieldsAt(there, "status");
  const types = at(base.spec, "rollout") === undefined ? ["Ready"] : ["Ready", "RolledOut"];
  const conditions = types.map((type) => {
    const known = conditionIn(status, type);
    const since = known ? known["lastTransitionTime"] : at(claim.fields, "metadata", "creationTimestamp");
    const observed = at(known, "observedGeneration") ?? at(there, "metadata", "generation");
    return {
      type,
      status: "False",
      reason,
      message,
      ...(typeof since === "string" && { lastTransitionTime: since }),
      ...(observed !== undefined && { observedGeneration: observed as JsonValue }),
    };
  });
  return { ...there, status: { ...status, conditions } };
}
