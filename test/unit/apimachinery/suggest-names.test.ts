/** Which existing name is suggested for a misspelt one. */
import assert from "node:assert/strict";
import { similarName, suggestNames } from "../../../src/apimachinery/suggest-names.ts";

describe("a suggestion for a misspelt name", () => {
  it("is the most similar name, whatever its case", () => {
    assert.equal(similarName("harbr-core", ["harbor-jobs", "harbor-core", "harbor-corex"]), "harbor-core");
    assert.equal(similarName("hraobr", ["harbor"]), "harbor");
    assert.equal(similarName("deployment", ["Deployment", "DaemonSet"]), "Deployment");
    assert.equal(similarName("wbe", ["web", "db"]), "web");
  });

  it("is none if no name is close, and closer for a short name", () => {
    assert.equal(similarName("portal", ["harbor", "web"]), undefined);
    assert.equal(similarName("web", ["api", "wax"]), undefined);
    assert.equal(similarName("web", []), undefined);
  });

  it("costs little among many names", () => {
    const names = Array.from({ length: 10_000 }, (_, n) => `workload-${n}-${"x".repeat(n % 200)}`);
    const began = performance.now();
    assert.equal(similarName("workload-1", names), "workload-0-");
    assert.ok(performance.now() - began < 1_000);
  });

  it("lists the others too where a user may not know the names", () => {
    assert.equal(suggestNames("spec", "storge", ["auth", "storage"]), "did you mean storage? spec has storage, auth");
    assert.equal(suggestNames("spec", "x", []), "spec has no fields");
    // A name as short as this with two other letters is another name.
    assert.equal(suggestNames("spec", "auth", ["path"]), "spec has path");
  });
});
