/** Finds out before a file is read whether it can be read at once. */
import { type Stats, statSync } from "node:fs";

/** Says why a file must not be read as a whole. Undefined if nothing is known against it: reading it reports all other errors. */
export function whyTooLarge(file: string, maxMiB: number): string | undefined {
  const found = statOf(file);
  if (found === undefined || found.isDirectory()) return undefined;
  // A pipe is a file too, such as <(command) in a shell. A device may be endless.
  if (!found.isFile() && !found.isFIFO() && file !== "/dev/stdin") return "this is a device; write the path of a file";
  return found.size > maxMiB * 2 ** 20 ? `the file is larger than ${maxMiB} MiB` : undefined;
}

function statOf(file: string): Stats | undefined {
  try {
    return statSync(file);
  } catch {
    return undefined;
  }
}
