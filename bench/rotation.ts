/** How fast a changed Secret arrives in the HarborCluster of its binding. */
import { measureBurst, measureLatency, reportBurst, reportLatency } from "./beside.ts";
import { harborCourse } from "./course.ts";
import { courseFigures } from "./results.ts";
import type { Rig } from "./rig.ts";
import { dropBindings, makeBindings, makeHarbors, makeNamespace, makeSecrets } from "./world.ts";

const OURS = "bench";
const FLOOR = "floor";

export async function measureRotations(rig: Rig): Promise<void> {
  const count = rig.of(1_000);
  for (const namespace of [FLOOR, OURS]) {
    await makeNamespace(rig.client, namespace);
    await makeSecrets(rig.client, () => namespace, count);
    await makeHarbors(rig.client, () => namespace, count);
  }
  await makeBindings(rig.client, () => OURS, count);
  await rig.controller.start();
  await rig.synced(count);
  await rig.controller.process.quiet();
  const course = harborCourse({ floor: FLOOR, ours: OURS }, count);
  const latency = await measureLatency(rig, course, rig.of(300));
  reportLatency(rig, course.what, latency);
  const burst = await measureBurst(rig, course);
  reportBurst(rig, course, burst);
  rig.results.add("rotations", courseFigures(latency, burst));
  await rig.controller.stop();
  await dropBindings(rig.client);
}
