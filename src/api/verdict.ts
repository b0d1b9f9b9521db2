/** What a condition says of an object. Types only. */
import type { Condition } from "./binding.ts";

export interface Verdict {
  /** Unknown while nothing evaluates it. */
  ready: Condition["status"];
  reason: string;
  message: string;
}
