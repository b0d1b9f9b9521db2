/** Shows that every test file ran, that each was searched for leaks, and that together they used every permission of Inlay. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { join } from "node:path";
import { describeRight } from "../controller/rights.ts";
import { type FileResult, FOLDERS_ON_CONTROL_PLANE, isOnControlPlane, nameOf, readResults } from "./results.ts";
import { shippedRights } from "./rights.ts";

const root = join(import.meta.dirname, "..");

describe("the whole run", () => {
  let results: Map<string, FileResult>;
  let onControlPlane: FileResult[];
  before(async () => {
    const all = await readResults();
    results = new Map(all.map((each) => [each.file, each]));
    onControlPlane = all.filter(({ file }) => isOnControlPlane(join(root, file)));
  });

  it("ran every file, and every test of it", () => {
    const files = globSync(`{unit,${FOLDERS_ON_CONTROL_PLANE.join()}}/**/*.test.ts`, { cwd: root });
    assert.ok(files.length > 150, `${files.length} files`);
    const missing = files.filter((file) => !results.get(nameOf(join(root, file)))?.tests.length);
    assert.deepEqual(missing, []);
    assert.deepEqual(
      onControlPlane.filter(({ isSearched }) => !isSearched),
      [],
    );
  });

  it("used every permission of the controller's own", async () => {
    const used = new Set(onControlPlane.flatMap(({ rights }) => rights));
    const { controller } = await shippedRights();
    assert.deepEqual(
      controller.map(describeRight).filter((right) => !used.has(right)),
      [],
    );
  });

  it("used every permission of the account for Reloader's annotations", async () => {
    const used = new Set(onControlPlane.flatMap(({ reloaderRights }) => reloaderRights));
    const { reloader } = await shippedRights();
    // The admission policy checks the permission to impersonate accounts of its name, without a request.
    const meant = reloader.filter(({ verb }) => verb !== "impersonate");
    assert.deepEqual(
      meant.map(describeRight).filter((right) => !used.has(right)),
      [],
    );
  });

  it("used every permission of the account for compositions, and the permission to impersonate it", async () => {
    const used = new Set(onControlPlane.flatMap(({ compositionRights }) => compositionRights));
    const { compositions, openingCompositions } = await shippedRights();
    // The admission policy checks the permission to impersonate the accounts of bindings, without a request.
    const meant = [...compositions.filter(({ verb }) => verb !== "impersonate"), ...openingCompositions];
    assert.deepEqual(
      meant.map(describeRight).filter((right) => !used.has(right)),
      [],
    );
  });
});
