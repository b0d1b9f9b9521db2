/** What follows from a prepared target before it is written. Pure. */
import type { JsonValue, KubeObject } from "../apimachinery/objects.ts";
import { sizeOf } from "../transform/budget.ts";
import type { PreparedTarget } from "./sync.ts";

/** What a value takes beside its text, in characters. */
const PER_VALUE = 16;

/** Prepared now, or known from before, when nothing is to be written. */
type Step = PreparedTarget | { record: object };

/** Whether its write makes something the binding's that was not: status has to say so before. */
export function acquires(step: Step): boolean {
  if ("whole" in step) return step.isNew;
  return "decision" in step && step.decision.write && step.decision.acquires.length > 0;
}

/** The sources read by a SecretGrant of which its write copies values. */
export function grantedIn(step: Step): readonly string[] {
  const plan = "whole" in step ? step.wanted.plan : "desired" in step ? step.desired.plan : undefined;
  return plan?.granted ?? [];
}

/** How much memory it holds until it is written, in characters. */
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
