/** The requests to servers outside of the cluster that poller.ts repeats, and their states. */
import type { JsonObject, KubeObject, ObjectRef } from "../apimachinery/objects.ts";
import type { Problem, Reason } from "../apimachinery/problem.ts";
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
  /** The reason while there is no answer, and nothing more is known. */
  readonly unavailable: Reason;
  /** Called before it is requested at once for a binding, such as to retry a failed login. */
  refreshing?(): void;
  /** Throws Problem. Returns `last`, the former answer, if it is still valid. */
  ask(last: PollAnswer<T> | undefined): Promise<PollAnswer<T>>;
  /** The answer on the command line, which contacts no server. Throws Problem. */
  fromFile(files: StoreFiles): PollAnswer<T>;
}

/** The files that replace the servers on the command line. */
export interface StoreFiles {
  /** The fields of a key in a part of the file of values. Undefined if the file lacks the key. */
  fieldsOf(part: string, key: string): JsonObject | undefined;
  /** Notes what to add to the file of values. */
  missing(part: string, key: string): void;
  /** An object in the files, such as a connection. */
  find(ref: ObjectRef): KubeObject | undefined;
  note(text: string): void;
}

/** The present state of a poll. A binding that finds a pending poll is requeued when it changes. */
export type PollState<T = unknown> =
  | { readonly phase: "pending" }
  | { readonly phase: "synced"; readonly answer: PollAnswer<T> }
  | { readonly phase: "failed"; readonly problem: Problem };
