/** Finds out before a file is read whether it can be read at once. */
import { statSync } from "node:fs";

/** Undefined if the file can be read, or if it does not exist. Throws the error of Node if that can't be found out. */
export function whyTooLarge(file: string, maxMiB: number): string | undefined {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined || found.isDirectory()) return undefined;
  // A pipe is a file too, such as <(command) in a shell. A device may be endless.
  if (!found.isFile() && !found.isFIFO() && file !== "/dev/stdin") return "this is a device; write the path of a file";
  return found.size > maxMiB * 2 ** 20 ? `the file is larger than ${maxMiB} MiB` : undefined;
}
