/** Names the outcome of a write for metrics. */
import { ApiError } from "./api-error.ts";

const OUTCOMES: Record<number, string> = {
  401: "forbidden",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  422: "invalid",
  429: "throttled",
};

/** Why a write was not accepted, as a label value. */
export function outcomeOf(error: unknown): string {
  if (!(error instanceof ApiError)) return "error";
  if (error.status === 0) return error.reason === "NotLeading" ? "not_leading" : "no_answer";
  return OUTCOMES[error.status] ?? (error.status >= 500 ? "server_error" : "rejected");
}
