/**
 * The cost of checking that a write drops nothing, and what is known without permission. versions.test.ts shows what
 * the API server drops.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { OpenApiSchema } from "../../../src/apimachinery/openapi.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { METADATA_ONLY } from "../../../src/kube/client.ts";
import type { Request, Transport } from "../../../src/kube/transport.ts";
import { WriteVersions } from "../../../src/kube/write-versions.ts";
import { fakeClock } from "../clock.ts";
import { HARBOR, HARBORS } from "../resources.ts";

const ROOT = "/apis/goharbor.io/";
const IS_ROOT = /^\/apis\/goharbor\.io\/[^/]+$/;
const CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/harborclusters.goharbor.io";
const rootOf = (...fields: string[]): OpenApiSchema => {
  const properties = Object.fromEntries(fields.map((field) => [field, { type: "string" } as const]));
  return { type: "object", properties: { spec: { type: "object", properties } } };
};

/** An API server with one kind: its versions by name, with the fields of their spec. */
class Kind {
  readonly requests: string[] = [];
  strategy = "None";
  generation = 1;
  mayBeRead = true;
  failure: ApiError | undefined;
  stored = "v1";
  /** A version that was removed, whose schema the API server still publishes. */
  removed: string | undefined;
  /** The fields of the object; by default all fields of a version. */
  shown: string[] | undefined;
  versions: Record<string, string[]>;

  constructor(versions: Record<string, string[]>) {
    this.versions = versions;
  }

  get versionsOf(): WriteVersions {
    const schemas = {
      addressesIn: async () => new Map(Object.keys(this.versions).map((each) => [each, `${each}?${this.generation}`])),
      of: async ({ version }: { version: string }) => {
        const fields = this.versions[version];
        return fields && { root: rootOf(...fields), resolve: () => undefined };
      },
    };
    const request = async (asked: Request) => this.#answer(asked);
    return new WriteVersions({ request } as Pick<Transport, "request">, schemas, this.mayBeRead);
  }

  #answer({ path: asked, accept }: Request): unknown {
    const path = asked.replace("?resourceVersion=0", "");
    this.requests.push(accept === METADATA_ONLY ? `${path} metadata` : path);
    const metadata = { uid: "u", generation: this.generation, resourceVersion: "7" };
    const shown = this.shown ?? this.versions[path.split("/")[3] ?? ""] ?? [];
    const storageVersionHash = createHash("sha256").update(`goharbor.io/${this.stored}/HarborCluster`).digest();
    if (path === `${ROOT}${this.removed}`) throw new ApiError("GET", 404, "404");
    if (IS_ROOT.test(path))
      return {
        resources: [{ name: "harborclusters", storageVersionHash: storageVersionHash.toString("base64", 0, 8) }],
      };
    if (this.failure) throw this.failure;
    if (path !== CRD) return { metadata, spec: Object.fromEntries(shown.map((field) => [field, "x"])) };
    if (!this.mayBeRead) throw new ApiError("GET", 403, "Forbidden");
    const versions = Object.entries(this.versions).map(([name, fields]) => {
      return { name, served: true, storage: name === this.stored, schema: { openAPIV3Schema: rootOf(...fields) } };
    });
    return { metadata, spec: { conversion: { strategy: this.strategy }, versions } };
  }
}

const IN_V1BETA1 = "/apis/goharbor.io/v1beta1/namespaces/registry/harborclusters/harbor";
const IN_V1 = "/apis/goharbor.io/v1/namespaces/registry/harborclusters/harbor";

describe("the version of a write", () => {
  const clock = fakeClock();

  it("costs nothing for kinds of Kubernetes, whose versions convert", async () => {
    const kind = new Kind({ v1: ["a"], v2: ["a", "b"] });
    const hpas = { ...HARBORS, group: "autoscaling", version: "v1" };
    assert.equal(await kind.versionsOf.wholeOf(hpas), hpas);
    assert.equal(await kind.versionsOf.assertKeepsAll("me", { ...HARBOR, resource: hpas }), undefined);
    assert.deepEqual(kind.requests, []);
  });

  it("costs one small answer for each write, and the schemas only after a change", async () => {
    const kind = new Kind({ v1beta1: ["a"] });
    const versions = kind.versionsOf;
    const writes = () => Promise.all([1, 2].map(() => versions.assertKeepsAll("me", HARBOR)));
    await versions.wholeOf(HARBORS);
    await writes();
    assert.deepEqual(kind.requests.splice(0), [CRD]);
    await clock.pass(100);
    await writes();
    assert.deepEqual(kind.requests.splice(0), [`${CRD} metadata`]);
    await clock.pass(100);
    kind.versions = { v1beta1: ["a"], v1: ["a", "b"] };
    kind.generation++;
    await assert.rejects(writes(), { reason: "Unavailable" });
    assert.deepEqual(kind.requests.splice(0), [`${CRD} metadata`, CRD]);
    assert.equal((await versions.wholeOf(HARBORS)).version, "v1");
    assert.deepEqual(kind.requests, []);
  });

  it("is checked in advance for a write that is expected, whose failure the write reports", async () => {
    const kind = new Kind({ v1beta1: ["a"] });
    const versions = kind.versionsOf;
    versions.expectWrite(HARBORS);
    assert.deepEqual(kind.requests, [CRD]);
    await versions.assertKeepsAll("me", HARBOR);
    assert.deepEqual(kind.requests.splice(0), [CRD]);
    await clock.pass(100);
    kind.failure = new ApiError("GET", 500, "InternalError");
    versions.expectWrite(HARBORS);
    await assert.rejects(versions.assertKeepsAll("me", HARBOR), { reason: "InternalError" });
  });

  it("is the binding's version if a webhook converts, whatever fields it lacks", async () => {
    const kind = new Kind({ v1beta1: ["a"], v1: ["a", "b"] });
    kind.strategy = "Webhook";
    const versions = kind.versionsOf;
    assert.equal(await versions.wholeOf(HARBORS), HARBORS);
    assert.equal(await versions.assertKeepsAll("me", HARBOR), undefined);
    assert.deepEqual(kind.requests, [CRD]);
  });

  it("works for the object that was read if no version has all fields, and is refused if fields would be lost", async () => {
    const kind = new Kind({ v1beta1: ["a", "c"], v1: ["a", "b"] });
    const versions = kind.versionsOf;
    kind.shown = ["a"];
    assert.equal(await versions.assertKeepsAll("me", HARBOR), "7");
    kind.shown = ["a", "b"];
    await assert.rejects(versions.assertKeepsAll("me", HARBOR), { reason: "VersionDropsFields", retryPolicy: "Slow" });
    assert.deepEqual(new Set(kind.requests), new Set([CRD, IN_V1BETA1, IN_V1]));
  });

  it("is never advised to become the stored one, which could drop other fields", async () => {
    const kind = new Kind({ v1beta1: ["a", "b"], v1: ["a", "c"] });
    const problemOf = async (written?: object[]) => {
      const result = await kind.versionsOf.assertKeepsAll("me", HARBOR, written).catch((error) => error.message);
      return String(result).replace(/^.*Nothing was written; /, "");
    };
    const remove = "or remove the fields from the object";
    kind.shown = ["a", "c"];
    const advice = (version: string) => `add the fields to the schema of goharbor.io/${version} in the CRD`;
    assert.equal(await problemOf([{ spec: { b: "x" } }]), `remove the fields from the binding, or ${advice("v1")}`);
    assert.equal(await problemOf(), `name apiVersion: goharbor.io/v1 in the binding, ${remove}`);
    kind.stored = "v1beta1";
    assert.equal(await problemOf(), `${advice("v1beta1")}, ${remove}`);
    kind.shown = ["a", "b", "c"];
    kind.stored = "v1";
    assert.equal(await problemOf(), `${advice("v1beta1 and goharbor.io/v1")}, ${remove}`);
  });

  it("is found without permission to read CRDs, and asks for that permission if an object may lose fields", async () => {
    const kind = new Kind({ v1beta1: ["a", "c"], v1: ["a", "b"] });
    kind.mayBeRead = false;
    const versions = kind.versionsOf;
    await assert.rejects(versions.assertKeepsAll("me", HARBOR), /get customresourcedefinitions\/harborclusters/);
    assert.deepEqual(kind.requests.splice(0), [`${ROOT}v1beta1`, `${ROOT}v1`, IN_V1BETA1, IN_V1, CRD]);
    kind.versions["v1"] = ["a", "b", "c"];
    kind.generation++;
    assert.equal((await versions.wholeOf(HARBORS)).version, "v1");
    kind.stored = "v1beta1";
    assert.equal((await versions.wholeOf(HARBORS)).version, "v1beta1");
    assert.ok(kind.requests.every((path) => IS_ROOT.test(path)));
  });

  it("is not one that the CRD no longer has, although the API server still publishes its schema", async () => {
    const kind = new Kind({ v1beta1: ["a"], v1: ["a", "b"] });
    kind.mayBeRead = false;
    const versions = kind.versionsOf;
    kind.stored = "v1beta1";
    assert.equal((await versions.wholeOf(HARBORS)).hasLossyVersions, true);
    kind.removed = "v1";
    assert.equal(await versions.wholeOf(HARBORS), HARBORS);
  });
});
