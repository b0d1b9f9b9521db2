/** How the kinds of source parse spec.sources, and how to add a polled kind. */
import assert from "node:assert/strict";
import { Installation } from "../../../src/api/installation.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import type { GrantedSources } from "../../../src/sources/grants.ts";
import type { Poll } from "../../../src/sources/poll.ts";
import { polledSource } from "../../../src/sources/polled-source.ts";
import { Poller } from "../../../src/sources/poller.ts";
import { readSources } from "../../../src/sources/read.ts";
import { parseSources, resolveSources, SOURCE_KINDS, secretNamespaces } from "../../../src/sources/registry.ts";
import type { PolledSource, ResolveContext, SourceKind } from "../../../src/sources/source.ts";
import { usesOf } from "../../../src/sources/uses.ts";
import { finish } from "../../../src/workqueue/cpu-scheduler.ts";
import { bindingOf } from "../bindings.ts";
import { NOT_IN_FILES, WITHOUT_ADVICE } from "../fakes.ts";
import { CONFIGMAPS, HARBORS, ISSUERS, SECRETS } from "../resources.ts";

const harbor = { apiVersion: "goharbor.io/v1beta1", resource: "harborclusters", name: "harbor", scope: "Namespaced" };
const sources = [
  { secret: { name: "bucket" } },
  { name: "shared", secret: { name: "bucket", namespace: "storage" }, optional: true, onMissing: "Remove" },
  { name: "place", configMap: { name: "region" } },
  { object: harbor },
];
const parsed = (more: object[] = []) => parseSources(bindingOf({ sources: [...sources, ...more] }));

/** `installed` is the configuration. The cluster serves at most HarborClusters. */
function context(installed: object = {}, served = [HARBORS], more: Partial<ResolveContext> = {}): ResolveContext {
  return {
    discovery: { ...WITHOUT_ADVICE, byPlural: async (_, plural) => served.find((each) => each.plural === plural) },
    installation: new Installation({ ownNamespace: "inlay-system", ...installed }),
    client: { get: () => Promise.reject(new Error("nothing is read")) },
    identity: "system:serviceaccount:registry:inlay",
    accountUid: "uid",
    connections: { get: () => undefined },
    polls: { stateOf: () => ({ phase: "pending" }) },
    compositionOf: () => "none",
    ...more,
  };
}
async function reasonsOf(entries: object[], where: ResolveContext): Promise<(string | undefined)[]> {
  const resolved = await resolveSources(parseSources(bindingOf({ sources: entries })), where);
  return [...resolved.values()].map((each) => (each instanceof Problem ? each.reason : undefined));
}

describe("spec.sources", () => {
  it("is parsed to the name, the policy and the addressing of each source", () => {
    assert.deepEqual(
      parsed().map(({ name, addressedBy, policy: { onMissing, optional } }) => [
        name,
        addressedBy,
        onMissing,
        optional,
      ]),
      [
        ["bucket", "key", "Wait", false],
        ["shared", "key", "Remove", true],
        ["place", "key", "Wait", false],
        ["harbor", "fieldPath", "Wait", false],
      ],
    );
  });

  it("needs a grant in another namespace, and with granted", () => {
    const at = (more: object) => ({ secret: { name: "bucket", ...more } });
    const entries = [
      at({}),
      at({ granted: false }),
      at({ granted: true }),
      at({ namespace: "storage", granted: false }),
    ];
    const all = [...entries, at({ namespace: "registry" }), { configMap: { name: "region", granted: true } }];
    const named = all.map((each, n) => ({ ...each, name: `s${n}` }));
    const needing = parseSources(bindingOf({ sources: named })).map(({ data }) => data?.needsGrant);
    assert.deepEqual(needing, [false, false, true, true, false, true]);
  });

  it("shows which sources pods can refer to, and in which namespace a Secret protects the values as well", () => {
    assert.deepEqual(
      parsed().map(({ data }) => data && `${data.kind} ${data.namespace}/${data.name}`),
      ["Secret registry/bucket", "Secret storage/bucket", "ConfigMap registry/region", undefined],
    );
    assert.deepEqual(
      [...secretNamespaces(parseSources(bindingOf({ sources })))],
      [
        ["bucket", "registry"],
        ["shared", "storage"],
      ],
    );
  });

  it("recognizes its objects, which a binding can't create, by group, kind, namespace and name", () => {
    const isSource = (resource: typeof SECRETS, name: string, namespace?: string) =>
      parsed().some((each) => each.isObject({ resource, name, ...(namespace && { namespace }) }));
    assert.ok(isSource(SECRETS, "bucket", "registry") && isSource(SECRETS, "bucket", "storage"));
    assert.ok(isSource(CONFIGMAPS, "region", "registry") && isSource(HARBORS, "harbor", "registry"));
    assert.ok(!isSource(CONFIGMAPS, "bucket", "registry") && !isSource(SECRETS, "bucket", "elsewhere"));
    assert.ok(!isSource({ ...HARBORS, group: "example.com" }, "harbor", "registry") && !isSource(HARBORS, "harbor"));
  });

  it("is resolved to the objects to watch, and to the places in digests", async () => {
    const resolved = [...(await resolveSources(parsed(), context())).values()];
    assert.deepEqual(
      resolved.map((each) => (each instanceof Problem ? each.reason : each.place)),
      [
        ["", "Secret", "registry", "bucket"],
        ["", "Secret", "storage", "bucket"],
        ["", "ConfigMap", "registry", "region"],
        ["goharbor.io", "HarborCluster", "registry", "harbor"],
      ],
    );
    assert.ok(resolved.every((each) => !(each instanceof Problem) && each.watched !== undefined));
  });

  it("has a Problem for a source that can't be resolved, and only for that one", async () => {
    const [, shared, , object] = sources as [object, object, object, object];
    const issuer = {
      object: { apiVersion: "cert-manager.io/v1", resource: "clusterissuers", name: "ca", scope: "Namespaced" },
    };
    const all = [...sources, issuer];
    const none = [undefined, undefined, undefined, "KindNotFound", "KindNotFound"];
    assert.deepEqual(await reasonsOf(all, context({}, [])), none);
    assert.deepEqual(await reasonsOf([issuer], context({}, [ISSUERS])), ["InvalidBinding"]);
    assert.deepEqual(await reasonsOf([shared, object], context({ scope: "registry" })), ["OutOfScope", undefined]);
    const inSystem = { secret: { name: "bucket", namespace: "kube-system" } };
    assert.deepEqual(await reasonsOf([inSystem, shared], context()), ["ForbiddenNamespace", undefined]);
  });

  it("has a Problem for a source of a kind from a newer CRD", async () => {
    assert.deepEqual(await reasonsOf([{ name: "new", novel: {} }, ...sources.slice(0, 1)], context()), [
      "InvalidBinding",
      undefined,
    ]);
  });
});

/** The data of a server outside of the cluster, and its number of requests. */
class Server {
  version = 1;
}

/** A kind as a file in src/sources/ defines it, without a watch. */
function remote(server: Server): SourceKind {
  return {
    parse(entry, { namespace, policy }) {
      if (!("remote" in entry)) return undefined;
      const { name = "" } = entry;
      const path = String(entry["remote"]);
      const description = `Remote ${path}`;
      const poll: Poll<string> = {
        id: path,
        group: "server",
        refreshMs: 60_000,
        ...NOT_IN_FILES,
        ask: async () => ({ version: `v${server.version}`, content: `value ${server.version}`, size: 7 }),
      };
      return {
        name,
        policy,
        addressedBy: "key",
        secretIn: namespace,
        describe: () => ({ kind: "Remote", name: path }),
        isObject: () => false,
        resolve: async (context) => {
          const place = ["example.com", "Remote", "", path] as const;
          return polledSource({ place, description, policy }, poll, context, (text) => ({
            kind: "data",
            isSecret: true,
            description,
            version: text,
            policy,
            data: new Map([["key", new SecretValue<Uint8Array>(Buffer.from(text))]]),
            annotations: new SecretValue({}),
            labels: new SecretValue({}),
          }));
        },
      };
    },
  };
}

describe("a kind of source that is polled", () => {
  const server = new Server();
  const { promise: answered, resolve } = Promise.withResolvers<void>();
  const poller = new Poller({
    changed: () => resolve(),
    refreshed: () => {},
    onError: (error) => assert.fail(String(error)),
  });
  before(() => SOURCE_KINDS.push(remote(server)));
  after(() => {
    SOURCE_KINDS.pop();
    poller.stop();
  });
  const entry = { name: "r", remote: "kv/harbor" };
  const polling = () => context({}, [], { polls: poller });
  async function resolved(): Promise<PolledSource> {
    const source = (await resolveSources(parsed([entry]), polling())).get("r");
    assert.ok(source !== undefined && !(source instanceof Problem) && !source.watched && !source.listed);
    return source;
  }

  it("is parsed with the others, with its own addressing", () => {
    const all = parsed([entry]);
    assert.deepEqual(
      all.map(({ name }) => name),
      ["bucket", "shared", "place", "harbor", "r"],
    );
    const read = () => [{ source: "r", path: ["a", "b"] }];
    const uses = usesOf(all, { path: "spec.x", template: "{{r.[a.b]}}" } as Parameters<typeof usesOf>[1], read);
    assert.deepEqual(uses, [{ source: "r", of: "a.b" }]);
  });

  it("is read without a watch, a grant or a request to the API server", async () => {
    const granted: GrantedSources = {
      asker: () => ({ namespace: "registry", account: "inlay", composition: "none" }),
      copied: [],
      isPending: false,
      dependencies: [],
      state: "",
      grantsFor: () => assert.fail("it has no namespace"),
      exceededFor: () => undefined,
      steps: async (work) => finish(work),
    };
    const observed = {
      account: undefined,
      objects: [],
      grants: granted,
      problemOf: () => assert.fail("it has no watch"),
      seenVersion: () => assert.fail("it has no watch"),
      listed: () => assert.fail("it has no watch"),
    };
    const source = await resolved();
    const read = async () => (await readSources(context().client, new Map([["r", source]]), observed, false)).get("r");
    const { poll } = source;
    assert.ok(poll);
    const early = await read();
    assert.ok(early instanceof Problem && early.reason === "Unavailable");
    poller.subscribe("registry/binding", [poll]);
    await answered;
    const live = await read();
    assert.ok(live !== undefined && !(live instanceof Problem) && live.kind === "data");
    assert.deepEqual([live.version, live.data.get("key")?.reveal().toString()], ["value 1", "value 1"]);
  });
});
