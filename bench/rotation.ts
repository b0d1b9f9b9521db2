/** How fast a changed Secret arrives in the HarborCluster of its binding. */
import { type Course, compareBurst, compareLatency } from "./beside.ts";
import type { Rig } from "./rig.ts";
import {
  accessKeyOf,
  dropBindings,
  harborPath,
  makeBindings,
  makeHarbors,
  makeNamespace,
  makeSecrets,
} from "./world.ts";

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
  const course: Course = {
    what: "change",
    floor: FLOOR,
    ours: OURS,
    prefix: "h",
    count,
    path: harborPath,
    textOf: accessKeyOf,
    patch: (value) => {
      const s3 = { accesskey: value, regionendpoint: `https://${value}.example.com` };
      return { spec: { storage: { spec: { s3 } } } };
    },
  };
  await compareLatency(rig, course);
  await compareBurst(rig, course);
  await rig.controller.stop();
  await dropBindings(rig.client);
}
