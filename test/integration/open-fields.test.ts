/**
 * Shows that Inlay accepts exactly the paths that the API server keeps, wherever a schema has `x-kubernetes-preserve-unknown-fields`: on an
 * object, a list, an element or a value of a map. What the API server keeps of an object is compared with the reasons of bindings.
 */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, usualRules } from "../controller/test-namespace.ts";

const open = { "x-kubernetes-preserve-unknown-fields": true };
const known = {
  type: "object",
  properties: { a: { type: "string" }, in: { type: "object", properties: { b: { type: "string" } } } },
};
const list = (items: object, more: object = {}) => ({ type: "array", items, ...more });
const map = (additionalProperties: object | true, more: object = {}) => ({
  type: "object",
  additionalProperties,
  ...more,
});
const embedded = { type: "object", "x-kubernetes-embedded-resource": true, properties: { spec: known } };

const kind: Kind = {
  group: "open.example.com",
  kind: "Opening",
  plural: "openings",
  spec: {
    type: "object",
    properties: {
      // As spec.pipelines of ECK's Logstash.
      pipelines: list({ type: "object" }, open),
      listOfKnown: list(known, open),
      listOfLists: list(list({ type: "object" }), open),
      listByKey: list(
        { ...known, required: ["a"] },
        { ...open, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"] },
      ),
      listOfEmbedded: list(embedded, open),
      elements: list({ ...known, ...open }),
      anyElements: list(open),
      map: map(known, open),
      values: map({ ...known, ...open }),
      listsInMap: map(list({ type: "object" }, open)),
      anyValues: map(true),
      anyLists: map(true),
      anyOpenValues: map(true, open),
      any: open,
      object: { ...known, ...open },
      listInObject: { type: "object", ...open, properties: { l: list(known) } },
      embedded: { ...embedded, ...open },
      closedEmbedded: embedded,
      closed: known,
      closedList: list(known),
    },
  },
};

const OLD = "old";
const element = { a: "x", unknown: OLD, in: { b: "y", unknown: OLD } };
const resource = { apiVersion: "v1", kind: "Pod", metadata: { name: "x" }, ...element, spec: element };
const spec = {
  pipelines: [{ ...element, "pipeline.id": "main" }],
  listOfKnown: [element],
  listOfLists: [[element]],
  listByKey: [element],
  listOfEmbedded: [resource],
  elements: [element],
  anyElements: [element],
  map: { k: element },
  values: { k: element },
  listsInMap: { k: [element] },
  anyValues: { unknown: OLD, k: element },
  anyLists: { k: [element] },
  anyOpenValues: { unknown: OLD, k: element },
  any: element,
  object: element,
  listInObject: { l: [element], other: [element] },
  embedded: resource,
  closedEmbedded: resource,
  closed: element,
  closedList: [element],
};

/** The path of each unknown field in a value. */
function unknownIn(value: unknown, at: string): string[] {
  if (Array.isArray(value)) return value.flatMap((each, index) => unknownIn(each, `${at}[${index}]`));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) =>
    key === "unknown" ? [`${at}.${key}`] : unknownIn(each, `${at}.${key}`),
  );
}

describe("an unknown field", () => {
  it("is written where the API server keeps it, and is an UnknownField where it does not", async () => {
    const team = await createNamespace({ rules: [...usualRules, mayWrite(kind)] });
    await installKind(team.api, kind);
    await createObject(team.api, kind, "one", spec, team.namespace);
    const path = objectPath(kind, team.namespace, "one");
    const kept = unknownIn((await team.api.get(path)).spec, "spec");
    const all = unknownIn(spec, "spec");
    assert.ok(kept.length > 15 && all.length > kept.length + 10, `${kept.length} of ${all.length}`);

    const value = secretText("new");
    await team.secret("bucket", { a: value });
    const bind = (name: string, at: string) => {
      const fields = [{ path: at, from: { source: "bucket", key: "a" } }];
      const target = { apiVersion: apiVersionOf(kind), kind: kind.kind, name: "one", onConflict: "Force", fields };
      return team.bind(name, { sources: [{ secret: { name: "bucket" } }], targets: [target] });
    };
    for (const [n, at] of all.entries()) await bind(`n${n}`, at);
    const expected = (at: string) => (kept.includes(at) ? "Synced" : "UnknownField");
    for (const [n, at] of all.entries()) {
      await team.until(`n${n}`, expected(at)).catch((error) => assert.fail(`${at}: ${error}`));
    }
    const after = (await team.api.get(path)).spec;
    assert.deepEqual(unknownIn(after, "spec"), kept);
    assert.ok(!JSON.stringify(after).includes(`"${OLD}"`), "some kept field has the old value");

    await bind("by-id", 'spec.pipelines["pipeline.id"=main]["config.string"]');
    await team.until("by-id", "Synced");
    const { pipelines } = (await team.api.get(path)).spec as { pipelines: AnyObject[] };
    assert.equal(pipelines[0]?.["config.string"], value);
  });
});
