/** Where the command line finds the controller, by its Lease, with and without permission to list Leases of all namespaces. */
import assert from "node:assert/strict";
import { Reader } from "../../../src/explain/reading.ts";
import { findController } from "../../../src/explain/running.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { fakeTransport } from "../fakes.ts";

const NOW = Date.parse("2026-01-02T00:00:00Z");
const RENEWED = "2026-01-01T23:59:59.000000Z";
const OLD = "2026-01-01T23:50:00.000000Z";

/** The API server with these Leases, by namespace, which lets the user list them or only get them. */
function reader(leases: Record<string, string>, { mayList = true } = {}): Reader {
  const lease = (namespace: string) => ({
    metadata: { name: "inlay-controller", namespace },
    spec: { renewTime: leases[namespace] },
  });
  const fail = (status: number) => Promise.reject(ApiError.fromAnswer("GET /x", status, "{}"));
  const request = ({ path }: { path: string }) => {
    const [, namespace] = /\/namespaces\/([^/]+)\//.exec(path) ?? [];
    if (namespace !== undefined) return leases[namespace] === undefined ? fail(404) : Promise.resolve(lease(namespace));
    assert.match(decodeURIComponent(path), /fieldSelector=metadata\.name=inlay-controller/);
    const items = Object.keys(leases).map(lease);
    return mayList ? Promise.resolve({ metadata: { resourceVersion: "1" }, items }) : fail(403);
  };
  return new Reader(fakeTransport({ request: request as never, lines: () => assert.fail() }));
}
const find = (...leases: Parameters<typeof reader>) => findController(reader(...leases), "team", NOW);

describe("the controller", () => {
  it("runs if one Lease is renewed, in whatever namespace", async () => {
    assert.deepEqual(await find({ "my-inlay": RENEWED, "inlay-system": OLD }), { namespace: "my-inlay" });
  });

  it("does not run if no Lease is renewed; the last one names its namespace", async () => {
    const { namespace, advice } = await find({ "inlay-system": "2025-12-01T00:00:00Z", "my-inlay": OLD });
    assert.equal(namespace, "my-inlay");
    assert.equal(advice?.reason, "ControllerNotRunning");
    assert.match(advice.message, /^no controller has renewed the Lease my-inlay\/inlay-controller for 10m,/);
    assert.equal(advice.command, "kubectl get pods -n my-inlay -l app.kubernetes.io/name=inlay");
  });

  it("is looked for in inlay-system and in the namespace of the binding by users who may not list Leases", async () => {
    for (const namespace of ["inlay-system", "team"]) {
      const found = await find({ [namespace]: OLD, other: RENEWED }, { mayList: false });
      assert.equal(found.advice?.command, `kubectl get pods -n ${namespace} -l app.kubernetes.io/name=inlay`);
    }
    assert.deepEqual(await find({ other: OLD }, { mayList: false }), {});
  });

  it("may run without a Lease", async () => {
    assert.deepEqual(await find({}), {});
  });
});
