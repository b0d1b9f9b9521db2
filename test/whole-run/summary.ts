/** Prints the summary of a run from its results: failures, durations, and `N passed, N failed`. */
import { type FileResult, partOf, readFailures, readResults, runFolder } from "./results.ts";

const SLOWEST = 10;
/** A file that takes longer on an idle machine should be split or made faster. */
const LONGEST_MS = 60_000;
/** A file with a longer wait before its tests has started a control plane. */
const STARTED_MS = 1_000;

const minutes = (ms: number) => (ms / 60_000).toFixed(1);
const seconds = (ms: number) => (ms / 1000).toFixed(1);
const sum = <T>(all: readonly T[], of: (each: T) => number) => all.reduce((total, each) => total + of(each), 0);

/** `isGreen`: mocha itself has found no failure. */
export async function printSummary(isGreen: boolean): Promise<void> {
  const results = await readResults();
  const failures = await readFailures();
  const passed = sum(results, ({ tests }) => tests.filter(({ state }) => state === "passed").length);
  printDurations(results);
  if (failures.length > 0 || !isGreen) {
    console.log(`\nFailed${failures.length === 0 ? " outside of a test" : ""}:`);
    for (const { file, title } of failures) {
      const result = results.find((each) => each.file === file);
      const logs =
        result?.tests.find((test) => test.title === title && test.state === "failed")?.logs ?? result?.logs ?? [];
      console.log(`  ${file}: ${title}`);
      for (const log of logs) console.log(`    the controller's log of that moment: ${log}`);
    }
    console.log(`  All results and logs of this run: ${runFolder}`);
  }
  console.log(`\n${passed} passed, ${Math.max(failures.length, isGreen ? 0 : 1)} failed`);
}

function printDurations(results: readonly FileResult[]): void {
  const deps = [...Map.groupBy(results, ({ file }) => partOf(file))];
  const rows = deps.map(
    ([part, files]) =>
      [part, files.length, sum(files, ({ tests }) => tests.length), sum(files, ({ ms }) => ms)] as const,
  );
  const starts = results.filter(({ startMs }) => startMs > STARTED_MS);
  console.log("\nMinutes by part, added up over the workers that ran side by side:");
  for (const [part, files, tests, ms] of rows.sort((one, other) => other[3] - one[3]))
    console.log(`  ${part.padEnd(14)} ${minutes(ms).padStart(6)} min  ${files} files, ${tests} tests`);
  if (starts.length > 0)
    console.log(
      `  ${"control planes".padEnd(14)} ${minutes(sum(starts, ({ startMs }) => startMs)).padStart(6)} min  ${starts.length} started`,
    );

  console.log("\nThe slowest files:");
  for (const { file, ms } of results.toSorted((one, other) => other.ms - one.ms).slice(0, SLOWEST))
    console.log(
      `  ${seconds(ms).padStart(6)} s  ${file}${ms > LONGEST_MS ? "  (over 60 s: split it, or make it faster)" : ""}`,
    );

  console.log("\nThe slowest tests, with the hooks before them:");
  const tests = results.flatMap(({ file, tests }) => tests.map((test) => ({ file, ...test })));
  for (const { file, title, ms } of tests.sort((one, other) => other.ms - one.ms).slice(0, SLOWEST))
    console.log(`  ${seconds(ms).padStart(6)} s  ${file}: ${title}`);
}
