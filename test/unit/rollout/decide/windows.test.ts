/** When maintenance windows are open, also when clocks are put forward or back. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { type Window, windowAt } from "../../../../src/rollout/decide/pace.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const berlin = (schedule: string, duration: string): Window => ({ schedule, duration, timeZone: "Europe/Berlin" });
const newYork = (schedule: string, duration: string): Window => ({ schedule, duration, timeZone: "America/New_York" });

/** Asserts that it is open from one instant to another, to the millisecond, and announces the opening before. */
function assertOpen(window: Window, from: string, to: string): void {
  const [opens, closes] = [Date.parse(from), Date.parse(to)];
  assert.deepEqual(windowAt([window], opens - 1), { open: false, opensAt: opens }, "before");
  for (const inside of [opens, opens + 1, (opens + closes) / 2, closes - 1]) {
    assert.deepEqual(windowAt([window], inside), { open: true }, new Date(inside).toISOString());
  }
  assert.equal(windowAt([window], closes).open, false, "after");
}

describe("a maintenance window", () => {
  it("is always open if there is none", () => assert.deepEqual(windowAt([], Date.now()), { open: true }));

  it("opens by its schedule in its time zone, and closes after its duration", () => {
    assertOpen(berlin("0 2 * * 1-5", "2h"), "2026-07-01T00:00:00Z", "2026-07-01T02:00:00Z");
    assertOpen(berlin("0 2 * * 1-5", "2h"), "2026-01-07T01:00:00Z", "2026-01-07T03:00:00Z");
    assertOpen(newYork("0 22 * * SUN", "90m"), "2026-07-06T02:00:00Z", "2026-07-06T03:30:00Z");
    assertOpen({ schedule: "30 4 1 * *", duration: "1s" }, "2026-07-01T04:30:00Z", "2026-07-01T04:30:01Z");
    assertOpen(
      { ...berlin("0 2 * * *", "2h"), timeZone: "europe/berlin" },
      "2026-07-01T00:00:00Z",
      "2026-07-01T02:00:00Z",
    );
    assertOpen({ schedule: "@daily", duration: "1h" }, "2026-07-01T00:00:00Z", "2026-07-01T01:00:00Z");
  });

  it("opens right after the skipped hour if its time is in that hour", () => {
    assertOpen(berlin("30 2 * * *", "1h"), "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z");
    assertOpen(berlin("15,45 2 * * *", "10m"), "2026-03-29T01:00:00Z", "2026-03-29T01:10:00Z");
    assertOpen(newYork("0 2 * * *", "2h"), "2026-03-08T07:00:00Z", "2026-03-08T09:00:00Z");
  });

  it("has the same length if clocks are put forward or back while it is open", () => {
    assertOpen(berlin("0 1 * * *", "3h"), "2026-03-29T00:00:00Z", "2026-03-29T03:00:00Z");
    assertOpen(berlin("0 1 * * *", "3h"), "2026-10-24T23:00:00Z", "2026-10-25T02:00:00Z");
    assertOpen(newYork("0 23 * * 6", "4h"), "2026-03-08T04:00:00Z", "2026-03-08T08:00:00Z");
    assertOpen(newYork("0 23 * * 6", "4h"), "2026-11-01T03:00:00Z", "2026-11-01T07:00:00Z");
  });

  it("opens once in a repeated hour, the first time", () => {
    assertOpen(berlin("30 2 * * *", "45m"), "2026-10-25T00:30:00Z", "2026-10-25T01:15:00Z");
    assert.deepEqual(windowAt([berlin("30 2 * * *", "45m")], Date.parse("2026-10-25T01:30:00Z")), {
      open: false,
      opensAt: Date.parse("2026-10-26T01:30:00Z"),
    });
    assertOpen(newYork("0 1 * * *", "30m"), "2026-11-01T05:00:00Z", "2026-11-01T05:30:00Z");
  });

  it("opens at intervals of real time, also in a repeated hour", () => {
    const window = berlin("*/30 2 * * *", "10m");
    for (const opens of ["00:00", "00:30", "01:00", "01:30"]) {
      const from = Date.parse(`2026-10-25T${opens}:00Z`);
      assertOpen(window, new Date(from).toISOString(), new Date(from + 10 * MINUTE).toISOString());
    }
    assert.deepEqual(windowAt([window], Date.parse("2026-03-29T00:00:00Z")), {
      open: false,
      opensAt: Date.parse("2026-03-30T00:00:00Z"),
    });
  });

  it("stays open if the next one begins before it ends", () => {
    const window = berlin("0 */6 * * *", "8h");
    for (let at = Date.parse("2026-03-27T00:00:00Z"); at < Date.parse("2026-04-01T00:00:00Z"); at += 7 * MINUTE) {
      assert.deepEqual(windowAt([window], at), { open: true });
    }
    assert.deepEqual(windowAt([berlin("0 0 * * 1", "168h")], Date.parse("2026-06-03T12:00:00Z")), { open: true });
  });

  it("is any of several, and the one that opens first is reported", () => {
    const several = [berlin("0 2 * * *", "1h"), newYork("0 2 * * *", "1h"), { schedule: "0 12 * * *", duration: "1h" }];
    const state = (time: string) => windowAt(several, Date.parse(`2026-07-01T${time}Z`));
    for (const time of ["00:30:00", "06:30:00", "12:30:00"]) assert.deepEqual(state(time), { open: true }, time);
    const next: [time: string, opens: string][] = [
      ["01:00:00", "06:00:00"],
      ["07:00:00", "12:00:00"],
    ];
    for (const [time, opens] of next) {
      assert.deepEqual(state(time), { open: false, opensAt: Date.parse(`2026-07-01T${opens}Z`) });
    }
  });

  it("may be years ahead", () => {
    const leapDay = { schedule: "0 0 29 2 *", duration: "24h" };
    const opensAt = Date.parse("2104-02-29T00:00:00Z");
    assert.deepEqual(windowAt([leapDay], Date.parse("2096-03-01T00:00:00Z")), { open: false, opensAt });
  });

  const good = berlin("0 2 * * *", "1h");
  const cron = "; write minute, hour, day of month, month and day of week, such as";
  const mistakes: [mistake: Partial<Window>, says: string][] = [
    ...[
      "",
      "0 2 * *",
      "0 0 2 * * *",
      "60 * * * *",
      "0 25 * * *",
      "0 2 * * 8",
      "0 2 * * FOO",
      "every day",
      "@reboot",
    ].map((schedule): [Partial<Window>, string] => [
      { schedule },
      `schedule: "${schedule}" is not a cron schedule${cron}`,
    ]),
    [{ schedule: "2026-01-01T02:00:00" }, `schedule: "2026-01-01T02:00:00" is not a cron schedule${cron}`],
    [{ schedule: "0 0 30 2 *" }, 'schedule: "0 0 30 2 *" names a day that does not exist; write another schedule'],
    [{ duration: "2 hours" }, 'duration: "2 hours" is not a duration; write, for example, 45s, 10m or 1h30m'],
    [{ duration: "0s" }, "duration: a window of length 0 never opens; set its length, such as 2h"],
    ...["Europe/Berln", "", "Local", "CEST", "+02:00"].map((timeZone): [Partial<Window>, string] => [
      { timeZone },
      `timeZone: "${timeZone}" is not a time zone; write a name such as Europe/Berlin or UTC`,
    ]),
  ];
  for (const [mistake, says] of mistakes) {
    it(`may not be ${JSON.stringify(mistake)}, which is reported although another is open`, () => {
      assert.throws(
        () =>
          windowAt(
            [
              { schedule: "* * * * *", duration: "1h" },
              { ...good, ...mistake },
            ],
            Date.now(),
          ),
        (error) => {
          assert.ok(error instanceof Problem && error.reason === "InvalidBinding");
          assert.ok(error.message.startsWith(`rollout.windows[1].${says}`), error.message);
          return true;
        },
      );
    });
  }

  it("is open exactly from each start to the end of its duration, as a comparison with every minute's clock shows", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...CHANGES),
        fc.constantFrom(...SCHEDULES),
        fc.constantFrom(1, 15, 61, 180, 26 * 60, 3 * 24 * 60),
        fc.integer({ min: -2 * 24 * 60, max: 2 * 24 * 60 }),
        fc.constantFrom(0, -1, 1, 500),
        ([timeZone, change], schedule, minutes, off, beside) => {
          const now = Date.parse(change) + off * MINUTE + beside;
          const starts = startsByClock(schedule, timeZone, Date.parse(change));
          const open = starts.some((start) => start <= now && now < start + minutes * MINUTE);
          const opensAt = starts.find((start) => start > now);
          const found = windowAt([{ schedule, duration: `${minutes}m`, timeZone }], now);
          assert.deepEqual(found, open ? { open } : { open, opensAt }, new Date(now).toISOString());
        },
      ),
      { numRuns: 300 },
    );
  });
});

/** When clocks change: by an hour at night, by half an hour, at midnight, and never. */
const CHANGES: [timeZone: string, at: string][] = [
  ["Europe/Berlin", "2026-03-29T01:00:00Z"],
  ["Europe/Berlin", "2026-10-25T01:00:00Z"],
  ["America/New_York", "2026-03-08T07:00:00Z"],
  ["America/New_York", "2026-11-01T06:00:00Z"],
  ["Australia/Lord_Howe", "2026-04-04T15:00:00Z"],
  ["Australia/Lord_Howe", "2026-10-03T15:30:00Z"],
  ["Africa/Cairo", "2026-04-23T22:00:00Z"],
  ["Africa/Cairo", "2026-10-29T21:00:00Z"],
  ["Asia/Kathmandu", "2026-06-01T00:00:00Z"],
];
const SCHEDULES = [
  "0 2 * * *",
  "30 2 * * *",
  "15,45 2 * * *",
  "30 1-3 * * *",
  "30 0,23 * * *",
  "0 0 * * *",
  "0 2 * * 0,5",
  "59 1 * * *",
  "0 * * * *",
  "*/20 * * * *",
  "*/30 2 * * *",
  "10 */2 * * *",
  "* 2 * * 0",
];

const known = new Map<string, number[]>();
/** When a schedule's windows open around a change, computed from what the clocks show in every minute, without the library. */
function startsByClock(schedule: string, timeZone: string, change: number): number[] {
  const key = `${schedule} ${timeZone} ${change}`;
  const before = known.get(key);
  if (before !== undefined) return before;
  const [minute = "", hour = "", , , weekday = ""] = schedule.split(" ");
  const [minutes, hours, weekdays] = [valuesOf(minute, 60), valuesOf(hour, 24), valuesOf(weekday, 7)];
  const isMeant = (shown: number) =>
    minutes.has(shown % 60) &&
    hours.has(Math.floor(shown / 60) % 24) &&
    weekdays.has((Math.floor(shown / 1440) + 4) % 7);
  const isFixed = !/[*/]/.test(minute + hour);
  const starts: number[] = [];
  /** The latest time that clocks have shown, in minutes. A time that they show again was shown before. */
  let latest: number | undefined;
  for (const [at, shown] of clockAround(timeZone, change)) {
    const isNew = latest !== undefined && shown > latest;
    // For fixed times, also those that were skipped just before.
    const isStart = isFixed ? isNew && range((latest ?? 0) + 1, shown + 1).some(isMeant) : isMeant(shown);
    if (isStart) starts.push(at);
    latest = Math.max(latest ?? shown, shown);
  }
  known.set(key, starts);
  return starts;
}

const clocks = new Map<string, [at: number, shown: number][]>();
/** Each minute, with the clock's time in minutes since 1970. Clocks change at quarters of an hour. */
function clockAround(timeZone: string, change: number): [at: number, shown: number][] {
  const before = clocks.get(`${timeZone} ${change}`);
  if (before !== undefined) return before;
  const minutes: [at: number, shown: number][] = [];
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
  for (let quarter = change - 6 * DAY; quarter < change + 12 * DAY; quarter += 15 * MINUTE) {
    const shown = Date.parse(`${format.format(quarter).replace(" ", "T")}Z`) / MINUTE;
    for (let n = 0; n < 15; n++) minutes.push([quarter + n * MINUTE, shown + n]);
  }
  clocks.set(`${timeZone} ${change}`, minutes);
  return minutes;
}

const range = (from: number, to: number) => Array.from({ length: Math.max(0, to - from) }, (_, n) => from + n);

function valuesOf(field: string, count: number): Set<number> {
  const all = range(0, count);
  return new Set(
    field.split(",").flatMap((part) => {
      const [of = "", step = "1"] = part.split("/");
      const [least = "", most = least] = of.split("-");
      if (of === "*") return all.filter((value) => value % Number(step) === 0);
      return all.filter((value) => value >= Number(least) && value <= Number(most));
    }),
  );
}
