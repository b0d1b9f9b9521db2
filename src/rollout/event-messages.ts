/** What a rollout comes to goes in; the condition RolledOut, and what to tell of it by events, goes out. Pure. */
import type { SecretBinding } from "../api/binding.ts";
import type { Dependent, Hold, RolloutEvent, RolloutStatus } from "../api/rollout.ts";
import { describeObject } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import type { Verdict } from "../controllers/binding/conditions.ts";
import type { Happening } from "../observability/events.ts";

/** What came of a rollout. */
interface Rolled {
  status: RolloutStatus | undefined;
  problem?: Problem;
  workloads: number | undefined;
}

/** `problem` is what keeps workloads from being found or restarted. */
export function rolledOut(status: RolloutStatus | undefined, problem: Problem | undefined, workloads: number): Verdict {
  if (problem !== undefined) return { ready: "False", reason: problem.reason, message: problem.message };
  const pending = status?.pending;
  if (pending !== undefined) return { ready: "False", reason: pending.reason, message: pending.message };
  if (workloads === 0) return { ready: "True", reason: "RolledOut", message: "no workload depends on the values" };
  const who =
    workloads === 1
      ? "the workload that depends on the values has"
      : `all ${workloads} workloads that depend on the values have`;
  return { ready: "True", reason: "RolledOut", message: `${who} them` };
}

/** No verdict while it is not known which workloads there are: what was said before stays. */
export const rolloutOf = ({ status, problem, workloads }: Rolled) => ({
  status,
  verdict: workloads === undefined ? undefined : rolledOut(status, problem, workloads),
});

/** Why nothing restarts for values that are not where they belong. */
export function notWritten(account: Problem | undefined, outcomes: readonly { problem?: Problem }[]): Hold | undefined {
  const problem = account ?? outcomes.find((each) => each.problem !== undefined)?.problem;
  return problem && { reason: "NotWritten", message: `not every target holds the new values yet: ${problem.message}` };
}

/** What to tell of the binding. */
export function bindingEvent(event: RolloutEvent): Happening | undefined {
  switch (event.what) {
    case "began":
      return rollout(
        "Normal",
        "RolloutBegan",
        `${count(event.workloads)} restart${event.workloads === 1 ? "s" : ""} for ${event.changed.join(", ")}`,
      );
    case "ended":
      return rollout(
        "Normal",
        "RolledOut",
        `${count(event.workloads)} rolled out ${event.seconds < 1 ? "within a second" : `in ${Math.round(event.seconds)} s`}`,
      );
    case "failed":
      return rollout("Warning", "RolloutFailed", `${describe(event.dependent)}: ${event.message}`);
    case "renewed":
      return rollout(
        "Warning",
        "BaselineRenewed",
        "the key by which changes are seen is not there any more, so the values of now were taken for those that the workloads have; restart by hand what changed meanwhile",
      );
    case "done":
      return event.message === undefined
        ? undefined
        : rollout("Warning", "NotReplaced", `${describe(event.dependent)}: ${event.message}`);
  }
}

/** What to tell of the workload itself. */
export function workloadEvent({ metadata: { namespace, name } }: SecretBinding, changed: readonly string[]): Happening {
  return rollout(
    "Normal",
    "Restarted",
    `restarted by SecretBinding ${namespace}/${name}, as ${changed.join(", ")} changed`,
  );
}

export function unprobedEvent(unprobed: readonly string[]): Happening {
  return rollout(
    "Warning",
    "NoReadinessProbe",
    `restarts before anybody knows that it works: no readiness probe in ${unprobed.join(", ")}; add one, or have it left alone by spec.rollout.requireReadiness`,
  );
}

export function unbudgetedEvent(): Happening {
  return rollout(
    "Warning",
    "NoPodDisruptionBudget",
    "no PodDisruptionBudget selects its pods, so that nodes which are drained while it restarts may take the others; add one, or have it left alone by spec.rollout.requireDisruptionBudget",
  );
}

const rollout = (type: Happening["type"], reason: string, note: string): Happening => ({
  type,
  reason,
  action: "Rollout",
  note,
});
const count = (workloads: number) => `${workloads} workload${workloads === 1 ? "" : "s"}`;
const describe = ({ ref }: Dependent) => describeObject(ref.resource.kind, ref.namespace, ref.name);
