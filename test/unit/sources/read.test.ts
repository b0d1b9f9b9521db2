/** Which sources of a binding are read, and the results. */
import assert from "node:assert/strict";
import { DEFAULT_LIMITS } from "../../../src/api/limits.ts";
import type { KubeObject, ObjectRef } from "../../../src/apimachinery/objects.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { GrantedSources } from "../../../src/sources/grants.ts";
import { readSources, sourceRevisions } from "../../../src/sources/read.ts";
import { parseSources, resolveSources } from "../../../src/sources/registry.ts";
import type { ResolveContext } from "../../../src/sources/source.ts";
import type { LiveSource } from "../../../src/transform/live-source.ts";
import { finish } from "../../../src/workqueue/cpu-scheduler.ts";
import { bindingOf } from "../bindings.ts";
import { WITHOUT_ADVICE } from "../fakes.ts";
import { CONFIGMAPS, HARBORS } from "../resources.ts";
import { absent } from "../transform/sources.ts";
import { watched } from "./watched.ts";

const BUCKET: ObjectRef = { resource: CONFIGMAPS, namespace: "team", name: "bucket" };
const FORBIDDEN = new Problem("Forbidden", "the target may not be watched", "OnChange");
const ownAlone: GrantedSources = {
  asker: () => ({ namespace: "team", account: "inlay", composition: "none" }),
  copied: [],
  isPending: false,
  dependencies: [],
  state: "",
  grantsFor: () => undefined,
  exceededFor: () => undefined,
  steps: async (work) => finish(work),
};
const nothing: ResolveContext["client"] = { get: () => Promise.reject(new Error("nothing is asked")) };

/** The reasons of unread sources when the only target can't be written. */
async function notRead(isForRollout: boolean) {
  const observed = {
    account: undefined,
    objects: [{ ref: FORBIDDEN }],
    grants: ownAlone,
    problemOf: (ref: ObjectRef | Problem) => (ref instanceof Problem ? ref : undefined),
    seenVersion: () => undefined,
    listed: () => assert.fail("it is no list"),
  };
  const source = watched(BUCKET, async () => absent());
  const sources = await readSources(nothing, new Map([["bucket", source]]), observed, isForRollout);
  return [...sources.values()].map((each) => (each instanceof Problem ? each.reason : undefined));
}

/** Reads the source of an entry of spec.sources; `answer` is the API server's. */
async function read(entry: object, answer: object): Promise<LiveSource | Problem> {
  const get = async <T>() => {
    if (answer instanceof Error) throw answer;
    return answer as T;
  };
  const context: ResolveContext = {
    discovery: { ...WITHOUT_ADVICE, byPlural: async () => HARBORS },
    installation: { scope: undefined, closedNamespace: () => undefined, limits: DEFAULT_LIMITS },
    client: { get },
    identity: "system:serviceaccount:registry:inlay",
    accountUid: "uid",
    connections: { get: () => undefined },
    polls: { stateOf: () => ({ phase: "pending" }) },
    compositionOf: () => "none",
  };
  const [source] = (await resolveSources(parseSources(bindingOf({ sources: [entry] })), context)).values();
  assert.ok(source !== undefined && !(source instanceof Problem) && source.listed === undefined);
  return source.read(undefined);
}
const metadata: KubeObject["metadata"] = { name: "bucket", uid: "u", resourceVersion: "7", labels: { env: "prod" } };
const textsOf = (source: LiveSource | Problem) => {
  assert.ok(!(source instanceof Problem) && source.kind === "data");
  return Object.fromEntries([...source.data].map(([key, bytes]) => [key, Buffer.from(bytes.reveal()).toString()]));
};
const inBase64 = (text: string) => Buffer.from(text).toString("base64");

describe("the sources of a binding", () => {
  it("have a limited number of keys, of all fields together", async () => {
    const keys = (prefix: string, count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`${prefix}${n}`, ""]));
    const most = DEFAULT_LIMITS.keysPerSource;
    const of = (count: number) =>
      read({ configMap: { name: "bucket" } }, { metadata, data: keys("a", count), binaryData: keys("b", 5) });
    assert.ok(!((await of(most - 5)) instanceof Problem));
    const problem = await of(most - 4);
    assert.ok(problem instanceof Problem);
    assert.equal(problem.reason, "TooLarge");
    assert.match(problem.message, /^ConfigMap registry\/bucket has 20001 keys, and .* at most 20000 .*; split it/);
  });

  it("are not read if no target can be written, unless workloads depend on them", async () => {
    assert.deepEqual(await notRead(false), ["Unavailable"]);
    assert.deepEqual(await notRead(true), [undefined]);
  });

  it("have the version of the object, its labels and its annotations", async () => {
    const source = await read({ secret: { name: "bucket" } }, { metadata });
    assert.ok(!(source instanceof Problem) && source.kind === "data");
    assert.deepEqual([source.version, source.isSecret, source.labels.reveal()], ["u/7", true, { env: "prod" }]);
    assert.deepEqual([source.description, source.annotations.reveal()], ["Secret registry/bucket", {}]);
    assert.equal(sourceRevisions(3, [source, FORBIDDEN]), "3,u/7,Forbidden");
  });

  it("are the decoded keys of a Secret or ConfigMap, and all of any other object", async () => {
    const secret = await read({ secret: { name: "bucket" } }, { metadata, data: { key: inBase64("value") } });
    assert.deepEqual(textsOf(secret), { key: "value" });
    const entries = { data: { text: "a" }, binaryData: { bytes: inBase64("b") } };
    assert.deepEqual(textsOf(await read({ configMap: { name: "bucket" } }, { metadata, ...entries })), {
      text: "a",
      bytes: "b",
    });
    const object = {
      apiVersion: "goharbor.io/v1beta1",
      resource: "harborclusters",
      name: "bucket",
      scope: "Namespaced",
    };
    const harbor = { metadata, spec: { url: "x" } };
    const source = await read({ object }, harbor);
    assert.ok(!(source instanceof Problem) && source.kind === "object");
    assert.deepEqual(source.object.reveal(), harbor);
  });

  it("are absent if the object is missing, and a Problem if they may not be read", async () => {
    const source = await read({ secret: { name: "bucket" }, optional: true }, new ApiError("GET", 404, "NotFound"));
    assert.ok(!(source instanceof Problem) && source.kind === "absent");
    assert.match(source.problem.message, /Secret registry\/bucket/);
    assert.deepEqual(source.policy, { onMissing: "Wait", optional: true });
    const forbidden = await read({ secret: { name: "bucket" } }, new ApiError("GET", 403, "Forbidden"));
    assert.ok(forbidden instanceof Problem && forbidden.reason === "Forbidden");
  });
});
