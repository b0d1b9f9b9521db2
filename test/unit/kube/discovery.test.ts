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

  describe("of a kind that is not served", () => {
    const resource = (plural: string, kind: string) => ({ resource: plural, responseKind: { kind } });
    const group = (name: string, served: string, ...resources: object[]) => ({
      metadata: { name },
      versions: [{ version: served, resources }],
    });
    const says = async (...wanted: Parameters<Discovery["kindNotFound"]>) =>
      (await discovery.kindNotFound(...wanted)).message.replace(/^the cluster serves no \S+ in \S+; /, "");
    beforeEach(() => {
      const widgets = resource("widgets", "Widget");
      answers["/api"] = { items: [{ versions: [{ version: "v1", resources: [resource("secrets", "Secret")] }] }] };
      answers["/apis"] = {
        items: [
          group("apps", "v1", resource("deployments", "Deployment"), { resource: "broken", responseKind: null }),
          group("example.com", "v1", widgets, resource("policies", "Policy")),
          group("example.com", "v1beta1", widgets, resource("gadgets", "Gadget")),
          group("other.example.com", "v1", widgets),
        ],
      };
    });

    it("suggests the kind for another case, for the plural and for a small typo", async () => {
      assert.equal(await says("apps/v1", "deployment"), "did you mean Deployment?");
      assert.equal(await says("example.com/v1", "Widgets"), "did you mean Widget?");
      assert.equal(await says("example.com/v1", "policies"), "did you mean Policy?");
      assert.equal(await says("example.com/v1", "Wigdet"), "did you mean Widget?");
      assert.equal(await says("v1", "secret"), "did you mean Secret?");
    });

    it("says that a kind is not served yet, and does not suggest its own name", async () => {
      const notYet = "its CRD is new and not served yet; wait some seconds, or try again";
      assert.equal(await says("example.com/v1", "Policy"), notYet);
      assert.equal(await says("example.com/v1", "policies", "plural"), notYet);
    });

    it("suggests the plural to a source that names one", async () => {
      assert.equal(await says("example.com/v1", "Widget", "plural"), "did you mean widgets?");
      assert.equal(
        await says("example.com/v1", "gadgets", "plural"),
        "gadgets is served in example.com/v1beta1; correct apiVersion",
      );
    });

    it("names the version that serves the kind, first in the same group", async () => {
      const beta = "Gadget is served in example.com/v1beta1; correct apiVersion";
      assert.equal(await says("example.com/v1", "Gadget"), beta);
      assert.equal(await says("exmple.com/v1", "Gadget"), beta);
      assert.equal(await says("v1", "Deployment"), "Deployment is served in apps/v1; correct apiVersion");
      const both = "Widget is served in example.com/v1, example.com/v1beta1; correct apiVersion";
      assert.equal(await says("example.com/v2", "Widget"), both);
    });

    it("advises to install its CRD if nothing is like it, or the list of kinds can't be read", async () => {
      const install = "install its CRD, or correct apiVersion or kind";
      assert.equal(await says("example.com/v1", "Sprocket"), install);
      assert.equal(await says("v1", "Pod"), install);
      delete answers["/apis"];
      await clock.pass(11_000);
      assert.equal(await says("apps/v1", "deployment"), install);
      answers["/apis"] = { groups: [] };
      await clock.pass(11_000);
      assert.equal(await says("apps/v1", "deployment"), install);
    });

    it("reads the list of kinds once for many", async () => {
      await Promise.all(["Gizmo", "Sprocket"].map((kind) => says("example.com/v1", kind)));
      assert.deepEqual(requests, ["/api", "/apis"]);
    });
  });

  it("forgets a failure, and asks again at once", async () => {
    const groups = answers["/apis"];
    delete answers["/apis"];
    await assert.rejects(discovery.byKind("a.example.com/v1", "Thing"), { name: "ApiError" });
    answers["/apis"] = groups;
    assert.ok(await discovery.byKind("a.example.com/v1", "Thing"));
  });
});
