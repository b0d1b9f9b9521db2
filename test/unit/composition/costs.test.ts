/** The table of compositions/README.md that says what each page takes. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { costOf, indexPage, ROWS } from "../../../compositions/generate.ts";

const folder = join(import.meta.dirname, "..", "..", "..", "compositions");

describe("the table of what the pages of compositions take", () => {
  it("is up to date: run npm run generate", () => {
    assert.equal(readFileSync(join(folder, "README.md"), "utf8"), indexPage());
  });

  it("has every page", () => {
    const folders = readdirSync(folder, { withFileTypes: true }).filter((each) => each.isDirectory());
    assert.deepEqual(ROWS.map((row) => row.folder).toSorted(), folders.map(({ name }) => name).toSorted());
  });

  it("counts the objects of files and of commands, and no example", () => {
    const harbor = ROWS.find((row) => row.folder === "harbor") ?? assert.fail();
    // The Namespace, the HarborCluster and its Secret, and the CRD are there already.
    const { objects, commands } = costOf(harbor);
    // compositions.yaml, account.yaml, composition.yaml; the account, its two bindings and the grant.
    assert.equal(objects, 5 + 2 + 1 + 4);
    assert.equal(commands, 5);
  });

  it("refuses a section that the page does not have", () => {
    assert.throws(() => costOf({ folder: "harbor", sections: ["Instal"], other: "" }), /no section Instal/);
  });
});
