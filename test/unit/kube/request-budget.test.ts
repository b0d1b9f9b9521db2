/** How long, and how often, a piece of work may send requests. */
import assert from "node:assert/strict";
import { OVER_BUDGET, RequestBudget } from "../../../src/kube/request-budget.ts";
import type { Request } from "../../../src/kube/transport.ts";
import { fakeClock } from "../clock.ts";

const limits = { forMs: 60_000, requests: 3 };

describe("the requests of a reconcile", () => {
  const clock = fakeClock();

  function limited(mayMark = true) {
    const budget = new RequestBudget({ isGranted: async () => mayMark }, limits);
    let sent = 0;
    const marks: (string | undefined)[] = [];
    const request = async <T>({ mark }: Request) => {
      sent++;
      marks.push(mark);
      return undefined as T;
    };
    const transport = budget.limit({ request });
    const send = (identity = "system:serviceaccount:team:inlay") =>
      transport.request({ method: "GET", path: "/x", identity } as Request);
    return { budget, send, sent: () => sent, marks };
  }
  const isOver = (error: unknown) => (error as { reason: string }).reason === OVER_BUDGET;

  it("are refused beyond their number, except those of the controller itself", async () => {
    const { budget, send, sent } = limited();
    const { isOver: over } = await budget.during(undefined, async () => {
      for (let n = 0; n < 3; n++) await send();
      await assert.rejects(send(), isOver);
      await send("");
    });
    assert.deepEqual([over, sent()], [true, 4]);
  });

  it("are refused after the deadline", async () => {
    const { budget, send } = limited();
    const { isOver: over } = await budget.during(undefined, async () => {
      await send();
      await clock.pass(60_001);
      await assert.rejects(send(), isOver);
    });
    assert.equal(over, true);
  });

  it("have limits of their own in each reconcile, and none outside of one or after its end", async () => {
    const { budget, send } = limited();
    const sendAll = async () => {
      for (let n = 0; n < 3; n++) await send();
    };
    const both = await Promise.all([budget.during(undefined, sendAll), budget.during(undefined, sendAll)]);
    assert.deepEqual(
      both.map(({ isOver: over }) => over),
      [false, false],
    );
    for (let n = 0; n < 10; n++) await send();
    const { promise, resolve } = Promise.withResolvers<void>();
    let later: Promise<void> | undefined;
    await budget.during(undefined, async () => {
      later = promise.then(sendAll).then(sendAll);
    });
    resolve();
    await later;
  });

  it("name the binding, also those that end after the reconcile, but not those of the controller itself", async () => {
    const { budget, send, marks } = limited();
    const { promise, resolve } = Promise.withResolvers<void>();
    let later: Promise<unknown> | undefined;
    await budget.during("team/harbor/a-uid", async () => {
      await send();
      await send("");
      later = promise.then(() => send());
    });
    resolve();
    await later;
    await send();
    assert.deepEqual(marks, ["team/harbor/a-uid", undefined, "team/harbor/a-uid", undefined]);
  });

  it("do not name it if the controller may not", async () => {
    const { budget, send, marks } = limited(false);
    await budget.during("team/harbor/a-uid", () => send());
    assert.deepEqual(marks, [undefined]);
  });
});
