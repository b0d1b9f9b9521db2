/** Checks that the generated files are up to date with the CRDs. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import {
  generated,
  generatePage,
  generateRules,
  generateSchema,
  generateTypes,
  pages,
  rulesFile,
  schemas,
} from "../../apis/generate.ts";

describe("the generated file", () => {
  const types = generateTypes();
  for (const { crd, module } of generated) {
    it(`${module} is what npm run generate writes from ${crd}`, async () => {
      assert.equal(await readFile(module, "utf8"), (await types).get(module));
    });
  }
  for (const { crd, file } of schemas) {
    it(`${file} is what npm run generate writes from ${crd}`, async () => {
      assert.equal(await readFile(file, "utf8"), await generateSchema(crd));
    });
  }
  it(`${rulesFile} is what npm run generate writes`, async () => {
    assert.equal(await readFile(rulesFile, "utf8"), await generateRules());
  });
  for (const { crd, file } of pages) {
    it(`${file} is what npm run generate writes from ${crd}`, async () => {
      assert.equal(await readFile(file, "utf8"), await generatePage(crd));
    });
  }
});
