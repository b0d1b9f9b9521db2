/** The generated types match the CRDs. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { generate, generated, generateSchema, schemas } from "../../apis/generate.ts";

describe("generated types", () => {
  for (const { crd, module } of generated) {
    it(`in ${module} are what npm run generate makes of ${crd}`, async () => {
      assert.equal(await readFile(module, "utf8"), await generate(crd));
    });
  }
  for (const { crd, file } of schemas) {
    it(`in ${file} are what npm run generate makes of ${crd}`, async () => {
      assert.equal(await readFile(file, "utf8"), await generateSchema(crd));
    });
  }
});
