/** Pages of a list that are too large are requested again with fewer objects. */
import assert from "node:assert/strict";
import { MAX_CHARACTERS } from "../../../src/kube/answer-text.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { Client } from "../../../src/kube/client.ts";
import { CONTROLLER } from "../../../src/kube/identity.ts";
import { ListWatch } from "../../../src/kube/list-watch.ts";
import type { Request } from "../../../src/kube/transport.ts";
import { fakeTransport } from "../fakes.ts";
import { SECRETS } from "../resources.ts";

const MIB = 1024 ** 2;

/** A server with objects of these sizes, and the limits of the pages that were requested. Fails for answers that are too large. */
function serverOf(sizes: number[]) {
  const limits: number[] = [];
  const transport = fakeTransport({
    request: async ({ path, accept = "", maxCharacters = MAX_CHARACTERS }: Request) => {
      const query = new URL(path, "https://x").searchParams;
      const [limit, from] = [Number(query.get("limit")), Number(query.get("continue") ?? 0)];
      limits.push(limit);
      const isMetadata = accept.includes("PartialObjectMetadataList");
      const lengths = sizes.slice(from, from + limit).map((size) => (isMetadata ? 100 : size));
      if (lengths.reduce((sum, each) => sum + each, 0) > maxCharacters) throw new ApiError("GET", 200, "TooLarge");
      const items = lengths.map((_, at) => ({ metadata: { name: `s-${from + at}` }, isMetadata }));
      const next = from + limit < sizes.length ? { continue: `${from + limit}` } : {};
      return { items, metadata: { resourceVersion: "1", ...next }, lengths };
    },
  });
  return { limits, transport };
}

const NAMESPACE = "registry";

async function listed(transport: ReturnType<typeof serverOf>["transport"]) {
  const scope = { resource: SECRETS, namespace: NAMESPACE, form: "whole" as const };
  const source = new ListWatch({ ...transport, lines: () => assert.fail() }, CONTROLLER, scope);
  const found: [name: string, isMetadata: unknown][] = [];
  for await (const { items } of source.list(new AbortController().signal))
    for (const { metadata, isMetadata } of items) found.push([metadata.name, isMetadata]);
  return found;
}

async function listedByClient(transport: ReturnType<typeof serverOf>["transport"]) {
  const names: string[] = [];
  for await (const page of new Client(transport).list(CONTROLLER, SECRETS, NAMESPACE))
    names.push(...page.map(({ metadata }) => metadata.name));
  return names;
}

const namesOf = (sizes: number[]) => sizes.map((_, at) => `s-${at}`);

describe("a list", () => {
  it("has pages of 500 objects", async () => {
    const { limits, transport } = serverOf(Array(1_200).fill(2_000));
    assert.equal((await listed(transport)).length, 1_200);
    assert.deepEqual(limits, [500, 500, 500]);
  });

  it("has smaller pages where objects are large, and shows all of them once", async () => {
    const sizes = [...Array(40).fill(MIB), ...Array(1_000).fill(1_000)];
    for (const list of [listedByClient, async (from: typeof transport) => (await listed(from)).map(([name]) => name)]) {
      const { limits, transport } = serverOf(sizes);
      assert.deepEqual(await list(transport), namesOf(sizes));
      assert.deepEqual(limits.slice(0, 7), [500, 125, 31, 7, 1, 2, 2]);
      assert.ok(limits.length < 40, `${limits}`);
      assert.equal(Math.max(...limits.slice(25)), 500);
    }
    const { transport } = serverOf([]);
    assert.deepEqual(await listed(transport), []);
  });

  it("reads an object of up to 16 MiB, and shows only the metadata of a larger one", async () => {
    const sizes = [100, 9 * MIB, 17 * MIB, 100];
    const { limits, transport } = serverOf(sizes);
    assert.deepEqual(await listed(transport), [
      ["s-0", false],
      ["s-1", false],
      ["s-2", true],
      ["s-3", false],
    ]);
    assert.ok(limits.length < 14, `${limits}`);
  });

  it("of a client fails for a larger object: it never counts as absent", async () => {
    await assert.rejects(listedByClient(serverOf([100, 17 * MIB]).transport), { reason: "TooLarge" });
  });
});
