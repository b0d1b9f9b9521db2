/** An entry `vault` of spec.sources: its login, its path, and its answer as a source. */
import assert from "node:assert/strict";
import { Installation } from "../../../src/api/installation.ts";
import type { ObjectRef } from "../../../src/apimachinery/objects.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { ConnectionUsers } from "../../../src/controllers/binding/controller.ts";
import { attempt } from "../../../src/kube/access-error.ts";
import type { ProducedBy } from "../../../src/sources/grant-rules.ts";
import type { Poll, PollState } from "../../../src/sources/poll.ts";
import { parseSources, resolveSources, secretNamespaces } from "../../../src/sources/registry.ts";
import type { PolledSource, ResolveContext } from "../../../src/sources/source.ts";
import type { ConnectionState, VaultAnswer, VaultConnected } from "../../../src/vault/types.ts";
import { bindingOf } from "../bindings.ts";
import { WITHOUT_ADVICE } from "../fakes.ts";

const CONNECTION = { name: "vault" };
const S3 = { mount: "kv", path: "registry/s3", kv: 2 };
const entry = (vault: object, more: object = {}) => ({
  name: "s3",
  ...more,
  vault: { connection: CONNECTION, refresh: "1m", ...vault },
});

/** A connection that records its requests. */
class Connected implements VaultConnected {
  readonly asked: unknown[] = [];
  answer: VaultAnswer = { version: "1", content: { data: new Map(), custom: new SecretValue({}) }, size: 0 };
  loginOf: VaultConnected["loginOf"] = ({ identity, namespace }) => `${identity} ${namespace}`;
  data: VaultConnected["data"] = async (reader, place, last) => this.#note("data", reader, place, last);
  metadata: VaultConnected["metadata"] = async (reader, place) => this.#note("metadata", reader, place);
  retryLogins: VaultConnected["retryLogins"] = () => {};
  health: VaultConnected["health"] = async (address, last) => this.#note("health", address, last);
  #note(...what: unknown[]): VaultAnswer {
    this.asked.push(what);
    return this.answer;
  }
}

describe("a source from Vault", () => {
  let connected: Connected;
  let states: Record<string, ConnectionState>;
  let polled: PollState;
  let producedBy: ProducedBy;
  let accountUid: string | undefined;
  const ready = (more: Partial<Extract<ConnectionState, { phase: "ready" }>> = {}): ConnectionState => {
    const paths = ["kv/{namespace}/*"];
    return {
      phase: "ready",
      revision: "r1",
      connected,
      paths,
      labels: { tier: "1" },
      usesAccountTokens: true,
      ...more,
    };
  };
  beforeEach(() => {
    connected = new Connected();
    states = { "registry/vault": ready(), "platform/vault": ready() };
    polled = { phase: "pending" };
    producedBy = "none";
    accountUid = "uid";
  });
  const context = (): ResolveContext => ({
    discovery: { ...WITHOUT_ADVICE, byPlural: async () => undefined },
    installation: new Installation({ ownNamespace: "inlay-system" }),
    client: { get: () => Promise.reject(new Error("nothing is read")) },
    identity: "system:serviceaccount:registry:inlay",
    accountUid,
    connections: { get: ({ namespace, name }) => states[`${namespace}/${name}`] },
    polls: { stateOf: <T>(_: Poll<T>) => polled as PollState<T> },
    compositionOf: () => producedBy,
  });
  const resolve = async (vault: object, more?: object): Promise<PolledSource | Problem> => {
    const [source] = (
      await resolveSources(parseSources(bindingOf({ sources: [entry(vault, more)] })), context())
    ).values();
    if (source instanceof Problem) return source;
    assert.ok(source !== undefined && !source.watched && !source.listed);
    return source;
  };
  const resolved = async (vault: object, more?: object): Promise<PolledSource> => {
    const source = await resolve(vault, more);
    if (source instanceof Problem) throw source;
    return source;
  };
  const reasonOf = async (vault: object) => {
    const source = await resolve(vault);
    return source instanceof Problem ? source.reason : undefined;
  };

  it("requests data, metadata or health, at the interval of refresh", async () => {
    for (const [vault, asked] of [
      [{ data: { ...S3, version: 3 } }, ["data", { ...S3, version: 3 }]],
      [{ metadata: S3 }, ["metadata", S3]],
      [{ health: { address: "https://vault-0:8200" }, refresh: "5s" }, ["health", "https://vault-0:8200"]],
    ] as const) {
      const { poll } = await resolved(vault);
      assert.ok(poll);
      assert.equal(poll.refreshMs, "refresh" in vault ? 5_000 : 60_000);
      await poll.ask(undefined);
      const [[operation, first, second]] = connected.asked.splice(0) as [unknown[]];
      assert.deepEqual([operation, operation === "health" ? first : second], asked);
    }
  });

  it("passes the former answer to the connection, and keeps it if it is still valid", async () => {
    const { poll } = await resolved({ data: S3 });
    const first = await poll?.ask(undefined);
    assert.ok(first !== undefined);
    assert.equal(await poll?.ask(first), first);
    assert.equal((connected.asked[1] as unknown[])[3], connected.answer);
    connected.answer = { ...connected.answer, version: "2" };
    assert.equal((await poll?.ask(first))?.version, "2");
  });

  it("shares an answer only with bindings of the same login, connection, path and version", async () => {
    const idOf = async (vault: object) => (await resolved(vault)).poll?.id;
    const id = await idOf({ data: S3 });
    assert.equal(await idOf({ data: S3, refresh: "1s" }), id);
    const others = [await idOf({ data: { ...S3, path: "registry/s4" } }), await idOf({ data: { ...S3, version: 1 } })];
    others.push(await idOf({ data: { ...S3, kv: 1 } }), await idOf({ metadata: S3 }));
    states["registry/vault"] = ready({ revision: "r2" });
    others.push(await idOf({ data: S3 }));
    states["registry/vault"] = ready();
    connected.loginOf = () => "another";
    others.push(
      await idOf({ data: S3 }),
      await idOf({ data: S3, connection: { ...CONNECTION, namespace: "platform" } }),
    );
    // The same text, but another mount or version.
    const [split, spaced] = [
      { mount: "kv/registry", path: "s3", kv: 2 },
      { ...S3, path: "registry/s3 version 1" },
    ];
    states["registry/vault"] = ready({ paths: ["*"] });
    others.push(await idOf({ data: split }), await idOf({ data: spaced }));
    assert.equal(new Set([id, ...others]).size, others.length + 1);
  });

  it("has the same digests in each version of a path, unless the values differ", async () => {
    const placeOf = async (vault: object) => (await resolved(vault)).place;
    const place = await placeOf({ data: S3 });
    assert.deepEqual(await placeOf({ data: { ...S3, version: 2 } }), place);
    for (const other of [{ data: { ...S3, path: "registry/s4" } }, { metadata: S3 }, { health: {} }])
      assert.notDeepEqual(await placeOf(other), place);
  });

  it("reads only for the namespace of the binding, or of its claim if it is composed", async () => {
    const readFor = async () => {
      const { poll } = await resolved({ metadata: { mount: "kv", path: "registry/s3" } });
      await poll?.ask(undefined);
      return (connected.asked.pop() as [string, { namespace: string }] | undefined)?.[1].namespace;
    };
    assert.equal(await readFor(), "registry");
    producedBy = { by: "harbors", claimNamespace: "shop" };
    assert.equal(await reasonOf({ metadata: S3 }), "ForbiddenPath");
    states["registry/vault"] = ready({ paths: ["kv/*"] });
    assert.equal(await readFor(), "shop");
    producedBy = { by: "harbors" };
    assert.equal(await readFor(), "registry");
    producedBy = "pending";
    assert.equal((await resolved({ metadata: S3 })).poll, undefined);
    producedBy = "unknown";
    assert.equal(await reasonOf({ metadata: S3 }), "Unavailable");
    producedBy = "none";
    accountUid = undefined;
    assert.equal((await resolved({ metadata: S3 })).poll, undefined);
    assert.ok((await resolved({ health: {} })).poll);
  });

  it("requests nothing outside of paths, or while its connection is not ready", async () => {
    assert.equal(await reasonOf({ data: { ...S3, path: "shop/s3" } }), "ForbiddenPath");
    states = {};
    const missing = await resolve({ data: S3 });
    assert.ok(missing instanceof Problem);
    assert.deepEqual(
      [missing.reason, missing.message.split(";")[0]],
      ["ConnectionNotFound", "there is no VaultConnection registry/vault"],
    );
    states["registry/vault"] = {
      phase: "failed",
      problem: new Problem("ForbiddenAddress", "not listed"),
      labels: {},
    };
    assert.equal(await reasonOf({ data: S3 }), "ForbiddenAddress");
    states["registry/vault"] = { phase: "pending" };
    assert.equal((await resolved({ data: S3 })).poll, undefined);
    assert.equal(
      await reasonOf({ data: S3, connection: { ...CONNECTION, namespace: "kube-system" } }),
      "ForbiddenNamespace",
    );
  });

  it("is a source of keys with custom metadata as annotations, and absent if nothing is at the path", async () => {
    const text = new SecretValue<Uint8Array>(Buffer.from("text"));
    const content = { data: new Map([["key", text]]), custom: new SecretValue({ owner: "team" }) };
    const answer: VaultAnswer = { version: "7", content, size: 4 };
    polled = { phase: "synced", answer };
    const live = await (await resolved({ data: S3 })).read(undefined);
    assert.ok(!(live instanceof Problem) && live.kind === "data");
    assert.deepEqual(
      [live.version, live.isSecret, live.data.get("key"), live.annotations.reveal(), live.labels.reveal()],
      ["7", true, text, { owner: "team" }, { tier: "1" }],
    );
    assert.equal(live.description, "data kv/registry/s3 through VaultConnection registry/vault");
    const metadata = await (await resolved({ metadata: S3 })).read(undefined);
    assert.ok(!(metadata instanceof Problem) && metadata.kind === "data" && !metadata.isSecret);
    polled = { phase: "synced", answer: { version: "8", content: undefined, size: 0 } };
    const absent = await (await resolved({ data: S3 }, { optional: true, onMissing: "Remove" })).read(undefined);
    assert.ok(!(absent instanceof Problem) && absent.kind === "absent");
    assert.deepEqual(
      [absent.problem.reason, absent.policy],
      ["SourceNotFound", { onMissing: "Remove", optional: true }],
    );
    polled = { phase: "failed", problem: new Problem("VaultSealed", "sealed") };
    const failed = await (await resolved({ data: S3 })).read(undefined);
    assert.ok(failed instanceof Problem && failed.reason === "VaultSealed");
  });

  it("needs a SecretGrant for a connection in another namespace, and with granted", async () => {
    const grantedObject = async (connection: object) => {
      const { grantedObject: ref } = await resolved({ health: {}, connection });
      return ref && `${ref.resource.kind} ${ref.namespace}/${ref.name}`;
    };
    assert.equal(await grantedObject(CONNECTION), undefined);
    assert.equal(await grantedObject({ ...CONNECTION, namespace: "registry" }), undefined);
    assert.equal(await grantedObject({ ...CONNECTION, granted: true }), "VaultConnection registry/vault");
    assert.equal(await grantedObject({ ...CONNECTION, namespace: "platform" }), "VaultConnection platform/vault");
    const binding = bindingOf({ sources: [entry({ health: {} })] });
    const users = new ConnectionUsers();
    users.set("registry/a", binding);
    users.set("registry/b", binding);
    assert.deepEqual(users.of("inlay.dev|VaultConnection|registry|vault"), ["registry/a", "registry/b"]);
    assert.deepEqual(users.of("inlay.dev|VaultConnection|platform|vault"), []);
    users.set("registry/a", bindingOf({ sources: [] }));
    users.delete("registry/b");
    assert.deepEqual(users.of("inlay.dev|VaultConnection|registry|vault"), []);
  });

  it("reports nothing about a connection that needs a SecretGrant before there is one", async () => {
    const asked = async (path: string, connection: object) => {
      const { poll, grantedObject } = await resolved({ data: { ...S3, path }, connection });
      assert.ok(grantedObject !== undefined);
      const answer = await attempt(poll?.ask(undefined) ?? Promise.resolve(undefined));
      return answer instanceof Problem ? answer.reason : undefined;
    };
    for (const connection of [
      { ...CONNECTION, namespace: "platform" },
      { ...CONNECTION, granted: true },
    ]) {
      states = { "registry/vault": ready(), "platform/vault": ready() };
      assert.equal(await asked("shop/s3", connection), "ForbiddenPath");
      const failed = {
        phase: "failed",
        problem: new Problem("ForbiddenAddress", "not listed"),
        labels: {},
      } as const;
      states = { "registry/vault": failed, "platform/vault": failed };
      assert.equal(await asked("registry/s3", connection), "ForbiddenAddress");
      states = {};
      assert.equal(await asked("registry/s3", connection), "ConnectionNotFound");
    }
    assert.deepEqual(connected.asked, []);
  });

  it("is not a Secret of the cluster, and only its data is secret", () => {
    const binding = bindingOf({ sources: [entry({ data: S3 }), entry({ metadata: S3 }, { name: "m" })] });
    const sources = parseSources(binding);
    assert.deepEqual([...secretNamespaces(sources)], [["s3", "registry"]]);
    const [{ store, data } = {}] = sources;
    assert.deepEqual([store?.reads, data], ["data kv/registry/s3", undefined]);
    const connection = store?.connection?.ref as ObjectRef;
    assert.ok(sources[0]?.isObject(connection));
    assert.ok(!sources[0]?.isObject({ ...connection, namespace: "platform" }));
  });
});
