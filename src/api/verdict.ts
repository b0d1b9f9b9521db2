/** What a condition says of an object. Types only. */
import type { Condition } from "./binding.ts";

export interface Verdict {
  /** Unknown while nobody looks. */
  ready: Condition["status"];
  reason: string;
  message: string;
}
