/** `kubectl explain` has an answer for every field. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { generated } from "../../apis/generate.ts";

interface Schema {
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
}

/** The fields that the API server describes in every kind. */
const DESCRIBED = [".apiVersion", ".kind", ".metadata"];

function undescribed(schema: Schema, path = ""): string[] {
  const fields = Object.entries(schema.properties ?? {}).flatMap(([name, field]) => [
    ...(field.description === undefined ? [`${path}.${name}`] : []),
    ...undescribed(field, `${path}.${name}`),
  ]);
  return [...fields, ...(schema.items === undefined ? [] : undescribed(schema.items, `${path}[]`))];
}

describe("descriptions", () => {
  for (const { crd } of generated) {
    it(`exist for every field of ${crd}`, async () => {
      const { spec } = parse(await readFile(crd, "utf8"));
      for (const { schema } of spec.versions) assert.deepEqual(undescribed(schema.openAPIV3Schema), DESCRIBED);
    });
  }
});
