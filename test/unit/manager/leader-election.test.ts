/** Which replica leads, and when. Time moves only when a test moves it. */
import assert from "node:assert/strict";
import { LeaderElection } from "../../../src/manager/leader-election.ts";
import { fakeClock, settled } from "../clock.ts";
import { LeaseServer } from "./lease-server.ts";

const silent = { debug() {}, info() {}, warn() {}, error() {} };

describe("leader election", () => {
  let server: LeaseServer;
  let replicas: Replica[];

  /** One replica, and the calls that it received. */
  class Replica {
    readonly calls: string[] = [];
    reachable = true;
    /** How far its clock is ahead of its timers: the process was paused for that long. */
    pausedMs = 0;
    readonly election: LeaderElection;
    constructor(identity: string) {
      const candidate = { namespace: "inlay-system", identity, now: () => Date.now() + this.pausedMs };
      const client = server.client(() => this.reachable);
      this.election = new LeaderElection(client, candidate, silent);
      replicas.push(this);
    }
    async start(): Promise<this> {
      this.election.start({ leading: () => this.calls.push("leading"), lost: () => this.calls.push("lost") });
      await settled();
      return this;
    }
  }

  beforeEach(() => {
    server = new LeaseServer();
    replicas = [];
  });
  afterEach(() => Promise.all(replicas.map(({ election }) => election.stop())));
  // Runs after the hook that stops the replicas: a timer must end in the clock in which it began.
  const clock = fakeClock();

  /** Advances the time in steps shorter than any timer of an election. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) await clock.pass(100);
  };
  const started = (identity: string) => new Replica(identity).start();
  const spec = () => server.lease?.spec ?? assert.fail("there is no lease");

  it("creates the Lease with the record that client-go would write", async () => {
    const one = await started("one");
    assert.deepEqual(one.calls, ["leading"]);
    assert.equal(one.election.mayWrite, true);
    const { apiVersion, kind, metadata } = server.lease ?? assert.fail();
    assert.deepEqual([apiVersion, kind, metadata.name], ["coordination.k8s.io/v1", "Lease", "inlay-controller"]);
    assert.equal(metadata.namespace, "inlay-system");
    const time = "2026-01-01T00:00:00.000000Z";
    assert.deepEqual(spec(), {
      holderIdentity: "one",
      leaseDurationSeconds: 9,
      acquireTime: time,
      renewTime: time,
      leaseTransitions: 0,
    });
  });

  it("renews by single requests while the others wait", async () => {
    await started("one");
    const { acquireTime } = spec();
    server.asked.splice(0);
    await pass(20_000);
    assert.ok(server.asked.every((verb) => verb === "replace"));
    assert.ok(server.asked.length >= 20 && server.asked.length <= 28, `${server.asked.length}`);
    assert.deepEqual([spec().acquireTime, spec().leaseTransitions], [acquireTime, 0]);
    const two = await started("two");
    await pass(60_000);
    assert.deepEqual([two.calls, two.election.mayWrite, two.election.inTouch], [[], false, true]);
  });

  it("elects another leader within 12 s of a crash, and not while the former one may still write", async () => {
    const one = await started("one");
    const two = await started("two");
    await pass(5_000);
    one.reachable = false;
    for (let passed = 0; two.calls.length === 0; passed += 100) {
      assert.ok(passed < 12_000);
      await clock.pass(100);
      assert.ok(!(one.election.mayWrite && two.election.mayWrite));
    }
    assert.deepEqual([spec().holderIdentity, spec().leaseTransitions], ["two", 1]);
    assert.deepEqual(one.calls, ["leading", "lost"]);
  });

  it("elects another leader within 2 s when the leader stops, by a record without a holder", async () => {
    const one = await started("one");
    const two = await started("two");
    await pass(5_000);
    await one.election.stop();
    assert.equal(one.election.mayWrite, false);
    assert.deepEqual([spec().holderIdentity, spec().leaseDurationSeconds], [undefined, 1]);
    await pass(2_000);
    assert.deepEqual([two.calls, spec().holderIdentity, spec().leaseTransitions], [["leading"], "two", 1]);
    assert.deepEqual(one.calls, ["leading"]);
  });

  it("does not change the lease when a standby stops", async () => {
    await started("one");
    const two = await started("two");
    await two.election.stop();
    assert.equal(spec().holderIdentity, "one");
  });

  it("ends the leadership permanently when the lease can't be renewed for 6 s", async () => {
    const one = await started("one");
    one.reachable = false;
    await pass(4_800);
    assert.deepEqual([one.calls, one.election.mayWrite], [["leading"], true]);
    await pass(2_400);
    assert.deepEqual([one.calls, one.election.mayWrite, one.election.inTouch], [["leading", "lost"], false, true]);
    await pass(5_000);
    assert.equal(one.election.inTouch, false);
    one.reachable = true;
    await pass(20_000);
    assert.deepEqual([one.calls, one.election.mayWrite], [["leading", "lost"], false]);
  });

  it("keeps the leader when requests fail for less than 6 s", async () => {
    const one = await started("one");
    for (let round = 0; round < 3; round++) {
      one.reachable = false;
      await pass(4_000);
      one.reachable = true;
      await pass(2_000);
    }
    assert.deepEqual([one.calls, one.election.mayWrite], [["leading"], true]);
  });

  it("ends the leadership of a paused process at once, which does not even write the lease", async () => {
    const one = await started("one");
    one.pausedMs = 6_000;
    assert.equal(one.election.mayWrite, false);
    server.asked.splice(0);
    await pass(5_000);
    assert.deepEqual([one.calls, server.asked], [["leading", "lost"], []]);
  });

  it("ends the leadership at once when another replica holds the lease", async () => {
    const one = await started("one");
    const lease = server.lease ?? assert.fail();
    server.put({ ...lease, spec: { ...lease.spec, holderIdentity: "two" } });
    await pass(1_200);
    assert.deepEqual([one.calls, one.election.mayWrite, spec().holderIdentity], [["leading", "lost"], false, "two"]);
  });

  it("keeps the leader when another client changes other fields of the Lease, or deletes it", async () => {
    const one = await started("one");
    const lease = server.lease ?? assert.fail();
    server.put({ ...lease, metadata: { ...lease.metadata, labels: { team: "a" } } });
    await pass(3_000);
    assert.deepEqual([one.calls, server.lease?.metadata.labels], [["leading"], { team: "a" }]);
    server.lease = undefined;
    await pass(3_000);
    assert.deepEqual([one.calls, one.election.mayWrite, spec().holderIdentity], [["leading"], true, "one"]);
  });

  it("trusts no other clock: a lease expires only if its record does not change", async () => {
    for (const renewTime of ["2020-01-01T00:00:00.000000Z", "2030-01-01T00:00:00.000000Z"]) {
      server.put({
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { name: "inlay-controller", namespace: "inlay-system" },
        spec: { holderIdentity: "dead", leaseDurationSeconds: 4, renewTime, leaseTransitions: 3 },
      });
      const one = await started("one");
      await pass(4_000);
      assert.deepEqual(one.calls, []);
      await pass(1_200);
      assert.deepEqual([one.calls, spec().leaseTransitions], [["leading"], 4]);
      await one.election.stop();
    }
  });

  it("takes a Lease that another client created without a record", async () => {
    const metadata = { name: "inlay-controller", namespace: "inlay-system" };
    server.put({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata } as never);
    assert.deepEqual((await started("one")).calls, ["leading"]);
  });

  it("elects one leader when replicas start at the same time", async () => {
    const [one, two] = [new Replica("one"), new Replica("two")];
    await Promise.all([one.start(), two.start()]);
    await pass(3_000);
    assert.equal([...one.calls, ...two.calls].join(), "leading");
  });
});
