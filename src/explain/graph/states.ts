/** What a reason or condition means for the node that shows it. Pure. */
import type { Condition } from "../../api/binding.ts";
import { WAITING_REASONS } from "../../apimachinery/reasons.ts";
import type { NodeState } from "./graph.ts";

export function stateOfReason(reason: string): NodeState {
  if (reason === "Synced") return "good";
  if (reason === "Suspended") return "neutral";
  return WAITING_REASONS.includes(reason) ? "waiting" : "bad";
}

export function stateOf({ status, reason }: Pick<Condition, "status" | "reason">): NodeState {
  if (status === "True") return "good";
  return status === "False" ? (WAITING_REASONS.includes(reason) ? "waiting" : "bad") : "waiting";
}
