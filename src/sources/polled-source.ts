/** What all polled kinds of source share: how their poll becomes a source. */
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import type { LiveSource } from "../transform/live-source.ts";
import type { Poll } from "./poll.ts";
import type { PolledSource, ResolveContext } from "./source.ts";

/** Replaces a missing first answer: the binding waits for it before its sources are read. */
const NOT_ANSWERED = new Problem("Unavailable", "the server has not answered yet");

/** `toLive` converts the content of an answer, and its version, to a source, or throws Problem. */
export function polledSource<T>(
  common: Pick<PolledSource, "place" | "description" | "policy" | "grantedObject">,
  poll: Poll<T> | undefined,
  { polls }: Pick<ResolveContext, "polls">,
  toLive: (content: T, version: string) => LiveSource,
): PolledSource {
  return {
    ...common,
    poll,
    read: async () => {
      const state = poll === undefined ? undefined : polls.stateOf(poll);
      if (state?.phase === "failed") return state.problem;
      if (state?.phase !== "synced") return NOT_ANSWERED;
      const { content, version } = state.answer;
      return attemptSync(() => toLive(content, version));
    },
  };
}
