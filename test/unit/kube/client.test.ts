/** The paths, queries and bodies of the requests for each verb. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { ApiError } from "../../../src/kube/api-error.ts";
import { Client, pathOf } from "../../../src/kube/client.ts";
import type { Request, Transport } from "../../../src/kube/transport.ts";
import { HARBOR, HARBORS, NODES } from "../resources.ts";

describe("a path", () => {
  it("leads to a collection, an object, or a subresource", () => {
    const base = "/apis/goharbor.io/v1beta1";
    assert.equal(pathOf(HARBORS), `${base}/harborclusters`);
    assert.equal(pathOf(HARBORS, "registry"), `${base}/namespaces/registry/harborclusters`);
    assert.equal(pathOf(HARBORS, "registry", "harbor"), `${base}/namespaces/registry/harborclusters/harbor`);
    assert.equal(
      pathOf(HARBORS, "registry", "harbor", "status"),
      `${base}/namespaces/registry/harborclusters/harbor/status`,
    );
  });

  it("is under /api for the core group, and has no namespace for a cluster-scoped kind", () => {
    assert.equal(pathOf(NODES, undefined, "n1"), "/api/v1/nodes/n1");
    assert.equal(pathOf(NODES, "registry", "n1"), "/api/v1/nodes/n1");
  });

  it("contains every name as one segment, with any characters", () => {
    assert.equal(pathOf(NODES, undefined, "system:node/a?b#c d"), "/api/v1/nodes/system%3Anode%2Fa%3Fb%23c%20d");
    const name = fc.string({ unit: "grapheme", minLength: 1 });
    fc.assert(
      fc.property(name, name, (namespace, object) => {
        const segments = pathOf(HARBORS, namespace, object).split("/");
        assert.equal(segments.length, 8);
        assert.deepEqual(
          [segments[5], segments[7]].map((each) => decodeURIComponent(each ?? "")),
          [namespace, object],
        );
        assert.ok(!segments.some((segment) => /[?#\s]/.test(segment)));
      }),
    );
  });
});

/** A client that records requests, and answers with `answer`. */
function recording(answer: unknown = {}) {
  const requests: Request[] = [];
  const fake: Pick<Transport, "request"> = {
    request: async <T>(request: Request) => {
      requests.push(request);
      return answer as T;
    },
  };
  const client = new Client(fake);
  const last = () => {
    const [one, ...others] = requests.splice(0);
    assert.ok(one && others.length === 0);
    const [path, query = ""] = one.path.split("?");
    const { body = "null", ...rest } = one;
    return { ...rest, path, query: Object.fromEntries(new URLSearchParams(query)), body: JSON.parse(body) };
  };
  return { client, last };
}

describe("the client", () => {
  const path = "/apis/goharbor.io/v1beta1/namespaces/registry/harborclusters/harbor";

  it("reads an object as it is, or at least as new as a version", async () => {
    const { client, last } = recording();
    await client.get("me", HARBOR);
    assert.deepEqual(last(), { method: "GET", path, query: {}, identity: "me", body: null, isWhole: true });
    await client.get("me", HARBOR, "42");
    assert.deepEqual(last().query, { resourceVersion: "42" });
  });

  it("reads an object as it is if the server does not know the version", async () => {
    for (const status of [504, 410, 400, 404]) {
      const asked: string[] = [];
      const request = async <T>({ path: asks }: Request) => {
        asked.push(asks);
        if (asks.includes("?")) throw new ApiError("GET /x", status, "Timeout");
        return { metadata: { name: "harbor" } } as T;
      };
      const read = new Client({ request } as Transport).get("me", HARBOR, "42");
      if (status === 404) await assert.rejects(read, { status });
      else assert.equal((await read).metadata.name, "harbor");
      assert.deepEqual(asked, [`${path}?resourceVersion=42`, path].slice(0, status === 404 ? 1 : 2));
    }
  });

  it("reads an object as it was in a version of the cluster, with its type, or nothing if it did not exist", async () => {
    const { client, last } = recording({ items: [{ metadata: { name: "a,b" }, spec: {} }] });
    const ref = { ...HARBOR, name: "a,b" };
    const found = await client.getAt("someone", ref, "7");
    assert.deepEqual(found, {
      apiVersion: "goharbor.io/v1beta1",
      kind: "HarborCluster",
      metadata: { name: "a,b" },
      spec: {},
    });
    const { path, query } = last();
    assert.equal(path, "/apis/goharbor.io/v1beta1/namespaces/registry/harborclusters");
    const fieldSelector = "metadata.name=a\\,b";
    assert.deepEqual(query, { fieldSelector, resourceVersion: "7", resourceVersionMatch: "Exact" });
    assert.equal(await recording({ items: [] }).client.getAt("someone", ref, "7"), undefined);
  });

  it("applies the leaves with the object's name and uid, which prevents creation, and requests only metadata", async () => {
    const { client, last } = recording();
    const leaves = { spec: { a: 1 }, metadata: { annotations: { x: "y" }, name: "other", uid: "other" } };
    await client.apply("me", HARBOR, "uid-1", leaves, { fieldManager: "inlay/a/b", force: false });
    const { accept, ...rest } = last();
    assert.match(accept ?? "", /as=PartialObjectMetadata/);
    assert.deepEqual(rest, {
      method: "PATCH",
      path,
      query: { fieldManager: "inlay/a/b", force: "false", fieldValidation: "Strict" },
      identity: "me",
      contentType: "application/apply-patch+yaml",
      body: {
        apiVersion: "goharbor.io/v1beta1",
        kind: "HarborCluster",
        metadata: { annotations: { x: "y" }, name: "harbor", namespace: "registry", uid: "uid-1" },
        spec: { a: 1 },
      },
    });
  });

  it("sends no namespace when it applies to a cluster-scoped object", async () => {
    const { client, last } = recording();
    await client.apply("", { resource: NODES, name: "n1" }, "u", {}, { fieldManager: "m", force: true });
    assert.deepEqual(last().body.metadata, { name: "n1", uid: "u" });
  });

  it("patches, replaces the status and creates as the given identity", async () => {
    const { client, last } = recording();
    await client.jsonPatch("me", HARBOR, [{ op: "remove", path: "/spec/a" }], "inlay");
    const patch = last();
    assert.deepEqual(
      [patch.method, patch.path, patch.query, patch.identity, patch.contentType, patch.body],
      [
        "PATCH",
        path,
        { fieldManager: "inlay" },
        "me",
        "application/json-patch+json",
        [{ op: "remove", path: "/spec/a" }],
      ],
    );
    await client.mergePatch("me", HARBOR, { metadata: { finalizers: [] } }, "inlay");
    const merge = last();
    assert.deepEqual([merge.path, merge.contentType], [path, "application/merge-patch+json"]);
    assert.deepEqual([merge.query, merge.accept], [{ fieldManager: "inlay" }, undefined]);
    await client.mergeFields("me", HARBOR, { spec: { a: 1 } }, "inlay");
    const strict = last();
    assert.deepEqual([strict.path, strict.contentType, strict.body], [path, merge.contentType, { spec: { a: 1 } }]);
    assert.deepEqual(strict.query, { fieldManager: "inlay", fieldValidation: "Strict" });
    assert.match(strict.accept ?? "", /as=PartialObjectMetadata/);
    await client.replaceStatus("", HARBOR, { status: { synced: "1/1" } }, "inlay");
    const status = last();
    assert.deepEqual(
      [status.method, status.path, status.body],
      ["PUT", `${path}/status`, { status: { synced: "1/1" } }],
    );
    await client.create("", HARBORS, "registry", { spec: {} });
    const created = last();
    assert.deepEqual([created.method, created.path], ["POST", path.replace(/\/harbor$/, "")]);
  });

  it("reviews access as the identity itself, for every namespace unless one is given", async () => {
    for (const allowed of [true, false]) {
      const { client, last } = recording({ status: { allowed } });
      assert.equal(await client.may("me", "watch", HARBORS, "registry", "harbor"), allowed);
      const { identity, body } = last();
      assert.equal(identity, "me");
      const attributes = { verb: "watch", group: "goharbor.io", version: "v1beta1", resource: "harborclusters" };
      assert.deepEqual(body.spec.resourceAttributes, { ...attributes, namespace: "registry", name: "harbor" });
      await client.may("me", "watch", HARBORS);
      assert.deepEqual(last().body.spec.resourceAttributes, attributes);
    }
  });

  it("creates nothing in a dry run, which does not count as a write", async () => {
    const { client, last } = recording();
    await client.createObject("me", HARBOR, { spec: {} }, "inlay");
    const { mayBeSent: _, query, ...made } = last();
    await client.createObject("me", HARBOR, { spec: {} }, "inlay", true);
    assert.deepEqual(last(), { ...made, query: { ...query, dryRun: "All" } });
  });

  it("applies nothing in a dry run, which does not count as a write and returns the whole object", async () => {
    const { client, last } = recording();
    const options = { fieldManager: "inlay", force: true };
    await client.apply("me", HARBOR, "u", { spec: {} }, options);
    const { mayBeSent: _m, accept: _a, query, ...applied } = last();
    await client.apply("me", HARBOR, "u", { spec: {} }, { ...options, dryRun: "whole" });
    const whole = { accept: "application/json;as=Table;g=meta.k8s.io;v=v1", isWhole: true };
    assert.deepEqual(last(), { ...applied, ...whole, query: { ...query, includeObject: "Object", dryRun: "All" } });
    await client.apply("me", HARBOR, "u", { spec: {} }, { ...options, dryRun: "metadata" });
    assert.deepEqual(last(), { ...applied, accept: _a, query: { ...query, dryRun: "All" } });
  });

  it("returns the whole object of a write if asked for it, from a table or as it is", async () => {
    const object = { apiVersion: "goharbor.io/v1beta1", kind: "Table", metadata: { name: "harbor" }, rows: [] };
    const table = { apiVersion: "meta.k8s.io/v1", kind: "Table", metadata: {}, rows: [{ object }] };
    for (const answer of [table, object]) {
      const { client, last } = recording(answer);
      const how = { fieldManager: "inlay", force: true, answer: "whole" as const };
      assert.deepEqual(await client.apply("me", HARBOR, "u", {}, how), object);
      const { accept, query } = last();
      assert.deepEqual([accept?.includes("as=Table"), query["includeObject"]], [true, "Object"]);
      assert.deepEqual(await client.jsonPatch("me", HARBOR, [], "inlay", false, "whole"), object);
      assert.equal(last().accept, accept);
      assert.deepEqual(await client.createObject("me", HARBOR, {}, "inlay", false, "whole"), object);
      assert.equal(last().accept, accept);
    }
  });

  it("deletes the version that was read, or any version", async () => {
    const { client, last } = recording();
    for (const metadata of [{ uid: "u", resourceVersion: "7" }, { uid: "u" }]) {
      await client.delete("me", HARBOR, { metadata });
      assert.deepEqual(last().body.preconditions, metadata);
    }
  });

  it("checks before each attempt of a write whether it may be sent, but not for reads and reviews", async () => {
    let may = true;
    const requests: Request[] = [];
    const outcomes: string[] = [];
    const fake: Pick<Transport, "request"> = {
      request: async <T>(request: Request) => {
        requests.push(request);
        if (request.mayBeSent?.() === false) throw new ApiError("PATCH", 0, "NotLeading");
        return { status: { allowed: true } } as T;
      },
    };
    const writes = {
      mayWrite: () => may,
      wrote: (verb: string, outcome: string) => outcomes.push(`${verb} ${outcome}`),
    };
    const client = new Client(fake, writes);
    const all = [
      () => client.apply("me", HARBOR, "u", {}, { fieldManager: "m", force: false }),
      () => client.jsonPatch("me", HARBOR, [], "m"),
      () => client.mergePatch("me", HARBOR, {}, "m"),
      () => client.mergeFields("me", HARBOR, {}, "m"),
      () => client.replaceStatus("", HARBOR, {}, "m"),
      () => client.replace("", HARBOR, {}),
      () => client.create("", HARBORS, "registry", {}),
    ];
    for (const write of all) await write();
    may = false;
    for (const write of all) await assert.rejects(write, { reason: "NotLeading" });
    const verbs = ["apply", "patch", "patch", "patch", "update", "update", "create"];
    const both = ["accepted", "not_leading"].flatMap((outcome) => verbs.map((verb) => `${verb} ${outcome}`));
    assert.deepEqual(outcomes, both);
    requests.splice(0);
    await client.get("me", HARBOR);
    await client.may("me", "watch", HARBORS);
    await client.createObject("me", HARBOR, {}, "m", true);
    assert.ok(requests.every((request) => !("mayBeSent" in request)));
  });

  it("reports the outcome of a write by a fixed word, without the server's text", async () => {
    const reported: string[] = [];
    const outcomes: [error: unknown, outcome: string][] = [
      [new ApiError("", 409, "Conflict"), "conflict"],
      [new ApiError("", 422, "Invalid"), "invalid"],
      [new ApiError("", 403, "Forbidden"), "forbidden"],
      [new ApiError("", 404, "NotFound"), "not_found"],
      [new ApiError("", 429, "TooManyRequests"), "throttled"],
      [new ApiError("", 413, "RequestEntityTooLarge"), "rejected"],
      [new ApiError("", 503, "ServiceUnavailable"), "server_error"],
      [new ApiError("", 0, "ECONNRESET"), "no_answer"],
      [new TypeError("a bug"), "error"],
    ];
    for (const [error] of outcomes) {
      const fake: Pick<Transport, "request"> = { request: () => Promise.reject(error) };
      const writes = { mayWrite: () => true, wrote: (_: string, outcome: string) => reported.push(outcome) };
      await assert.rejects(new Client(fake, writes).replace("", HARBOR, {}));
    }
    assert.deepEqual(
      reported,
      outcomes.map(([, outcome]) => outcome),
    );
  });
});
