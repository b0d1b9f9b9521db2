/** A SecretProviderClass by the driver's reports about its pods: keys, versions, and how a rollout compares them. */
import assert from "node:assert/strict";
import { Installation } from "../../../src/api/installation.ts";
import type { JsonObject, Resource } from "../../../src/apimachinery/objects.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { digestsOf } from "../../../src/rollout/digest/values.ts";
import { parseSources } from "../../../src/sources/registry.ts";
import type { ListedSource } from "../../../src/sources/source.ts";
import type { LiveSource } from "../../../src/transform/live-source.ts";
import { finish } from "../../../src/workqueue/cpu-scheduler.ts";
import { dependenciesOf } from "../fakes.ts";
import { version } from "../informers.ts";
import { bindingOf } from "../objects.ts";

const GROUP = "secrets-store.csi.x-k8s.io";
const STATUSES: Resource = {
  group: GROUP,
  version: "v1",
  kind: "SecretProviderClassPodStatus",
  plural: "secretproviderclasspodstatuses",
  namespaced: true,
  hasStatus: false,
};
const KEY = { id: "one", bytes: new SecretValue<Uint8Array>(new Uint8Array(32).fill(1)) };

async function resolved(isServed = true): Promise<ListedSource | Problem> {
  const [source] = parseSources(bindingOf({ spec: { sources: [{ providerClass: { name: "database" } }] } }));
  const discovery = { byPlural: async () => (isServed ? STATUSES : undefined) };
  const installation = new Installation({ ownNamespace: "inlay-system" });
  const found = await source?.resolve(dependenciesOf({ discovery, installation })).catch((error: Problem) => error);
  if (found instanceof Problem) return found;
  assert.ok(found?.listed);
  return found;
}

/** The report about a pod of a class. */
const pod = (objects: Record<string, string>, secretProviderClassName = "database"): JsonObject => ({
  status: { secretProviderClassName, objects: Object.entries(objects).map(([id, version]) => ({ id, version })) },
});

async function reading(...pods: JsonObject[]): Promise<Generator<void, LiveSource | Problem>> {
  const source = await resolved();
  assert.ok(!(source instanceof Problem));
  return source.toLive(pods.map((fields, at) => ({ name: `pod-${at}`, version: { ...version("1"), fields } })));
}

async function live(...pods: JsonObject[]): Promise<LiveSource> {
  const source = finish(await reading(...pods));
  assert.ok(!(source instanceof Problem));
  return source;
}

/** The digests of all objects, as in status. */
async function digest(...pods: JsonObject[]): Promise<string[]> {
  const source = await resolved();
  assert.ok(!(source instanceof Problem));
  const used = ["database/*"];
  const read = new Map([["database", await live(...pods)]]);
  const digests = finish(digestsOf(KEY, "team/b", used, read, new Map([["database", source]])));
  return (digests["database/*"] ?? "").split(",");
}

describe("a SecretProviderClass as a source", () => {
  it("has the ids of objects as keys, with all versions that any pods have", async () => {
    const pods = [pod({ user: "7", password: "1" }), pod({ user: "7", password: "2" }), pod({ token: "9" }, "other")];
    const source = await live(...pods);
    assert.ok(source.kind === "data" && !source.isSecret);
    const texts = [...source.data].map(([key, bytes]) => [key, Buffer.from(bytes.reveal()).toString()]);
    assert.deepEqual(texts, [
      ["password", "1\n2"],
      ["user", "7"],
    ]);
    const [first, ...others] = pods.toReversed();
    assert.equal((await live(first as JsonObject, ...others, pods[0] as JsonObject)).version, source.version);
  });

  it("has a stable digest for each version of each object", async () => {
    const one = await digest(pod({ user: "7", password: "1" }));
    const two = await digest(pod({ user: "7", password: "1" }), pod({ user: "7", password: "2" }));
    assert.deepEqual([one.length, two.length, one.every((each) => two.includes(each))], [2, 3, true]);
    const swapped = await digest(pod({ user: "1", password: "7" }));
    assert.ok(swapped.every((each) => !two.includes(each)));
  });

  it("is unmounted if no pod reports it, whatever restartOn contains", async () => {
    assert.deepEqual(await digest(), ["unmounted"]);
    assert.deepEqual(await digest(pod({}), pod({ token: "9" }, "other")), ["unmounted"]);
    const source = await live();
    assert.ok(source.kind === "absent");
    assert.match(source.problem.message, /no pod mounts the SecretProviderClass registry\/database/);
  });

  it("of many objects is read in steps, and is a problem beyond the limit of keys, or if reports are not kept", async () => {
    const many = (count: number) =>
      pod(Object.fromEntries(Array.from({ length: count }, (_, n) => [`o${n}`, "1"] as const)));
    const steps = await reading(many(10_000), many(10_000));
    let yields = 0;
    while (!steps.next().done) yields++;
    assert.ok(yields >= 20_000 / 256 - 1, `${yields}`);
    const tooMany = finish(await reading(many(20_001)));
    assert.match(tooMany instanceof Problem ? `${tooMany.reason} ${tooMany.message}` : "", /^TooLarge .*20001 keys/);
    const source = await resolved();
    assert.ok(!(source instanceof Problem));
    const notKept = { name: "pod", version: { ...version("1"), fields: {}, isTooLarge: true as const } };
    const unread = finish(source.toLive([notKept]));
    assert.match(
      unread instanceof Problem ? `${unread.reason} ${unread.message}` : "",
      /^TooLarge .*too large together/,
    );
  });

  it("ignores malformed reports", async () => {
    const wrong = [
      {},
      { status: "x" },
      { status: { secretProviderClassName: "database", objects: [1, { id: "a" }, {}] } },
    ];
    assert.equal((await live(...wrong)).kind, "absent");
  });

  it("is a problem if the driver's kinds are not served", async () => {
    const problem = await resolved(false);
    assert.ok(problem instanceof Problem);
    assert.equal(problem.reason, "KindNotFound");
  });
});
