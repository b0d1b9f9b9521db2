/** What a binding restarts, and what its status says of that: the types between finding workloads, deciding, and stamping. No I/O. */
import type { SecretBinding, StoredStatus } from "./binding.ts";

export type RolloutSpec = NonNullable<SecretBinding["spec"]["rollout"]>;
export type RolloutStatus = NonNullable<StoredStatus["rollout"]>;
export type Pending = NonNullable<RolloutStatus["pending"]>;
export type WorkloadStatus = NonNullable<Pending["workloads"]>[number];

/** The field manager of every stamp, whichever binding makes it. */
export const ROLLOUT_MANAGER = "inlay-rollout";

/** Digests by what they are of: `bucket/accessKeyID`, or `bucket/*` for all keys of a source. */
export type Digests = Readonly<Record<string, string>>;

export const digestId = (source: string, key: string): string => `${source}/${key}`;

/** What an id is of. A source's name has no slash. */
export function digestParts(id: string): { source: string; key: string } {
  const slash = id.indexOf("/");
  return { source: id.slice(0, slash), key: id.slice(slash + 1) };
}

/** Which workloads restart together: of a step, or of a rollout without any. */
export interface Group
  extends Pick<
    RolloutSpec,
    "consumersOf" | "consumersOfTargets" | "consumersBy" | "kinds" | "ownedByTargets" | "targets"
  > {
  name?: string;
  timeout?: string;
  onFailure: "Halt" | "Continue";
}

/** The steps of a rollout; of one without, itself: there a workload that fails holds no other back. */
export const groupsOf = (rollout: RolloutSpec): readonly Group[] =>
  rollout.steps ?? [{ ...rollout, onFailure: "Continue" }];
