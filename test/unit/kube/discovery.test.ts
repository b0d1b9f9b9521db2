/** How kinds are found, and that many missing kinds cost few requests. */
import assert from "node:assert/strict";
import { ApiError } from "../../../src/kube/api-error.ts";
import { Discovery } from "../../../src/kube/discovery.ts";
import type { Request } from "../../../src/kube/transport.ts";
import { fakeClock } from "../clock.ts";
import { fakeTransport } from "../fakes.ts";

const version = (groupVersion: string) => ({ groupVersion });

describe("discovery", () => {
  const clock = fakeClock();
  let requests: string[];
  let answers: Record<string, unknown>;
  let discovery: Discovery;
  beforeEach(() => {
    requests = [];
    answers = {
      "/apis": { groups: [{ preferredVersion: version("a.example.com/v1"), versions: [version("a.example.com/v1")] }] },
      "/apis/a.example.com/v1": {
        resources: [
          { name: "things", kind: "Thing", namespaced: true },
          { name: "things/status", kind: "Thing", namespaced: true },
        ],
      },
      "/api/v1": { resources: [{ name: "secrets", kind: "Secret", namespaced: true }] },
    };
    const transport = fakeTransport({
      async request({ method, path }: Request) {
        requests.push(path);
        if (answers[path] === undefined) throw new ApiError(`${method} ${path}`, 404, "NotFound");
        return answers[path];
      },
    });
    discovery = new Discovery(transport);
  });

  it("finds a kind as the server serves it", async () => {
    const thing = await discovery.byKind("a.example.com/v1", "Thing");
    assert.deepEqual([thing?.plural, thing?.namespaced, thing?.hasStatus], ["things", true, true]);
    assert.equal((await discovery.byPlural("v1", "secrets"))?.kind, "Secret");
    assert.deepEqual(requests, ["/apis", "/apis/a.example.com/v1", "/api/v1"]);
  });

  it("asks once for all missing groups, and again after a second", async () => {
    const find = (n: number) => discovery.byKind(`g${n}.example.com/v1`, "Thing");
    const found = await Promise.all(Array.from({ length: 5_000 }, (_, n) => find(n)));
    assert.ok(found.every((each) => each === undefined));
    assert.deepEqual(requests, ["/apis"]);
    await clock.pass(1_100);
    await Promise.all([find(0), find(1)]);
    assert.deepEqual(requests, ["/apis", "/apis"]);
  });

  it("finds a group that was added later", async () => {
    assert.equal(await discovery.byKind("b.example.com/v1", "Thing"), undefined);
    answers["/apis"] = { groups: [{ versions: [version("b.example.com/v1")] }] };
    answers["/apis/b.example.com/v1"] = answers["/apis/a.example.com/v1"];
    await clock.pass(1_100);
    assert.ok(await discovery.byKind("b.example.com/v1", "Thing"));
  });

  it("finds a version that was added later, at once", async () => {
    assert.equal(await discovery.byKind("a.example.com/v2", "Thing"), undefined);
    const versions = [version("a.example.com/v2")];
    answers["/apis/a.example.com"] = { preferredVersion: versions[0], versions };
    answers["/apis/a.example.com/v2"] = answers["/apis/a.example.com/v1"];
    const thing = await discovery.byKindInGroup("a.example.com/v1", "Thing");
    assert.equal(thing?.version, "v2");
    assert.equal((await discovery.byKind("a.example.com/v2", "Thing"))?.version, "v2");
  });

  it("forgets a failure, and asks again at once", async () => {
    const groups = answers["/apis"];
    delete answers["/apis"];
    await assert.rejects(discovery.byKind("a.example.com/v1", "Thing"), { name: "ApiError" });
    answers["/apis"] = groups;
    assert.ok(await discovery.byKind("a.example.com/v1", "Thing"));
  });
});
