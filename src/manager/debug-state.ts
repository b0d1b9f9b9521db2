/** The state of the process for people who look for the cause of a problem. Contains names of objects, and no value. */
import type { StreamState } from "../cache/reflector.ts";
import type { InstallationProblems } from "../observability/installation-problems.ts";
import type { CpuScheduler } from "../workqueue/cpu-scheduler.ts";
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
  cpu: Pick<CpuScheduler, "busiest">;
}

/** How many keys of a queue are listed. */
const MAX_KEYS = 200;
/** How many namespaces are listed by their use of the processor. */
const MAX_BUSIEST = 20;

export function debugState({ version, leading, controllers, watches, problems, cpu }: DebugSources): object {
  const resources = Map.groupBy(process.getActiveResourcesInfo(), (name) => name);
  return {
    version,
    node: process.version,
    uptimeSeconds: Math.round(process.uptime()),
    leading,
    memory: process.memoryUsage(),
    activeResources: Object.fromEntries([...resources].map(([name, all]) => [name, all.length])),
    installation: Object.fromEntries([...problems.all].map(([check, problem]) => [check, problem?.message ?? "ok"])),
    processor: cpu.busiest(MAX_BUSIEST).map(({ name, share, waiting }) => ({
      namespace: name,
      percent: Math.round(1_000 * share) / 10,
      waiting,
    })),
    controllers: controllers.map(({ name, store, queue, debugState: own }) => ({
      name,
      ...(store && { watch: store.state }),
      queue: queue.state(MAX_KEYS),
      ...own,
    })),
    watches,
  };
}
