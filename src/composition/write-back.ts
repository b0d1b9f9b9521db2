/** The bindings that a claim has come in, and the fields of the claim that patches write go out. Pure. */
import { at, fieldsAt, listAt, pickFields } from "../apimachinery/fields.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { type Claim, claimObject } from "./claim.ts";
import type { CompiledBinding, CompiledComposition } from "./compile.ts";
import { applyPatch } from "./patches/apply.ts";

export interface WriteBack {
  /** All that the patches write of the claim, and what is there already where a patch finds nothing to write. */
  readonly fields: JsonObject;
  /** Whether the claim has all of that. */
  readonly isSame: boolean;
  readonly problems: readonly Problem[];
}

/** `made` are the bindings that exist, and `failed` says why others could not be made or updated, by the names of their entries. */
export function writeBack(
  { bindings, writes }: CompiledComposition,
  made: ReadonlyMap<string, object>,
  failed: ReadonlyMap<string, Problem>,
  claim: Claim,
): WriteBack {
  const before = pickFields(claimObject(claim), writes);
  let fields = structuredClone(before);
  const problems: Problem[] = [];
  for (const entry of bindings) {
    const { name, patches } = entry;
    const problem = failed.get(name);
    const there = made.get(name);
    const binding =
      problem === undefined ? there : failedBinding(entry, there as JsonObject | undefined, problem, claim);
    if (binding === undefined) continue;
    for (const patch of patches) {
      if (patch.direction !== "ToComposite") continue;
      // A patch that fails may have changed a part.
      const changed = structuredClone(fields);
      const outcome = attemptSync(() => applyPatch(patch, binding as JsonObject, changed));
      if (outcome instanceof Problem) problems.push(outcome);
      else if (outcome.outcome === "written") fields = changed;
      // What was not made lacks most fields, and why is known already.
      else if (patch.isRequired && problem === undefined)
        problems.push(new Problem("FieldNotFound", `${patch.place}: the binding has no ${outcome.path} yet`));
    }
  }
  return { fields, isSame: sameJson(fields, before), problems };
}

/**
 * What patches see of a binding that could not be made or updated: the binding as it is, with the problem in its conditions. They date
 * from the last condition of the binding, or the creation of the claim, so that a restart of the controller changes nothing.
 */
function failedBinding(
  { base }: CompiledBinding,
  there: JsonObject | undefined,
  { reason, message }: Problem,
  claim: Claim,
): JsonObject {
  const status = fieldsAt(there ?? {}, "status");
  const before = listAt(there ?? {}, "status", "conditions");
  const types = at(base.spec, "rollout") === undefined ? ["Ready"] : ["Ready", "RolledOut"];
  const conditions = types.map((type) => {
    const known = before.find((each) => at(each, "type") === type);
    const since = at(
      known ?? claim.fields,
      ...(known === undefined ? ["metadata", "creationTimestamp"] : ["lastTransitionTime"]),
    );
    return { type, status: "False", reason, message, ...(typeof since === "string" && { lastTransitionTime: since }) };
  });
  return { ...there, status: { ...status, conditions } };
}
