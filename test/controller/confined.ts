/** Starts a controller as in the image, with a lower limit of memory than the pod has. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ControllerProcess } from "./controller.ts";

export class ConfinedController extends ControllerProcess {
  protected override readonly command = [
    "--max-old-space-size=160",
    join(import.meta.dirname, "..", "..", "src", "main.ts"),
  ];

  /** Asserts that the process is the one that was started, is ready, and did not exceed its limit. */
  async isWell(): Promise<void> {
    assert.equal(this.output.match(/controller started/g)?.length, 1);
    assert.equal(await this.page("/readyz"), "ok\n");
    const status = await readFile(`/proc/${this.pid}/status`, "utf8");
    const most = Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024;
    assert.ok(most < 512, `${most} MB`);
  }
}
