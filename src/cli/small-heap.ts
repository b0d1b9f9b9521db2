/**
 * Starts the controller again in the same process with the settings that keep its memory small. Only the start of a process can set
 * them, and users start the controller in many ways. By default, Node keeps up to 100 MB for young objects, lets the heap double
 * before it collects garbage, and returns no other memory: see docs/performance.md.
 */

/** Without this flag of Node, SIGUSR1 opens a debugger, which can read all memory. */
const NO_DEBUGGER = "--disable-sigusr1";
const HEAP = ["--max-semi-space-size=2", "--heap-growing-percent=10"];
/** Settings of glibc's malloc. */
const MALLOC = { MALLOC_ARENA_MAX: "1", MALLOC_TRIM_THRESHOLD_: "131072" };

type Running = Pick<NodeJS.Process, "argv" | "env" | "execArgv" | "execPath"> & {
  execve?: NodeJS.Process["execve"] | undefined;
};

/** Does not return if it starts the program again. If a user has set one of the flags for the heap, it adds none of the others. */
export function startWithSmallHeap({ argv, env, execArgv, execPath, execve }: Running): void {
  const given = `${execArgv.join(" ")} ${env["NODE_OPTIONS"] ?? ""}`.replaceAll("_", "-");
  const isGiven = (flag: string) => given.includes(flag.split("=")[0] as string);
  const missing = [NO_DEBUGGER, ...(HEAP.some(isGiven) ? [] : HEAP)].filter((flag) => !isGiven(flag));
  // Windows has no execve.
  if (missing.length === 0 || execve === undefined) return;
  execve(execPath, [execPath, ...missing, ...execArgv, ...argv.slice(1)], { ...MALLOC, ...env });
}
