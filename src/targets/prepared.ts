/** Derives facts from a prepared target before the write. Pure. */
import type { JsonValue, KubeObject } from "../apimachinery/objects.ts";
import { sizeOf } from "../transform/budget.ts";
import type { PreparedTarget } from "./sync.ts";

/** The size of a value beyond its text, in characters. */
const PER_VALUE = 16;

/** A target that is prepared for a write, or that needs none. */
type Step = PreparedTarget | { record: object };

/** Whether the write acquires ownership, or creates parents: the status must announce that before. */
export function acquires(step: Step): boolean {
  if ("whole" in step) return step.isNew;
  if (!("decision" in step)) return false;
  const { write, acquires, parents } = step.decision;
  return write && acquires.length + parents.length > 0;
}

/** The sources behind a SecretGrant whose values the write copies. */
export function grantedIn(step: Step): readonly string[] {
  const plan = "whole" in step ? step.wanted.plan : "desired" in step ? step.desired.plan : undefined;
  return plan?.granted ?? [];
}

/** How much memory it needs until it is written, in characters. */
export function sizeOfPrepared(prepared: Step): number {
  if ("whole" in prepared) return size(prepared.live) + size(prepared.whole.object);
  if (!("decision" in prepared)) return 0;
  return prepared.decision.fields.reduce((sum, { value }) => sum + size(value.reveal()), size(prepared.live));
}

function size(value: KubeObject | JsonValue | undefined): number {
  if (value === undefined) return 0;
  const { characters, elements } = sizeOf(value as JsonValue);
  return characters + elements * PER_VALUE;
}
