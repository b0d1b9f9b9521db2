/** The controller with the memory of the shipped pod: 1 GiB, of which Node gives half to the heap. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ControlPlane } from "../../control-plane/control-plane.ts";
import { ControllerProcess } from "../controller.ts";

const POD_MIB = 1024;

const CONFIG_TYPE = { apiVersion: "config.inlay.dev/v1alpha1", kind: "ControllerConfiguration" };

/** A configuration file that has `config` beside its defaults, if anything. */
export async function configFile({ folder }: ControlPlane, config: object = {}): Promise<string> {
  const file = join(await mkdtemp(join(folder, "config-")), "config.yaml");
  await writeFile(file, JSON.stringify({ ...CONFIG_TYPE, ...config }));
  return file;
}

export class AttackedController extends ControllerProcess {
  protected override readonly command = [
    `--max-old-space-size=${POD_MIB / 2}`,
    "--max-semi-space-size=2",
    "--heap-growing-percent=10",
    join(import.meta.dirname, "..", "..", "..", "src", "main.ts"),
  ];

  /** Asserts that it was started so often and never ended by itself, is ready, and did not exceed the memory of the pod. */
  async isUp(starts = 1): Promise<void> {
    assert.equal(this.output.match(/controller started/g)?.length, starts);
    assert.ok(this.isRunning, this.output.slice(-2_000));
    assert.equal(await this.page("/readyz"), "ok\n");
    const most = await this.peakMiB();
    assert.ok(most < POD_MIB, `${most} MiB`);
  }

  /** The most memory that the process has had. */
  async peakMiB(): Promise<number> {
    const status = await readFile(`/proc/${this.pid}/status`, "utf8");
    return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024;
  }
}
