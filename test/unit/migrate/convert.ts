/** Converts objects in one file, for the tests of `inlay migrate`. */
import assert from "node:assert/strict";
import type { JsonObject } from "../../../src/apimachinery/objects.ts";
import { type Migration, migrate } from "../../../src/migrate/migration.ts";
import { TOOLS } from "../../../src/migrate/tools.ts";

export async function convert(tool: string, objects: readonly object[]): Promise<Migration> {
  const load = TOOLS[tool] ?? assert.fail(tool);
  const text = objects.map((object) => JSON.stringify(object)).join("\n---\n");
  return migrate(await load(), [{ name: "input.yaml", text }], "default");
}

export const specsOf = ({ converted }: Migration, kind = "SecretBinding"): JsonObject[] =>
  converted.flatMap(({ object }) => (object["kind"] === kind ? [object["spec"] as JsonObject] : []));
