/** Computes the status of a composition. Pure. */
import { bindingKey, type StoredBinding } from "../../api/binding.ts";
import { COMPOSITION_LABEL, composedFrom } from "../../api/composed.ts";
import type { BindingComposition } from "../../api/composition.ts";
import { withProgress } from "../../api/progress.ts";
import { handledRefresh, refreshOf } from "../../api/refresh.ts";
import { conditionOf, MAX_MESSAGE_LENGTH, type Verdict } from "../../api/verdict.ts";
import { Counts } from "../../apimachinery/maps.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import { fixedBy, mostUrgent } from "../../apimachinery/reasons.ts";
import { isStalled, readinessOf } from "../readiness.ts";
import type { CompositionState } from "./composition-state.ts";
import { placeOfClaim } from "./keys.ts";

export type CompositionStatus = NonNullable<BindingComposition["status"]>;

/** How many bindings a composition has, how many of them are ready, and how many wait for a user. */
export interface BindingCounts {
  readonly bindings: number;
  readonly ready: number;
  readonly stalled: number;
}

const MAX_PROBLEMS = 10;
const RECONCILING = "Reconciling";
/** The places in a composition. */
const PLACE = /^(?:bindings|notSupported)\[/;

/** Counts the bindings of the composition's claims. A label that other users set does not count. */
export function countBindings(
  composition: string,
  all: readonly StoredBinding[],
  records: CompositionState["records"],
): BindingCounts {
  const own = all.filter((binding) => {
    const from = binding.metadata.labels?.[COMPOSITION_LABEL] === composition ? composedFrom(binding) : undefined;
    const record = from && records.get(from.claim);
    return record !== undefined && (record.desired.has(bindingKey(binding)) || record.held.has(from?.template ?? ""));
  });
  // A status of the spec from before says nothing of the present one.
  const judged = own.filter(({ metadata, status }) => status?.observedGeneration === metadata.generation);
  const notReady = judged.filter((binding) => readinessOf(binding)?.status !== "True");
  const stalled = notReady.filter(isStalled).length;
  return { bindings: own.length, ready: judged.length - notReady.length, stalled };
}

/** The status of a composition that Inlay processes. */
export function activeStatus(
  composition: BindingComposition,
  {
    records,
    leftovers,
    pending,
    isListed,
    refresh,
  }: Pick<CompositionState, "records" | "leftovers" | "pending" | "isListed" | "refresh">,
  counts: BindingCounts,
  refusal: Problem | undefined,
  now: Date,
): CompositionStatus {
  const ofClaims = [...records].flatMap(([claim, { problems }]) => problems.map((problem) => ({ claim, problem })));
  const problems = [...ofClaims, ...[...leftovers].map(([claim, problem]) => ({ claim, problem }))];
  const { status: last } = composition;
  const isSettled = isListed && pending.size === 0;
  const hadClaims = records.size > 0 || (last?.claims ?? 0) > 0;
  // What is wrong with a claim or a binding that waits to be reconciled may be fixed already.
  const verdict =
    refusal !== undefined
      ? unseen(refusal, hadClaims)
      : readiness(
          problems.filter(({ claim }) => !pending.has(claim)),
          isSettled ? counts : { ...counts, stalled: 0 },
        );
  const found = {
    claims: records.size,
    bindings: counts.bindings,
    readyBindings: counts.ready,
    problems: inTurns(problems).map(({ claim, problem }) => problemOf(claim, problem)),
  };
  // After a start, claims that can't be listed are not known: the counts from before stay.
  const { observedGeneration: _, conditions: __, ...before } = last ?? {};
  const isHandled = refresh === refreshOf(composition) && (refusal !== undefined || isSettled);
  return {
    ...found,
    ...(refusal !== undefined && before),
    ...handledRefresh(composition, isHandled),
    observedGeneration: composition.metadata.generation ?? 0,
    conditions: conditionsOf(composition, ACCEPTED, isSettled ? verdict : waiting(pending.size, verdict), now),
  };
}

/**
 * Whether claims that were reconciled before wait to be reconciled again, as after a restart. Until they are, the status stays,
 * so that nothing is written if nothing has changed.
 */
export function isCatchingUp(
  { metadata, status }: BindingComposition,
  { pending, isListed }: Pick<CompositionState, "pending" | "isListed">,
): boolean {
  if ((isListed && pending.size === 0) || status?.observedGeneration !== metadata.generation) return false;
  const of = (type: string) => status?.conditions?.find((each) => each.type === type);
  return of("Accepted")?.status === "True" && of("Ready")?.reason !== RECONCILING;
}

/** The status of a composition that Inlay does not process: its bindings and their counts stay. */
export function heldStatus(
  composition: BindingComposition,
  accepted: Verdict,
  now: Date,
  ready = accepted,
): CompositionStatus {
  return {
    ...composition.status,
    ...handledRefresh(composition, true),
    observedGeneration: composition.metadata.generation ?? 0,
    conditions: conditionsOf(composition, accepted, ready, now),
  };
}

function conditionsOf(composition: BindingComposition, accepted: Verdict, ready: Verdict, now: Date) {
  const judged = [conditionOf("Accepted", composition, accepted, now), conditionOf("Ready", composition, ready, now)];
  return withProgress(composition, judged, now);
}

export const ACCEPTED: Verdict = {
  ready: "True",
  reason: "Accepted",
  message: "Inlay creates bindings for every claim",
};

export const SUSPENDED: Verdict = {
  ready: "Unknown",
  reason: "Suspended",
  message: "spec.suspend is true, so no binding is created, changed or deleted; set it to false to catch up",
};

/** For a deleted composition. Its bindings may take a minute, until they have released what they wrote. */
export const deleting = (bindings: number): Verdict => ({
  ready: "Unknown",
  reason: RECONCILING,
  message: `the composition is being deleted, and waits for the deletion of its ${bindings} bindings`,
});

export const KEPT_BY_OTHERS: Verdict = {
  ready: "Unknown",
  reason: RECONCILING,
  message: "the composition is being deleted, and a finalizer of another client keeps it",
};

export const notAccepted = ({ reason, message }: Problem): Verdict => ({ ready: "False", reason, message });

/** An installation for one namespace processes no compositions. */
export const outOfScope = (scope: string): Verdict => ({
  ready: "False",
  reason: "OutOfScope",
  message: `this Inlay is installed for the namespace ${scope} only and processes no compositions; create a SecretBinding in that namespace, or ask for an Inlay for the whole cluster`,
});

/**
 * For claims that can't be seen. If the account may not list any, and the composition had none so far, there is nothing to do yet: the
 * permissions may come with the namespaces of teams. Otherwise claims are hidden whose bindings exist.
 */
function unseen({ reason, message }: Problem, hadClaims: boolean): Verdict {
  if (reason !== "Forbidden" || hadClaims) return { ready: "False", reason, message };
  return {
    ready: "True",
    reason: "ClaimsNotVisible",
    message: `no claim is visible, so no binding is created: ${message}`,
  };
}

function readiness(
  problems: readonly { claim: string; problem: Problem }[],
  { bindings, ready, stalled }: BindingCounts,
): Verdict {
  const first = mostUrgent(problems, ({ problem }) => problem.reason);
  if (first !== undefined && !(stalled > 0 && fixedBy(first.problem.reason) === "Itself")) {
    const more = problems.length > 1 ? ` (and ${problems.length - 1} more, see status.problems)` : "";
    return { ready: "False", reason: first.problem.reason, message: `${first.claim}: ${first.problem.message}${more}` };
  }
  if (ready === bindings) return { ready: "True", reason: "Ready", message: `all ${bindings} bindings are ready` };
  const list = `list them with: kubectl get secretbindings -A -l ${COMPOSITION_LABEL}`;
  const counts = `${ready} of ${bindings} bindings are ready`;
  if (stalled === 0) return { ready: "False", reason: "BindingsNotReady", message: `${counts}; ${list}` };
  return { ready: "False", reason: "BindingsStalled", message: `${counts}, and ${stalled} wait for a user; ${list}` };
}

/** A problem is reported even while claims wait. */
function waiting(pending: number, verdict: Verdict): Verdict {
  if (verdict.ready === "False") return verdict;
  const message = pending === 0 ? "the claims are being listed" : `${pending} claims are waiting to be reconciled`;
  return { ready: "Unknown", reason: RECONCILING, message };
}

/** The problems to list. Namespaces take turns, so that one with many problems does not hide those of others. */
function inTurns<T extends { claim: string }>(problems: readonly T[]): T[] {
  const counts = new Counts();
  const turns = problems.flatMap((each) => {
    const turn = counts.add(placeOfClaim(each.claim).namespace, 1);
    return turn <= MAX_PROBLEMS ? [{ each, turn }] : [];
  });
  return turns
    .sort((a, b) => a.turn - b.turn)
    .slice(0, MAX_PROBLEMS)
    .map(({ each }) => each);
}

function problemOf(
  claim: string,
  { reason, message, at }: Problem,
): NonNullable<CompositionStatus["problems"]>[number] {
  const place = at.find((each) => PLACE.test(each));
  return { claim, ...(place !== undefined && { place }), reason, message: message.slice(0, MAX_MESSAGE_LENGTH) };
}

/** What the metrics show of a composition: the counts that its status has. */
export function countsOf(composition: BindingComposition) {
  const { metadata, status = {} } = composition;
  const { bindings = 0, readyBindings: ready = 0 } = status;
  const labels = { composition: metadata.name };
  const createdAt = metadata.creationTimestamp ?? "";
  return { labels, createdAt, ready, notReady: bindings - ready, is: readinessOf(composition) };
}
