/** Types for the rollout of a binding, in its spec and its status, and the ids of digests. No I/O. */
import type { SecretBinding, StoredStatus } from "./binding.ts";

export type RolloutSpec = NonNullable<SecretBinding["spec"]["rollout"]>;
export type RolloutStatus = NonNullable<StoredStatus["rollout"]>;
export type Pending = NonNullable<RolloutStatus["pending"]>;
export type WorkloadStatus = NonNullable<Pending["workloads"]>[number];

/** The field manager of all restart annotations, for every binding. */
export const ROLLOUT_MANAGER = "inlay-rollout";

/** Digests by id: `bucket/accessKeyID`, or `bucket/*` for all keys of a source. */
export type Digests = Readonly<Record<string, string>>;

export const digestId = (source: string, key: string): string => `${source}/${key}`;

/** The source and key of an id. The name of a source has no slash. */
export function digestParts(id: string): { source: string; key: string } {
  const slash = id.indexOf("/");
  return { source: id.slice(0, slash), key: id.slice(slash + 1) };
}

type Step = NonNullable<RolloutSpec["steps"]>[number];

/** The workloads that restart together: those of a step, or of a rollout without steps. */
export type Group = Partial<Step> & Required<Pick<Step, "kinds" | "onFailure">>;

/** The kinds of workloads that a step looks for, as spec.rollout.kinds has by default. */
const STEP_KINDS: Group["kinds"] = ["Deployment", "StatefulSet", "DaemonSet"];

/** The steps of a rollout. A rollout without steps is one group, in which a failed workload blocks no others. */
export const groupsOf = (rollout: RolloutSpec): readonly Group[] =>
  rollout.steps?.map((step) => ({ kinds: STEP_KINDS, onFailure: "Halt", ...step })) ?? [
    { ...rollout, onFailure: "Continue" },
  ];
