/** Every test file ran, every one on a control plane was searched for leaks, and together they used every right of Inlay. */
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

  it("used every right of the controller's own", async () => {
    const used = new Set(onControlPlane.flatMap(({ rights }) => rights));
    const { controller } = await shippedRights();
    assert.deepEqual(
      controller.map(describeRight).filter((right) => !used.has(right)),
      [],
    );
  });

  it("used every right of the account for Reloader's annotations", async () => {
    const used = new Set(onControlPlane.flatMap(({ reloaderRights }) => reloaderRights));
    const { reloader } = await shippedRights();
    // That it may act as accounts of its name is for the admission policy, which asks for it.
    const meant = reloader.filter(({ verb }) => verb !== "impersonate");
    assert.deepEqual(
      meant.map(describeRight).filter((right) => !used.has(right)),
      [],
    );
  });

  it("used every right of the account for compositions, and the right to act as it", async () => {
    const used = new Set(onControlPlane.flatMap(({ compositionRights }) => compositionRights));
    const { compositions, openingCompositions } = await shippedRights();
    // That it may act as the accounts of bindings is for the admission policy, which asks for it.
    const meant = [...compositions.filter(({ verb }) => verb !== "impersonate"), ...openingCompositions];
    assert.deepEqual(
      meant.map(describeRight).filter((right) => !used.has(right)),
      [],
    );
  });
});
