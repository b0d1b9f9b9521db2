/** What somebody else does to a target comes in; what to say of it, and when to look again, goes out. */

import { Problem } from "../apimachinery/problem.ts";
import type { Run } from "../parts.ts";
import type { TargetOutcome } from "./outcome.ts";

/** A fight that is not over is said so even while our value stands. `what` says what it is about. */
export function contended({ parts }: Run, fight: string, what: string): Pick<TargetOutcome, "problem" | "againMs"> {
  const state = parts.contention.stateOf(fight);
  if (state === undefined) return {};
  const messages = {
    corrections: `${state.by} keeps ${what}`,
    echoes:
      "what this binding writes comes back to it as a new value, through another binding or as its own source; it is written more and more rarely. Break the circle",
    changes:
      "the sources changed sixty times in a minute; what they say is written more and more rarely. If they change because this binding writes, through somebody who copies it back, break that circle",
  };
  return { problem: new Problem("Contended", messages[state.of]), againMs: state.remainingMs };
}
