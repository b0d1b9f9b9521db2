/** Answers from files in place of stores, for the code that resolves and reads sources. Every connection is ready. */
import { describeObject } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import type { Poll, PollState, StoreFiles } from "../sources/poll.ts";
import { connectionKinds } from "../sources/registry.ts";
import type { ResolveContext } from "../sources/source.ts";
import type { FileCluster } from "./file-cluster.ts";
import type { StoreValues } from "./store-values.ts";

export interface FileStores extends Pick<ResolveContext, "connections" | "polls"> {
  /** Missing values, and what to add to the files. */
  readonly notes: ReadonlySet<string>;
}

/** For one binding. */
export function fileStores({ find }: Pick<FileCluster, "find">, values: StoreValues): FileStores {
  const notes = new Set<string>();
  const note = (text: string) => void notes.add(text);
  const files: StoreFiles = {
    find,
    fieldsOf: values.fieldsOf,
    missing: (part, key) => note(`there are no values for ${part} ${key}; ${values.adviceFor(part, key)}`),
    note,
  };
  return {
    notes,
    connections: {
      get(ref) {
        const found = find(ref);
        const called = describeObject(ref.resource.kind, ref.namespace, ref.name);
        if (found === undefined)
          note(`${called} is not in the files, so what it allows is not checked; add it to the files`);
        return connectionKinds()
          .find(({ resource }) => resource === ref.resource)
          ?.fromFile(found);
      },
    },
    polls: {
      stateOf<T>(poll: Poll<T>): PollState<T> {
        const answer = attemptSync(() => poll.fromFile(files));
        return answer instanceof Problem ? { phase: "failed", problem: answer } : { phase: "synced", answer };
      },
    },
  };
}
