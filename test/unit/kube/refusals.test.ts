/** Which 403 is trusted at once, and which is confirmed by a repetition. */
import assert from "node:assert/strict";
import { ApiError, type Asked } from "../../../src/kube/api-error.ts";
import { Refusals } from "../../../src/kube/refusals.ts";
import { fakeClock, settled } from "../clock.ts";

const get = (name: string, identity = "me"): Asked => ({
  identity,
  method: "GET",
  path: `/api/v1/namespaces/a/secrets/${name}`,
});
const forbidden = new ApiError("GET", 403, "Forbidden");

describe("a 403", () => {
  const clock = fakeClock();
  let refusals: Refusals;
  /** The readiness that the API server reports, and how often it was asked. */
  let [ready, asked] = [true, 0];
  beforeEach(() => {
    [ready, asked] = [true, 0];
    refusals = new Refusals(async () => {
      asked++;
      return ready;
    });
  });

  /** The request began that many milliseconds ago. */
  const refused = (request = get("one"), error: Error = forbidden, { agoMs = 0, deadlineMs = 15_000 } = {}) =>
    refusals.isToBeConfirmed(request, error, Date.now() - agoMs, Date.now() - agoMs + deadlineMs);
  /** The result after that many milliseconds, or `waits`. */
  async function outcome(ms: number, confirmed: Promise<boolean>): Promise<boolean | "waits"> {
    await clock.pass(ms);
    return Promise.race([confirmed, settled().then(() => "waits" as const)]);
  }

  it("is trusted at once if nothing was allowed before", async () => {
    refusals.granted(get("one", "another"));
    assert.equal(await outcome(0, refused()), false);
  });

  it("is confirmed by a repetition of each request after a success for its kind and namespace", async () => {
    const [first, second] = [get("one"), get("two")];
    refusals.granted(get("other"));
    const both = [refused(first), refused(second)] as const;
    assert.equal(await outcome(1_499, both[0]), "waits");
    await clock.pass(1);
    assert.deepEqual(await Promise.all(both), [true, true]);
    assert.equal(asked, 1);
    assert.equal(await outcome(0, refused(first)), false);
    assert.equal(await outcome(0, refused(get("three"))), false, "the first refusal was confirmed for all");
  });

  it("delays no request for long, even if many are refused", async () => {
    refusals.granted(get("other"));
    const first = refused();
    await clock.pass(1_000);
    const second = refused(get("two"));
    await clock.pass(500);
    assert.deepEqual(await Promise.all([first, second]), [true, true]);
  });

  it("is confirmed again if the repetition fails for another reason, such as a restart of the API server", async () => {
    refusals.granted(get("one"));
    const first = refused();
    await clock.pass(1_500);
    assert.equal(await first, true);
    assert.equal(await outcome(0, refused(get("one"), new Error("ECONNREFUSED"))), false);
    assert.equal(await outcome(0, refused(get("two"))), "waits");
  });

  it("is not confirmed before the API server is ready, for up to ten seconds", async () => {
    ready = false;
    refusals.granted(get("one"));
    const first = refused();
    assert.equal(await outcome(1_500, first), "waits");
    const second = refused(get("two"));
    assert.equal(await outcome(500, second), "waits");
    ready = true;
    await clock.pass(500);
    assert.deepEqual(await Promise.all([first, second]), [true, true]);
    ready = false;
    refusals.granted(get("one"));
    const last = refused(get("three"));
    for (let seconds = 0; seconds < 12; seconds++) await clock.pass(1_000);
    assert.equal(await outcome(0, last), true);
  });

  it("is trusted if the deadline of the request is too short", async () => {
    refusals.granted(get("one"));
    assert.equal(await outcome(0, refused(get("one"), forbidden, { deadlineMs: 10_000 })), false);
  });

  it("that comes late does not count, and the next one is confirmed", async () => {
    refusals.granted(get("one"));
    const late = refused(get("one"), forbidden, { agoMs: 5_000 });
    await assert.rejects(late, { status: 0, reason: "DeadlineExceeded" });
    assert.equal(await outcome(0, refused(get("one"))), "waits");
  });

  it("is the only failure that is confirmed", async () => {
    refusals.granted(get("one"));
    for (const error of [new ApiError("GET", 404, "NotFound"), new Error("x")])
      assert.equal(await outcome(0, refused(get("one"), error)), false);
    assert.equal(await outcome(0, refused({ ...get("one"), method: "PATCH" })), false);
  });
});
