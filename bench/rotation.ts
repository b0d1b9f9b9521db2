/** How fast a changed Secret arrives in the HarborCluster of its binding. */
import { measureBurst, measureLatency, reportBurst, reportLatency } from "./beside.ts";
import { makeHarborCourse } from "./course.ts";
import { courseFigures } from "./results.ts";
import type { Rig } from "./rig.ts";
import { dropBindings } from "./world.ts";

export async function measureRotations(rig: Rig): Promise<void> {
  const count = rig.of(1_000);
  const course = await makeHarborCourse(rig.client, { floor: "floor", ours: "bench" }, count);
  await rig.controller.start();
  await rig.synced(count);
  await rig.controller.process.quiet();
  const latency = await measureLatency(rig, course, rig.of(300));
  reportLatency(rig, course.what, latency);
  const burst = await measureBurst(rig, course);
  reportBurst(rig, course, burst);
  rig.results.add("rotations", courseFigures(latency, burst));
  await rig.controller.stop();
  await dropBindings(rig.client);
}
