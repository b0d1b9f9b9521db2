/** What was prepared for a target comes in; about how many bytes it holds until it is written goes out. */
import type { JsonValue, KubeObject } from "./apimachinery/objects.ts";
import type { Prepared } from "./targets/sync.ts";
import { sizeOf } from "./transform/budget.ts";

/** What a value takes beside its text. */
const PER_VALUE = 16;

export function weightOf(step: Prepared | { record: object }): number {
  if ("whole" in step) return weigh(step.live) + weigh(step.whole.object);
  if (!("decision" in step)) return 0;
  return step.decision.fields.reduce((sum, { value }) => sum + weigh(value.reveal()), weigh(step.live));
}

function weigh(value: KubeObject | JsonValue | undefined): number {
  if (value === undefined) return 0;
  const { characters, elements } = sizeOf(value as JsonValue);
  return characters + elements * PER_VALUE;
}
