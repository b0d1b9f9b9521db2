/** The plots of docs/performance are drawn from the figures beside them. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { plotsOf } from "../../bench/plots.ts";
import { Results, readResults } from "../../bench/results.ts";

const docs = join(import.meta.dirname, "..", "..", "docs", "performance");

async function assertDrawn(folder: string): Promise<void> {
  const plots = plotsOf(await readResults(folder));
  const drawn = readdirSync(folder).filter((name) => name.endsWith(".svg"));
  assert.deepEqual(drawn.sort(), [...plots.keys()].sort());
  for (const [name, svg] of plots) assert.equal(readFileSync(join(folder, name), "utf8"), svg, name);
}

describe("the plots of docs/performance", () => {
  it("are what the benchmark draws from results.json", () => assertDrawn(docs));

  it("are drawn from the rounded figures of the file, also of several parts in one run", async () => {
    const folder = await mkdtemp(join(tmpdir(), "inlay-plots-"));
    try {
      const results = new Results("v1.36.3", 1);
      const unrounded = () => ({ floor: [9.123456, 10.98765], ours: [12.3456789, 14.123456] });
      results.add("fairness", { quiet: unrounded(), beside: unrounded() });
      await results.save(folder);
      results.add("rotations", { latency: unrounded(), burst: unrounded() });
      await results.save(folder);
      await assertDrawn(folder);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
