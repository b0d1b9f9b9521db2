/** A transport of dry runs sends no write, whatever the request, and keeps what each object would be. */
import assert from "node:assert/strict";
import { DryRunRecorder } from "../../../src/diff/dry-run-recorder.ts";
import type { Request } from "../../../src/kube/transport.ts";

const PATH = "/api/v1/namespaces/a/configmaps/b";

/** Remembers the requests, and answers each with the object in its body, else with `b`. */
function fakeTransport() {
  const sent: Request[] = [];
  return {
    sent,
    async request<T>(request: Request): Promise<T> {
      sent.push(request);
      const body = request.body === undefined ? {} : JSON.parse(request.body);
      return { metadata: { name: "b" }, data: "old", ...body } as T;
    },
  };
}

const isDry = ({ method, path, body }: Request): boolean =>
  method === "GET" ||
  (path.includes("dryRun=All") &&
    (method !== "DELETE" || body === undefined || JSON.parse(body).dryRun?.[0] === "All"));

describe("a dry run", () => {
  it("of every kind of write is one, even of a deletion with options, which ignores the parameter", async () => {
    const transport = fakeTransport();
    const dry = new DryRunRecorder(transport);
    for (const method of ["POST", "PUT", "PATCH", "DELETE"] as const) {
      await dry.request({ method, path: PATH, identity: "", body: JSON.stringify({ kind: "X" }) });
      await dry.request({ method, path: `${PATH}?fieldManager=a`, identity: "" });
    }
    assert.equal(transport.sent.length, 8);
    assert.deepEqual(
      transport.sent.filter((each) => !isDry(each)),
      [],
    );
    assert.ok(transport.sent.every(({ path }) => !path.includes("fieldManager") || path.includes("fieldManager=a")));
  });

  it("keeps the object as it was read and as it would be, without the dry runs that only try something", async () => {
    const dry = new DryRunRecorder(fakeTransport());
    await dry.request({ method: "GET", path: PATH, identity: "" });
    await dry.request({ method: "PATCH", path: PATH, identity: "", body: JSON.stringify({ data: "new" }) });
    await dry.request({ method: "PATCH", path: `${PATH}?dryRun=All`, identity: "", body: "{}" });
    const [{ before, after } = { before: undefined, after: undefined }, ...more] = dry.writes;
    assert.deepEqual([before?.reveal()["data"], after?.reveal()["data"], more], ["old", "new", []]);
  });

  it("of a deletion and a creation in its place is a change, although the API server still has the old object", async () => {
    const transport = fakeTransport();
    const dry = new DryRunRecorder(transport);
    await dry.request({ method: "GET", path: PATH, identity: "" });
    await dry.request({ method: "DELETE", path: PATH, identity: "", body: "{}" });
    const body = JSON.stringify({ metadata: { name: "b" }, data: "new" });
    const create = { method: "POST", path: `${PATH.slice(0, -2)}?fieldManager=a`, identity: "", body } as const;
    await dry.request(create);
    assert.deepEqual(
      dry.writes.map(({ before, after }) => [before?.reveal()["data"], after?.reveal()["data"]]),
      [
        ["old", undefined],
        [undefined, "new"],
      ],
    );
    assert.equal(transport.sent.length, 2);
    await dry.request(create);
    assert.equal(transport.sent.length, 3);
  });

  it("asks for permissions as usual", async () => {
    const transport = fakeTransport();
    const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    await new DryRunRecorder(transport).request({ method: "POST", path, identity: "", body: "{}" });
    assert.equal(transport.sent[0]?.path, path);
  });
});
