/** The state of the process for people who look for the cause of a problem. Contains names of objects, and no value. */
import type { StreamState } from "../cache/reflector.ts";
import type { InstallationProblems } from "../observability/installation-problems.ts";
import type { WorkQueue } from "../workqueue/work-queue.ts";

interface DebuggedController {
  readonly name: string;
  readonly store?: { readonly state: StreamState } | undefined;
  readonly queue: Pick<WorkQueue, "state">;
  readonly debugState?: object | undefined;
}

interface DebugSources {
  version: string;
  /** Undefined without leader election. */
  leading: boolean | undefined;
  controllers: readonly DebuggedController[];
  watches: readonly StreamState[];
  problems: Pick<InstallationProblems, "all">;
}

/** How many keys of a queue are listed. */
const MAX_KEYS = 200;

export function debugState({ version, leading, controllers, watches, problems }: DebugSources): object {
  const resources = Map.groupBy(process.getActiveResourcesInfo(), (name) => name);
  return {
    version,
    node: process.version,
    uptimeSeconds: Math.round(process.uptime()),
    leading,
    memory: process.memoryUsage(),
    activeResources: Object.fromEntries([...resources].map(([name, all]) => [name, all.length])),
    installation: Object.fromEntries([...problems.all].map(([check, problem]) => [check, problem?.message ?? "ok"])),
    controllers: controllers.map(({ name, store, queue, debugState: own }) => ({
      name,
      ...(store && { watch: store.state }),
      queue: queue.state(MAX_KEYS),
      ...own,
    })),
    watches,
  };
}
