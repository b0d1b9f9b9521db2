/** A controller as the image runs it, with less memory than the pod's limit leaves to the heap: more would be its end. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ControllerProcess } from "./controller.ts";

export class ConfinedController extends ControllerProcess {
  protected override readonly command = [
    "--max-old-space-size=160",
    join(import.meta.dirname, "..", "..", "src", "main.ts"),
  ];

  /** It is the one that was started, is ready, and never held more than it may. */
  async isWell(): Promise<void> {
    assert.equal(this.output.match(/controller started/g)?.length, 1);
    assert.equal(await this.page("/readyz"), "ok\n");
    const status = await readFile(`/proc/${this.pid}/status`, "utf8");
    const most = Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024;
    assert.ok(most < 512, `${most} MB`);
  }
}
