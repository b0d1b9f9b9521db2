/** The status of a composition while its claims are reconciled again, and while they can't be listed. */
import assert from "node:assert/strict";
import type { BindingComposition } from "../../../../src/api/composition.ts";
import { Problem, type Reason } from "../../../../src/apimachinery/problem.ts";
import { CompositionState } from "../../../../src/controllers/composition/composition-state.ts";
import { activeStatus, isCatchingUp } from "../../../../src/controllers/composition/composition-status.ts";

const problem = {
  claim: "team/harbor",
  reason: "FieldNotFound",
  message: "bindings[s3].patches[0]: the claim has no a",
};

function composition(accepted: "True" | "False", ready: string, observedGeneration = 2): BindingComposition {
  const condition = (type: string, status: string, reason: string) => ({ type, status, reason, message: "" });
  return {
    metadata: { name: "harbor", uid: "1", resourceVersion: "1", generation: 2 },
    status: {
      observedGeneration,
      claims: 3,
      problems: [problem],
      conditions: [condition("Accepted", accepted, "Accepted"), condition("Ready", "False", ready)],
    },
  } as unknown as BindingComposition;
}

/** A controller that has just started. */
function started(...pending: string[]): CompositionState {
  const state = new CompositionState();
  state.isListed = pending.length > 0;
  for (const each of pending) state.pending.add(each);
  return state;
}

describe("the status of a composition", () => {
  it("stays while claims are reconciled again, unless it reported otherwise before", () => {
    const done = started("team/harbor");
    done.pending.clear();
    assert.ok(isCatchingUp(composition("True", "Ready"), started()));
    assert.ok(isCatchingUp(composition("True", "FieldNotFound"), started("team/harbor")));
    assert.ok(!isCatchingUp(composition("True", "Ready"), done));
    assert.ok(!isCatchingUp(composition("True", "Reconciling"), started()));
    assert.ok(!isCatchingUp(composition("False", "KindNotFound"), started()));
    assert.ok(!isCatchingUp(composition("True", "Ready", 1), started()));
  });

  it("records a request to reconcile when every claim was reconciled since", () => {
    const requested = composition("True", "Ready");
    requested.metadata.annotations = { "inlay.dev/refresh": "now" };
    const state = started("team/harbor");
    const handled = () =>
      activeStatus(requested, state, { bindings: 0, ready: 0, stalled: 0 }, undefined, new Date(0)).lastHandledRefresh;
    assert.equal(handled(), undefined);
    assert.deepEqual([state.noticeRefresh(requested), state.noticeRefresh(requested)], [true, false]);
    assert.deepEqual([state.isListed, handled()], [false, undefined]);
    state.isListed = true;
    assert.equal(handled(), undefined);
    state.pending.clear();
    assert.equal(handled(), "now");
  });

  it("lists the problems of each namespace in turn, so that one with many does not hide those of others", () => {
    const state = started();
    const wrong = new Problem("FieldNotFound", "the claim has no a");
    for (const claim of [...Array.from({ length: 20 }, (_, n) => `many/${n}`), "few/a", "few/b"])
      state.record(claim, { uid: claim, desired: new Map(), held: new Set(), problems: [wrong], size: 0 });
    const counts = { bindings: 0, ready: 0, stalled: 0 };
    const { problems = [] } = activeStatus(composition("True", "Ready"), state, counts, undefined, new Date(0));
    assert.deepEqual(
      problems.map(({ claim }) => claim),
      ["many/0", "few/a", "many/1", "few/b", ...[2, 3, 4, 5, 6, 7].map((n) => `many/${n}`)],
    );
  });

  const judged = (
    state: CompositionState,
    { refusal, stalled = 0, claims }: { refusal?: Problem; stalled?: number; claims?: number } = {},
  ) => {
    const { status, ...rest } = composition("True", "Ready");
    const before = { ...rest, status: { ...status, ...(claims !== undefined && { claims }) } } as BindingComposition;
    const counts = { bindings: 2, ready: 2 - stalled, stalled };
    const { conditions = [] } = activeStatus(before, state, counts, refusal, new Date(0));
    return conditions.slice(1).map(({ type, status, reason }) => `${type} ${status} ${reason}`);
  };
  const listed = (...pending: string[]) => Object.assign(started(...pending), { isListed: true });
  const withProblem = (claim: string, reason: Reason, state = listed()) => {
    const problems = [new Problem(reason, "wrong")];
    state.record(claim, { uid: claim, desired: new Map(), held: new Set(), problems, size: 0 });
    return state;
  };

  it("is Stalled while bindings are, and reports what only an edit can fix before what ends by itself", () => {
    assert.deepEqual(judged(listed(), { stalled: 1 }), ["Ready False BindingsStalled", "Stalled True BindingsStalled"]);
    const unavailable = withProblem("team/a", "Unavailable");
    assert.deepEqual(judged(unavailable), ["Ready False Unavailable", "Reconciling True Unavailable"]);
    assert.equal(judged(unavailable, { stalled: 1 })[0], "Ready False BindingsStalled");
    assert.equal(judged(withProblem("team/b", "InvalidValue", unavailable))[0], "Ready False InvalidValue");
  });

  it("is not Stalled for claims and bindings that wait to be reconciled with a corrected composition", () => {
    const waiting = ["Ready Unknown Reconciling", "Reconciling True Reconciling"];
    assert.deepEqual(judged(withProblem("team/a", "InvalidValue", listed("team/a"))), waiting);
    const notReady = ["Ready False BindingsNotReady", "Reconciling True BindingsNotReady"];
    assert.deepEqual(judged(listed("team/a"), { stalled: 1 }), notReady);
    const other = withProblem("team/b", "InvalidValue", listed("team/a"));
    assert.deepEqual(judged(other), ["Ready False InvalidValue", "Stalled True InvalidValue"]);
  });

  it("is ready if the account may list no claims and there were none, and says so", () => {
    const refusal = new Problem("Forbidden", "may not list harborclusters.goharbor.io; allow it with: kubectl");
    const nothing = composition("True", "Ready");
    Object.assign(nothing.status ?? {}, { claims: 0 });
    const counts = { bindings: 0, ready: 0, stalled: 0 };
    const first = activeStatus(nothing, listed(), counts, refusal, new Date(0));
    const [, ready, ...progress] = first.conditions ?? [];
    assert.deepEqual([ready?.status, ready?.reason, progress], ["True", "ClaimsNotVisible", []]);
    assert.match(ready?.message ?? "", /may not list harborclusters\.goharbor\.io; allow it with: kubectl/);
    assert.equal(judged(listed(), { refusal, claims: 0 })[0], "Ready True ClaimsNotVisible");
  });

  it("is not ready if claims are hidden that it had, or can't be listed for another reason", () => {
    const forbidden = ["Ready False Forbidden", "Reconciling True Forbidden"];
    const refusal = new Problem("Forbidden", "may not list");
    assert.deepEqual(judged(listed(), { refusal, claims: 1 }), forbidden);
    assert.equal(judged(withProblem("team/a", "Unavailable"), { refusal, claims: 0 })[0], forbidden[0]);
    for (const reason of ["Unavailable", "ImpersonationForbidden", "TooManyWatches"] as const)
      assert.equal(judged(listed(), { refusal: new Problem(reason, "wrong"), claims: 0 })[0], `Ready False ${reason}`);
    const unlisted = judged(started(), { refusal, claims: 0 });
    assert.deepEqual(unlisted, ["Ready Unknown Reconciling", "Reconciling True Reconciling"]);
  });

  it("keeps the counts of claims that can't be listed", () => {
    const counts = { bindings: 3, ready: 3, stalled: 0 };
    const said = (refusal?: Problem) =>
      activeStatus(composition("True", "Ready"), started(), counts, refusal, new Date(0));
    const refused = said(new Problem("Forbidden", "may not list"));
    assert.deepEqual([refused.claims, refused.problems], [3, [problem]]);
    assert.equal(refused.conditions?.[1]?.reason, "Forbidden");
    assert.deepEqual([said().claims, said().problems], [0, []]);
  });
});
