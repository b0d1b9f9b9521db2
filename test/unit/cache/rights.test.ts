/** When streams become wider because an account has permissions again, and how often these are reviewed. */
import assert from "node:assert/strict";
import { mock } from "node:test";
import { Informers } from "../../../src/cache/informers.ts";
import type { ObjectSubscription } from "../../../src/cache/subscription.ts";
import type { Watcher } from "../../../src/cache/watcher.ts";
import { serviceAccountIdentity } from "../../../src/kube/identity.ts";
import { fakeClock, settled } from "../clock.ts";
import { SECRETS } from "../resources.ts";
import { FakeApi } from "./api.ts";
import { apiError } from "./list-watch.ts";

const ACCOUNT = serviceAccountIdentity("registry", "inlay");
const interest = (name: string): ObjectSubscription => ({
  identity: ACCOUNT,
  ref: { resource: SECRETS, namespace: "registry", name },
});
const right = (name: string) => `${ACCOUNT} registry/secrets ${name}`;
const [bucket, other] = [interest("bucket"), interest("other")];
const ALL = right("*");
const ONES = [right("bucket"), right("other")];

describe("informers whose account has its permissions again", () => {
  let api: FakeApi;
  let informers: Informers;
  let watcher: Watcher;
  beforeEach(() => {
    api = new FakeApi();
    informers = new Informers(api.transport, api.client, () => {});
    watcher = informers.watcher(() => {});
    // A refused stream retries after 250 ms, then after 500 ms, 1 s, and every 2 s.
    mock.method(Math, "random", () => 0);
  });
  afterEach(async () => {
    await informers.stop();
    mock.restoreAll();
  });
  // Runs after the hook that stops the streams: a timer must end in the clock in which it began.
  const clock = fakeClock();

  async function observe(...interests: ObjectSubscription[]): Promise<void> {
    watcher.subscribe("a", interests);
    await settled();
    await settled();
  }

  /** Opens one stream for both names, and revokes the account's permission for it and for each name. */
  async function lose(): Promise<void> {
    api.rights.add(ALL);
    await observe(bucket, other);
    assert.deepEqual(api.open, [ALL]);
    api.rights.delete(ALL);
    api.streams.get(ALL)?.end(apiError(403));
    await settled();
    assert.deepEqual([api.open, informers.states.length], [[], 2]);
    api.reviews.length = 0;
  }
  const reviewed = () => api.reviews.filter((review) => review === ALL).length;

  it("merge one second after they recover, even if the last review was less than a second ago", async () => {
    await lose();
    api.rights.add(ALL);
    await clock.pass(250);
    assert.deepEqual(api.open, ONES);
    await clock.pass(1_000);
    assert.deepEqual([api.open, informers.states.length, reviewed()], [[ALL], 1, 1]);
    for (const each of [bucket, other]) assert.equal(watcher.get("a", each).phase, "synced");
  });

  it("merge after a long refusal", async () => {
    await lose();
    for (let attempt = 0; attempt < 3; attempt++) await clock.pass(2_000);
    assert.deepEqual([informers.states.length, watcher.get("a", bucket).phase], [2, "failed"]);
    api.rights.add(ALL);
    await clock.pass(2_000);
    await clock.pass(1_000);
    assert.deepEqual([api.open, informers.states.length], [[ALL], 1]);
    for (const each of [bucket, other]) assert.equal(watcher.get("a", each).phase, "synced");
  });

  it("cause one review for all that recover before it", async () => {
    await lose();
    api.rights.add(right("bucket"));
    await clock.pass(250);
    api.rights.add(right("other"));
    await clock.pass(500);
    assert.deepEqual([api.open, reviewed()], [ONES, 0]);
    for (let passed = 0; passed < 10; passed++) await clock.pass(500);
    assert.deepEqual([api.open, reviewed()], [ONES, 1]);
  });

  it("cause another review if one of them recovers after it", async () => {
    await lose();
    api.rights.add(right("bucket"));
    await clock.pass(250);
    await clock.pass(1_000);
    assert.deepEqual([api.open, reviewed()], [[right("bucket")], 1]);
    api.rights.add(ALL);
    await clock.pass(1_000);
    assert.deepEqual([api.open, reviewed()], [ONES, 1]);
    await clock.pass(1_000);
    assert.deepEqual([api.open, reviewed()], [[ALL], 2]);
  });

  it("cause no review once they are closed", async () => {
    for (const close of [() => observe(), () => informers.stop()]) {
      await lose();
      api.rights.add(ALL);
      await clock.pass(250);
      assert.deepEqual(api.open, ONES);
      await close();
      await clock.pass(2_000);
      assert.deepEqual([api.open, api.reviews], [[], []]);
    }
  });

  it("merge when one of them restarts and the account may watch all objects by then", async () => {
    for (const one of ONES) api.rights.add(one);
    await observe(bucket, other);
    assert.deepEqual(api.open, ONES);
    await clock.pass(61_000);
    api.rights.add(ALL);
    api.streams.get(right("bucket"))?.end();
    await clock.pass(0);
    // This includes the stream that did not restart.
    assert.deepEqual(api.open, [ALL]);
    for (const each of [bucket, other]) assert.equal(watcher.get("a", each).phase, "synced");
  });
});
