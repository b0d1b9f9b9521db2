/** The bindings that a claim has come in, and the fields of the claim that patches write go out. Pure. */
import { pickFields } from "../apimachinery/fields.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { type Claim, claimObject } from "./claim.ts";
import type { CompiledComposition } from "./compile.ts";
import { applyPatch } from "./patches/apply.ts";

export interface WriteBack {
  /** All that the patches write of the claim, and what is there already where a patch finds nothing to write. */
  readonly fields: JsonObject;
  /** Whether the claim has all of that. */
  readonly isSame: boolean;
  readonly problems: readonly Problem[];
}

/** `made` are the bindings that exist, by the names of their entries. */
export function writeBack(
  { bindings, writes }: CompiledComposition,
  made: ReadonlyMap<string, object>,
  claim: Claim,
): WriteBack {
  const before = pickFields(claimObject(claim), writes);
  let fields = structuredClone(before);
  const problems: Problem[] = [];
  for (const { name, patches } of bindings) {
    const binding = made.get(name);
    if (binding === undefined) continue;
    for (const patch of patches) {
      if (patch.direction !== "ToComposite") continue;
      // A patch that fails may have changed a part.
      const changed = structuredClone(fields);
      const outcome = attemptSync(() => applyPatch(patch, binding as JsonObject, changed));
      if (outcome instanceof Problem) problems.push(outcome);
      else if (outcome.outcome === "written") fields = changed;
      else if (patch.isRequired)
        problems.push(new Problem("FieldNotFound", `${patch.place}: the binding has no ${outcome.path} yet`));
    }
  }
  return { fields, isSame: sameJson(fields, before), problems };
}
