/** Adds recreated Jobs to the workloads that the watches show, and completes recreations that a crash interrupted. */
import type { RolloutStatus } from "../../api/rollout.ts";
import { idOf, type KubeObject, parseApiVersion } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { JOBS } from "../../apimachinery/resources.ts";
import { attempt } from "../../kube/access-error.ts";
import type { Client } from "../../kube/client.ts";
import type { Notifier } from "../../notifications/notifier.ts";
import type { EventRecorder } from "../../observability/events.ts";
import { copyName, isJob } from "../../workloads/job-copy.ts";
import { type Dependents, type RolloutContext, usedBy } from "../discover/dependents.ts";
import { lostJobEvent } from "../event-messages.ts";
import { lostJobNotification } from "../notifications.ts";
import type { Dependent } from "../types.ts";
import { finishRecreation, isGone } from "./recreate-job.ts";

/** A recreated Job, until watches show it. */
export interface RecreatedJob {
  dependent: Dependent;
  at: number;
}

/** A recreated Job that no watch shows within this time was deleted meanwhile. */
export const SHOWN_WITHIN_MS = 30_000;

export function recreated({ ...former }: Dependent, { metadata }: KubeObject, stamp: string): RecreatedJob {
  const { uid, resourceVersion, generation } = metadata;
  const progress = { state: "Rolling", message: "it was recreated" } as const;
  const workload = { ...former.workload, progress, stamps: [stamp] };
  return { dependent: { ...former, version: { uid, resourceVersion, generation }, workload }, at: performance.now() };
}

/**
 * `recreated` is by the uids of the former Jobs. A recreated Job is forgotten once watches show it and the status records it. A Job
 * that another client created does not have our stamp.
 */
export function withRecreated(
  dependents: Dependents,
  recreated: Map<string, RecreatedJob>,
  status: RolloutStatus | undefined,
): Dependents {
  if (recreated.size === 0) return dependents;
  const shown = new Set(dependents.all.map(({ version }) => version.uid));
  const recorded = new Set(status?.pending?.workloads?.map(({ uid }) => uid));
  const unrecorded = new Map<string, readonly string[]>();
  const now = performance.now();
  const unshown: Dependent[] = [];
  for (const [former, { dependent, at }] of recreated) {
    const { uid } = dependent.version;
    const isShown = shown.has(uid);
    const isUnrecorded = isShown && status?.pending !== undefined && !recorded.has(uid);
    if (isUnrecorded) unrecorded.set(uid, dependent.workload.stamps);
    else if (!isShown && at + SHOWN_WITHIN_MS >= now) unshown.push(dependent);
    else if (!shown.has(former)) recreated.delete(former);
  }
  const others = dependents.all
    .filter(({ version }) => !recreated.has(version.uid))
    .map((each): Dependent => {
      const stamps = [...each.workload.stamps, ...(unrecorded.get(each.version.uid) ?? [])];
      return { ...each, workload: { ...each.workload, stamps } };
    });
  const all = [...others, ...unshown].sort((a, b) => a.step - b.step);
  const there = new Set(all.map(({ ref }) => idOf(ref)));
  return {
    ...dependents,
    all,
    used: usedBy(all),
    missing: dependents.missing.filter((ref) => !there.has(idOf(ref))),
  };
}

/**
 * Completes interrupted recreations, and returns whether there was one: the watches show it in a moment. A Job that was not
 * deleted yet does not change. The status records which Jobs were about to be recreated, and from which copies. `settled` has the
 * uids of former Jobs that were recreated, or reported as lost. Throws Problem after all others were tried.
 */
export async function finishCutOff(
  {
    client,
    events,
    notifier,
  }: {
    client: Pick<Client, "get" | "createObject" | "delete">;
    events: Pick<EventRecorder, "record">;
    notifier: Pick<Notifier, "notify">;
  },
  { binding, identity, dependents, spec }: Pick<RolloutContext, "binding" | "identity" | "dependents" | "spec">,
  before: RolloutStatus | undefined,
  settled: Set<string>,
): Promise<boolean> {
  // The Job may exist and not be listed yet.
  if (dependents.pending) return false;
  const shown = new Set(dependents.all.map(({ version }) => version.uid));
  let isOne = false;
  let problem: Problem | undefined;
  for (const { apiVersion, kind, namespace, name, uid, state, stamp, copyUID } of before?.pending?.workloads ?? []) {
    const { group } = parseApiVersion(apiVersion);
    if (!isJob({ group, kind }) || state !== "Waiting" || stamp === undefined) continue;
    if (shown.has(uid) || settled.has(uid)) continue;
    const ref = { resource: JOBS, namespace, name };
    const mark = { annotation: spec.stamp.annotation, stamp };
    const job = await attempt(finishRecreation(client, identity, ref, uid, mark, copyUID));
    if (job instanceof Problem) {
      problem ??= job;
      continue;
    }
    isOne ||= job !== undefined;
    const isLost = job === undefined && copyUID !== undefined && (await isGone(client, identity, ref));
    if (isLost) {
      events.record(binding, lostJobEvent(ref, copyName(uid)));
      notifier.notify(lostJobNotification(binding, ref, uid));
    }
    if (job !== undefined || isLost) settled.add(uid);
  }
  if (problem !== undefined) throw problem;
  return isOne;
}
