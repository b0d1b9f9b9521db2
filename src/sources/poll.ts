/** The requests to servers outside of the cluster that poller.ts repeats, and their states. */
import type { Problem } from "../apimachinery/problem.ts";
import type { PollAnswer } from "./answer-cache.ts";

/** A request. Polls with the same id have the same answer and are in the same group. An id contains no value. */
export interface Poll<T = unknown> {
  readonly id: string;
  /** Polls that are refreshed together, such as those of a connection. */
  readonly group: string;
  /** The server, which has a limit of requests at the same time. By default, the group is one server. */
  readonly queue?: string;
  /** The interval in ms. If polls with the same id differ, the shortest one counts. */
  readonly refreshMs: number;
  /** Throws Problem. Returns `last`, the former answer, if it is still valid. */
  ask(last: PollAnswer<T> | undefined): Promise<PollAnswer<T>>;
}

/** The present state of a poll. A binding that finds a pending poll is requeued when it changes. */
export type PollState<T = unknown> =
  | { readonly phase: "pending" }
  | { readonly phase: "synced"; readonly answer: PollAnswer<T> }
  | { readonly phase: "failed"; readonly problem: Problem };
