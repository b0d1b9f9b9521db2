/** The plots of docs/performance are drawn from the figures beside them. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { plotsOf } from "../../bench/plots.ts";
import { readResults } from "../../bench/results.ts";

const folder = join(import.meta.dirname, "..", "..", "docs", "performance");

describe("the plots of docs/performance", () => {
  it("are what the benchmark draws from results.json", async () => {
    const plots = plotsOf(await readResults(folder));
    const drawn = readdirSync(folder).filter((name) => name.endsWith(".svg"));
    assert.deepEqual(drawn.sort(), [...plots.keys()].sort());
    for (const [name, svg] of plots) assert.equal(readFileSync(join(folder, name), "utf8"), svg, name);
  });
});
