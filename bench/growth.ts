/** What one change costs with more bindings, larger Secrets and targets, more targets of a binding, and more accounts. */
import { measureLatency } from "./beside.ts";
import { atOnce, weightOf } from "./cluster.ts";
import {
  type Compared,
  type Course,
  harborCourse,
  harborPatch,
  makeHarborCourse,
  SIDES,
  type Side,
  secretChange,
} from "./course.ts";
import type { GrowthRow } from "./results.ts";
import type { Rig } from "./rig.ts";
import { median, ms } from "./table.ts";
import {
  bindingOf,
  bindingPath,
  dropBindings,
  harborPath,
  makeBindings,
  makeHarbors,
  makeNamespace,
  makeSecrets,
} from "./world.ts";

const BINDINGS = [10, 100, 1_000, 10_000];
const FEW = 10;
const KIB = 1024;
const CHANGES = 200;
/** Etcd keeps each version of a large object for some minutes, up to 2 GiB in total. */
const CHANGES_OF_LARGE = 100;

export async function measureGrowth(rig: Rig): Promise<void> {
  rig.table.note("latency of one change, and milliseconds of a core for each target:");
  const rows = [...(await measureSizes(rig)), ...(await measureAccounts(rig)), ...(await measureBindings(rig))];
  rig.results.add("growth", { rows });
}

const namespacesOf = (name: string): Compared<string> => ({ floor: `${name}-floor`, ours: name });

async function measureSizes(rig: Rig): Promise<GrowthRow[]> {
  const targets = rig.of(1_000);
  const small = await few(rig, "growth-small");
  const secrets = await few(rig, "growth-secrets", { bytes: 900 * KIB });
  const large = await few(rig, "growth-targets", { fields: weightOf(500 * KIB) });
  const selecting = await oneBinding(rig, "growth-selected", targets);
  await start(rig, 3 * FEW, small);
  const rows = [
    await measureRow(rig, `${FEW} bindings, Secrets of 1 KiB, targets of 2 KiB`, small, CHANGES),
    await measureRow(rig, `${FEW} bindings, Secrets of 900 KiB`, secrets, CHANGES_OF_LARGE),
    await measureRow(rig, `${FEW} bindings, targets of 500 KiB`, applied(large), CHANGES_OF_LARGE),
    await measureRow(rig, `one binding with ${targets} targets`, selecting, FEW),
  ];
  await stop(rig);
  return rows;
}

/** A few bindings of Secrets with so many bytes, and of targets with additional fields. */
const few = ({ client }: Rig, name: string, size: { bytes?: number; fields?: object } = {}): Promise<Course> =>
  makeHarborCourse(client, namespacesOf(name), FEW, size);

/** The same with a floor that applies, which is faster than a merge patch of a large object. */
const applied = (course: Course): Course => ({
  ...course,
  dependents: (...change) =>
    course.dependents(...change).map(({ path, patch }) => ({
      path,
      patch: { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", ...patch },
      apply: true,
    })),
});

/** One binding that selects so many targets. */
async function oneBinding({ client }: Rig, name: string, targets: number): Promise<Course> {
  const namespaces = namespacesOf(name);
  for (const side of SIDES) {
    const namespace = namespaces[side];
    await makeNamespace(client, namespace);
    await makeSecrets(client, () => namespace, 1);
    await makeHarbors(client, () => namespace, targets);
  }
  const { spec, ...binding } = bindingOf(name, 0);
  const selecting = spec.targets.map(({ name: _, ...target }) => ({ ...target, selector: { names: ["h-*"] } }));
  await client.send("POST", bindingPath(name), { ...binding, spec: { ...spec, targets: selecting } });
  return {
    ...harborCourse(namespaces, 1),
    dependents: (side, _, value) =>
      Array.from({ length: targets }, (_, i) => ({
        path: harborPath(namespaces[side], `h-${i}`),
        patch: harborPatch(value),
      })),
  };
}

/** A binding in each of many namespaces, each of which has its own account. */
async function measureAccounts(rig: Rig): Promise<GrowthRow[]> {
  const { client } = rig;
  const count = rig.of(1_000);
  const namespaceOf = (side: Side, i: number) => `${namespacesOf("growth-account")[side]}-${i}`;
  for (const side of SIDES) {
    await atOnce(count, FEW, (i) => makeNamespace(client, namespaceOf(side, i)));
    await makeSecrets(client, (i) => namespaceOf(side, i), count);
    await makeHarbors(client, (i) => namespaceOf(side, i), count);
  }
  await makeBindings(client, (i) => namespaceOf("ours", i), count);
  const course: Course = {
    ...harborCourse(namespacesOf("growth-account"), count),
    watched: () => "/apis/goharbor.io/v1beta1/harborclusters",
    change: (side, i, value) => secretChange(namespaceOf(side, i), i, value),
    dependents: (side, i, value) => [{ path: harborPath(namespaceOf(side, i), `h-${i}`), patch: harborPatch(value) }],
  };
  await start(rig, count, course);
  const rows = [await measureRow(rig, `${count} bindings of ${count} accounts`, course, CHANGES)];
  await stop(rig);
  return rows;
}

/** More and more bindings of one account. */
async function measureBindings(rig: Rig): Promise<GrowthRow[]> {
  const { client } = rig;
  const namespaces = namespacesOf("growth");
  for (const side of SIDES) await makeNamespace(client, namespaces[side]);
  const rows: GrowthRow[] = [];
  let from = 0;
  for (const count of new Set(BINDINGS.map((each) => rig.of(each)))) {
    for (const side of SIDES) {
      await makeSecrets(client, () => namespaces[side], count - from, { from });
      await makeHarbors(client, () => namespaces[side], count - from, { from });
    }
    await makeBindings(client, () => namespaces.ours, count - from, from);
    const course = harborCourse(namespaces, count);
    if (from === 0) await start(rig, count, course);
    else await rig.synced(count);
    rows.push({ ...(await measureRow(rig, `${count} bindings of one account`, course, CHANGES)), bindings: count });
    from = count;
  }
  await stop(rig);
  return rows;
}

/** Starts the controller, and measures something first that does not count, because code that has not run often is slow. */
async function start(rig: Rig, bindings: number, course: Course): Promise<void> {
  await rig.controller.start();
  await rig.synced(bindings);
  await rig.controller.process.quiet();
  await measureLatency(rig, course, rig.of(CHANGES) / 2);
}

async function stop(rig: Rig): Promise<void> {
  await rig.controller.stop();
  await dropBindings(rig.client);
}

async function measureRow(rig: Rig, what: string, course: Course, changes: number): Promise<GrowthRow> {
  await rig.controller.process.quiet();
  const { floor, ours } = await measureLatency(rig, course, rig.of(changes));
  const [theirs, own] = [median(floor.times), median(ours.times)];
  rig.table.row(`${what}, median`, ms(theirs), ms(own));
  rig.table.row("  ratio", "", (own / theirs).toFixed(2), "1.3 at most");
  const writes = course.dependents("floor", 0, "").length;
  for (const program of ["kube-apiserver", "the controller"]) {
    const [floorUsed = 0, used = 0] = [floor.used[program], ours.used[program]];
    rig.table.row(`  processor of ${program}`, ms(floorUsed / writes), ms(used / writes));
  }
  return { what, median: { floor: theirs, ours: own } };
}
