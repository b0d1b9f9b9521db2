/** A controller without leader election in the Lease: it is the holder, or reports who is. Time moves only when a test moves it. */
import assert from "node:assert/strict";
import type { KubeObject, ObjectRef } from "../../../src/apimachinery/objects.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { LeaderElection } from "../../../src/manager/leader-election.ts";
import { Unelected } from "../../../src/manager/manager.ts";
import type { InstallationProblem } from "../../../src/observability/installation-problems.ts";
import { fakeClock, settled } from "../clock.ts";
import { fakeClient } from "../fakes.ts";
import { LeaseServer } from "./lease-server.ts";

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const NAMESPACE = "inlay-system";

describe("a controller without leader election", () => {
  let server: LeaseServer;
  let denied: string | undefined;
  let hasNamespace: boolean;
  const running: { stop(): Promise<void> }[] = [];

  beforeEach(() => {
    server = new LeaseServer();
    [denied, hasNamespace] = [undefined, true];
  });
  afterEach(() => Promise.all(running.splice(0).map((each) => each.stop())));
  // Runs after the hook that stops them: a timer must end in the clock in which it began.
  const clock = fakeClock();

  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) await clock.pass(100);
  };

  async function started(identity: string) {
    const reported: (InstallationProblem | undefined)[] = [];
    const said: string[] = [];
    const lease = server.client();
    const client = fakeClient({
      ...lease,
      get: (as: string, ref: ObjectRef): Promise<KubeObject> => {
        if (ref.resource.plural !== "namespaces") return lease.get(as, ref);
        if (hasNamespace)
          return Promise.resolve({
            apiVersion: "v1",
            kind: "Namespace",
            metadata: { name: "", uid: "", resourceVersion: "" },
          });
        throw new ApiError("GET", 404, "NotFound");
      },
      may: async (_: string, verb: string) => verb !== denied,
    });
    const debugged: string[] = [];
    const log = {
      debug: (_: object, text: string) => debugged.push(text),
      info: (_: object, text: string) => said.push(text),
    };
    const problems = { report: (_: string, problem: InstallationProblem | undefined) => reported.push(problem) };
    const candidate = { namespace: NAMESPACE, identity, now: () => Date.now() };
    const one = new Unelected(client, candidate, problems, log);
    running.push(one);
    one.start();
    await settled();
    return { one, reported, said, debugged };
  }
  const holder = () => server.lease?.spec.holderIdentity;

  it("holds a free Lease, and renews it less often than a leader", async () => {
    const { reported, one } = await started("one");
    assert.equal(holder(), "one");
    assert.deepEqual(reported, [undefined]);
    server.asked.splice(0);
    await pass(24_000);
    assert.ok(server.asked.length >= 8 && server.asked.length <= 12, `${server.asked.length}`);
    await one.stop();
    assert.equal(holder(), undefined);
  });

  it("names another one that holds the Lease, and takes the Lease when that one has stopped", async () => {
    const { one } = await started("one");
    const second = await started("two");
    assert.equal(second.reported.length, 0);
    await pass(6_000);
    assert.equal(holder(), "one");
    const [problem, ...more] = second.reported.splice(0);
    assert.deepEqual([problem?.parts, more], [["one"], []]);
    assert.match(problem?.message ?? "", /one holds the Lease inlay-system\/inlay-controller.*stop one of them/);
    await one.stop();
    await pass(3_000);
    assert.deepEqual([holder(), second.reported], ["two", [undefined]]);
  });

  it("does not take a controller that was killed for a running one", async () => {
    const spec = { holderIdentity: "killed", leaseDurationSeconds: 9 };
    server.put({
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "inlay-controller", namespace: NAMESPACE },
      spec,
    });
    const { reported } = await started("one");
    await pass(13_000);
    assert.deepEqual([holder(), reported], ["one", [undefined]]);
  });

  it("never takes the Lease from a live leader", async () => {
    const leader = new LeaderElection(
      server.client(),
      { namespace: NAMESPACE, identity: "leader", now: () => Date.now() },
      silent,
    );
    const lost: string[] = [];
    running.push(leader);
    leader.start({ leading() {}, lost: () => lost.push("lost") });
    await settled();
    const { reported } = await started("one");
    await pass(30_000);
    assert.deepEqual([holder(), lost, leader.mayWrite], ["leader", [], true]);
    assert.deepEqual(
      reported.map((each) => each?.parts),
      [["leader"]],
    );
  });

  it("says once why it can't be recorded, and requests no Lease then", async () => {
    denied = "update";
    const first = await started("one");
    denied = undefined;
    hasNamespace = false;
    const second = await started("two");
    await pass(10_000);
    assert.match(
      first.said.join("\n"),
      /second controller is not noticed: .*may not update leases in namespace inlay-system$/,
    );
    // A user who tries Inlay without an installation has nothing to do.
    assert.deepEqual(second.said, []);
    assert.match(second.debugged.join("\n"), /second controller is not noticed: there is no namespace inlay-system$/);
    assert.deepEqual([server.asked, first.reported, second.reported], [[], [], []]);
  });
});
