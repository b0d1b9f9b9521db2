/** Several replicas. One leads, and another takes over when it is stopped, killed or paused. Nothing is written twice. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { Fleet } from "../controller/fleet.ts";
import { foundIn } from "../controller/leak-detector.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { createNamespace } from "../controller/test-namespace.ts";

const LEASE = "/apis/coordination.k8s.io/v1/namespaces/inlay-system/leases/inlay-controller";
/** How long it may take, on a busy machine, until another replica takes a lease that expired after nine seconds. */
const TAKEN_OVER_MS = 30_000;

describe("two replicas:", function () {
  this.timeout("2m");
  const replicas: ControllerProcess[] = [];
  let fleet: Fleet;

  const newReplica = async () => {
    const replica = new ControllerProcess(controlPlane(), "--leader-elect");
    replicas.push(replica);
    await replica.start();
    return replica;
  };
  const leads = (replica: ControllerProcess) =>
    eventually(() => assert.match(replica.output, /"msg":"leading"/), TAKEN_OVER_MS);
  const lease = async () => (await fleet.team.api.get(LEASE)).spec;
  /** Each target was written exactly once. */
  const writtenOnce = async (mark: number) =>
    assert.deepEqual([...(await fleet.writesSince(mark))].sort(), fleet.names.map((name) => [name, 1] as const).sort());

  /** Each target changed exactly once. If the client was killed, the audit log lacks the result of its requests. */
  const changedOnce = async (before: Map<string, number>) => {
    const once = fleet.names.map((name) => [name, (before.get(name) ?? 0) + 1] as const);
    assert.deepEqual(new Map([...(await fleet.generations())].sort()), new Map(once.sort()));
  };

  let leader: ControllerProcess;
  let standby: ControllerProcess;

  before(async () => {
    await stopSharedController();
    leader = await newReplica();
    await leads(leader);
    standby = await newReplica();
    fleet = new Fleet(await createNamespace({ controller: false }), 40);
    await fleet.launch();
  });
  after(async () => {
    for (const replica of replicas) replica.signal("SIGCONT");
    await Promise.all(replicas.map((replica) => replica.stop()));
    for (const { output } of replicas) assert.deepEqual(foundIn(output), []);
  });

  it("one leads, with a Lease record like client-go's, and the other watches nothing", async () => {
    const { holderIdentity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions } = await lease();
    assert.match(holderIdentity, /_[0-9a-f-]{36}$/);
    assert.match(leader.output, new RegExp(`"identity":"${holderIdentity}"`));
    assert.equal(leaseDurationSeconds, 9);
    assert.ok(Number.isInteger(leaseTransitions));
    for (const time of [acquireTime, renewTime]) assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    assert.doesNotMatch(standby.output, /"msg":"leading"/);
    const mark = await auditLog().mark();
    await fleet.rotate();
    await fleet.inStep();
    await writtenOnce(mark);
    assert.doesNotMatch(standby.output, /"msg":"wrote"/);
  });

  it("the other leads when the leader is stopped during its work, before the lease has expired", async () => {
    const mark = await auditLog().mark();
    const { leaseTransitions } = await lease();
    const rotated = fleet.rotate();
    await eventually(async () => assert.ok((await fleet.behind()).length < fleet.names.length));
    leader.signal("SIGTERM");
    await leads(standby);
    assert.equal(await leader.ended(), 0);
    assert.match(leader.output, /"msg":"released the lease"/);
    await rotated;
    await fleet.inStep();
    await writtenOnce(mark);
    assert.equal((await lease()).leaseTransitions, leaseTransitions + 1);
  });

  it("the new leader writes nothing if nothing changed", async () => {
    leader = standby;
    standby = await newReplica();
    const mark = await auditLog().mark();
    leader.signal("SIGTERM");
    await leads(standby);
    assert.equal(await leader.ended(), 0);
    leader = standby;
    await fleet.rotate(fleet.names.slice(0, 1));
    await fleet.inStep();
    await fleet.team.barrier({ controller: leader });
    assert.deepEqual([...(await fleet.writesSince(mark))], [[fleet.names[0], 1]]);
  });

  it("the other leads when the lease of a killed leader has expired, and finishes its work", async () => {
    standby = await newReplica();
    const before = await fleet.generations();
    const rotated = fleet.rotate();
    await eventually(async () => assert.ok((await fleet.behind()).length < fleet.names.length));
    leader.signal("SIGKILL");
    await rotated;
    await fleet.inStep(TAKEN_OVER_MS);
    await changedOnce(before);
  });

  it("a leader that was paused for longer than its lease changes nothing afterwards, and ends", async () => {
    const paused = standby;
    standby = await newReplica();
    const before = await fleet.generations();
    const rotated = fleet.rotate();
    await eventually(async () => assert.ok((await fleet.behind()).length < fleet.names.length));
    paused.signal("SIGSTOP");
    await leads(standby);
    await rotated;
    await fleet.inStep();
    await fleet.team.barrier({ controller: standby });
    const [holder, versions] = [(await lease()).holderIdentity, await fleet.versions()];
    paused.signal("SIGCONT");
    assert.equal(await paused.ended(), 1);
    assert.match(paused.output, /"msg":"lost the lease"/);
    await fleet.team.barrier({ controller: standby });
    // A half-sent request of the paused process may be completed now.
    assert.deepEqual(await fleet.versions(), versions);
    assert.equal((await lease()).holderIdentity, holder);
    await changedOnce(before);
    assert.deepEqual(await fleet.behind(), []);
  });

  it("a controller without leader election reports the leader, leaves it the Lease, and holds the Lease after it", async () => {
    const holder = (await lease()).holderIdentity;
    const other = new ControllerProcess(controlPlane());
    replicas.push(other);
    await other.start();
    const line = new RegExp(
      `^\\[!\\]second_controller degraded: another controller runs: ${holder} holds the Lease`,
      "m",
    );
    await eventually(async () => assert.match(await other.page("/readyz?verbose"), line));
    assert.equal(await other.page("/readyz"), "ok\n");
    assert.equal(await other.metric("inlay_installation_problems", 'check="second_controller"'), 1);
    assert.equal((await lease()).holderIdentity, holder);
    assert.equal(await standby.stop(), 0);
    await eventually(async () => assert.match(await other.page("/readyz?verbose"), /^\[\+\]second_controller ok$/m));
    const after = (await lease()).holderIdentity;
    assert.ok(after !== undefined && after !== holder);
    assert.equal(await other.stop(), 0);
    assert.equal((await lease()).holderIdentity, undefined);
  });
});
