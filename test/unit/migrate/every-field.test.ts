/** No field of the other tools' objects is lost silently: each is converted, reported, or in the list of fields that need nothing. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { isObject } from "../../../src/apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../../../src/apimachinery/objects.ts";
import { migrateDocuments } from "../../../src/migrate/migration.ts";
import { TOOLS } from "../../../src/migrate/tools.ts";
import { checkOwn } from "../../../src/render/own-kinds.ts";
import { IRRELEVANT } from "./irrelevant.ts";

type Steps = (string | number)[];
const folder = join(import.meta.dirname, "..", "..", "e2e", "migrate");
const MARKER = "inlayTestField";

const objectsOf = (tool: string): JsonObject[] =>
  parseAllDocuments(readFileSync(join(folder, tool, "input.yaml"), "utf8")).map((each) => each.toJS());

/** Every object and every leaf of the value. */
function* nodes(value: JsonValue, steps: Steps = []): Generator<{ steps: Steps; isObject: boolean }> {
  const children = Array.isArray(value) ? [...value.entries()] : isObject(value) ? Object.entries(value) : [];
  if (isObject(value) || children.length === 0) yield { steps, isObject: isObject(value) };
  for (const [key, child] of children) yield* nodes(child as JsonValue, [...steps, key]);
}

function changed(object: JsonObject, steps: Steps, change: (holder: JsonObject, key: string) => void): JsonObject {
  const copy = structuredClone(object);
  let holder: JsonObject = copy;
  for (const step of steps.slice(0, -1)) holder = holder[step] as JsonObject;
  change(holder, String(steps.at(-1)));
  return copy;
}

/** With the kind and `*` for objects that are reported as a whole, so that a field may be irrelevant in one kind only: `VaultAuth: spec.storageEncryption`. */
function isIrrelevant(tool: string, object: JsonObject, steps: Steps): boolean {
  const paths = [steps, steps.filter((step) => typeof step === "string")].map((each) => each.join("."));
  const isBelow = (each: string) => paths.some((path) => path === each || path.startsWith(`${each}.`));
  return (IRRELEVANT[tool] ?? []).some((each) => {
    const [kind, below] = each.includes(": ") ? (each.split(": ") as [string, string]) : [object["kind"], each];
    return kind === object["kind"] && (below === "*" || isBelow(below));
  });
}

function without(holder: JsonObject, key: string): void {
  if (Array.isArray(holder)) holder.splice(Number(key), 1);
  else delete holder[key];
}

function withAnother(holder: JsonObject, key: string): void {
  const value = holder[key];
  holder[key] = typeof value === "boolean" ? !value : typeof value === "number" ? value + 1 : `${value}x`;
}

for (const [name, load] of Object.entries(TOOLS)) {
  describe(`inlay migrate ${name}`, () => {
    const objects = objectsOf(name);
    const convert = async (all: readonly JsonObject[]) =>
      migrateDocuments(
        await load(),
        all.map((object) => ({ file: "input.yaml", object, positionOf: () => ({ line: 1, column: 1 }) })),
        "default",
      );
    const printed = async (all: readonly JsonObject[]) => {
      const { converted, lost, remarks } = await convert(all);
      return JSON.stringify([converted, remarks, lost.map(({ message }) => message)]);
    };

    it("converts or reports an unknown field at each level", async () => {
      const before = await printed(objects);
      for (const [at, object] of objects.entries())
        for (const { steps, isObject: isMap } of nodes(object)) {
          const place = [...steps, MARKER];
          if (!isMap || isIrrelevant(name, object, place)) continue;
          const planted = changed(object, place, (holder, key) => {
            holder[key] = "x";
          });
          const all = objects.with(at, planted);
          assert.notEqual(await printed(all), before, `${object["kind"]}: ${place.join(".")}`);
        }
    });

    it("uses or reports each field: with another value, or without it, the result is another one", async () => {
      const before = await printed(objects);
      for (const [at, object] of objects.entries())
        for (const { steps, isObject: isMap } of nodes(object)) {
          if (isMap || steps.length === 0 || isIrrelevant(name, object, steps)) continue;
          const results = await Promise.all(
            [without, withAnother].map((change) => printed(objects.with(at, changed(object, steps, change)))),
          );
          assert.ok(
            results.some((each) => each !== before),
            `${object["kind"]}: ${steps.join(".")}`,
          );
        }
    });

    it("writes objects that the schemas of Inlay accept", async () => {
      const { converted, remarks } = await convert(objects);
      assert.ok(converted.length + remarks.length > 0);
      for (const { object } of converted)
        assert.deepEqual(checkOwn(object, String((object["metadata"] as JsonObject)["name"])).wrong, []);
    });

    it("reports fields of wrong types, and never fails", async () => {
      for (const [at, object] of objects.entries())
        for (const { steps } of nodes(object)) {
          if (steps.length < 2) continue;
          const [other, ...others] = ([{ a: [7] }, null, 7] as JsonValue[]).map((wrong) =>
            changed(object, steps, (holder, key) => {
              holder[key] = wrong;
            }),
          ) as [JsonObject, ...JsonObject[]];
          await convert(objects.with(at, other));
          // Alone, because the conversion of all of them takes long.
          for (const each of others) await convert([each]);
        }
    });
  });
}
