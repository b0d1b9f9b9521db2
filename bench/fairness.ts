/**
 * Single changes in one namespace while all Secrets of another namespace change at once, next to the same without that burst. The floor's
 * single changes run beside a burst of the floor, because both bursts keep the API server busy.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "./cluster.ts";
import { type Changes, type Compared, makeHarborCourse, SIDES, type Side, startChanges } from "./course.ts";
import type { Rig } from "./rig.ts";
import { ms, quantile } from "./table.ts";
import { dropBindings } from "./world.ts";

const TENANT = { floor: "fairness-floor", ours: "fairness" };
const OTHER = { floor: "fairness-burst-floor", ours: "fairness-burst" };
/** Between two single changes. */
const PAUSE_MS = 50;
const CHANGES = 300;

export async function measureFairness(rig: Rig): Promise<void> {
  const { client, cluster, controller } = rig;
  const tenant = await makeHarborCourse(client, TENANT, rig.of(200));
  const other = await makeHarborCourse(client, OTHER, rig.of(1_000));
  await controller.start();
  await rig.synced(tenant.count + other.count);
  // The tenant has its own connections, as it would have.
  const own = new Client(cluster);
  const singles = await startChanges(own, tenant);
  const bursts = await startChanges(client, other);
  await compare(rig, (side, n) => singles[side].single(n % tenant.count), bursts);
  for (const side of SIDES) {
    singles[side].stop();
    bursts[side].stop();
  }
  await own.close();
  await controller.stop();
  await dropBindings(client);
}

/** Sends a change every 50 ms, even if the last ones have not arrived yet. Returns the milliseconds of each. */
async function steadily(change: () => Promise<number>, isOver: (sent: number) => boolean): Promise<number[]> {
  const times: Promise<number>[] = [];
  for (let next = performance.now(); !isOver(times.length); ) {
    times.push(change());
    next += PAUSE_MS;
    await sleep(Math.max(0, next - performance.now()));
  }
  return Promise.all(times);
}

type ChangeOne = (side: Side, n: number) => Promise<number>;

async function compare(rig: Rig, changeOne: ChangeOne, bursts: Compared<Changes>): Promise<void> {
  const changes = rig.of(CHANGES);
  const quiet: Compared<number[]> = { floor: [], ours: [] };
  const beside: Compared<number[]> = { floor: [], ours: [] };
  /** Of the changes beside bursts, those that were sent when only Inlay still worked on the burst. */
  const behind: number[] = [];
  let sent = 0;
  const change = (side: Side) => () => changeOne(side, sent++);
  // Code that has not run often is slow.
  for (const side of SIDES) await bursts[side].burst();
  for (const side of SIDES) {
    await rig.controller.process.quiet();
    quiet[side] = await steadily(change(side), (count) => count >= changes);
  }
  while (SIDES.some((side) => beside[side].length < changes)) {
    for (const side of SIDES) {
      await rig.controller.process.quiet();
      let [isWritten, isOver] = [false, false];
      const bursting = bursts[side].burst(() => {
        isWritten = true;
      });
      void bursting.then(() => {
        isOver = true;
      });
      const changing = async () => {
        const [isBehind, time] = [isWritten, await change(side)()];
        if (isBehind && side === "ours") behind.push(time);
        return time;
      };
      beside[side].push(...(await steadily(changing, () => isOver)));
    }
  }
  report(rig, quiet, beside, behind);
  rig.results.add("fairness", { quiet, beside });
}

function report(
  { table }: Rig,
  quiet: Compared<number[]>,
  beside: Compared<number[]>,
  behind: readonly number[],
): void {
  for (const q of [0.5, 0.99]) {
    const at = ({ floor, ours }: Compared<number[]>) => [quantile(floor, q), quantile(ours, q)] as const;
    const [[floorQuiet, oursQuiet], [floorBeside, oursBeside]] = [at(quiet), at(beside)];
    table.row(`a change every ${PAUSE_MS} ms, p${q * 100}`, ms(floorQuiet), ms(oursQuiet));
    table.row("  beside bursts of another namespace", ms(floorBeside), ms(oursBeside));
    const aim = q === 0.99 ? "3 at most" : "";
    table.ours("  of these, when all Secrets of the burst have been written", ms(quantile(behind, q)));
    table.row("  ratio", (floorBeside / floorQuiet).toFixed(2), (oursBeside / oursQuiet).toFixed(2), aim);
  }
  table.row("  changes beside bursts", String(beside.floor.length), String(beside.ours.length));
}
