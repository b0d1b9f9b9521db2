/**
 * Builds Go programs beside the first tests of a run, at a low priority. Building the control plane comes first, because most tests need it.
 *
 * Usage: node build-go-programs.ts NAME...
 */
import { setPriority } from "node:os";
import { findGoProgram } from "./go-program.ts";
import { GO_PROGRAMS } from "./go-programs.ts";
import { findPrograms } from "./programs.ts";

const LOW_PRIORITY = 10;

try {
  await findPrograms();
  setPriority(LOW_PRIORITY);
  for (const program of GO_PROGRAMS) if (process.argv.slice(2).includes(program.name)) await findGoProgram(program);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
