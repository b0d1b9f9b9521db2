/** The services that rollouts use. Types only. */
import type { Installation } from "../api/installation.ts";
import type { BindingStore } from "../cache/binding-store.ts";
import type { Watcher } from "../cache/watcher.ts";
import type { Client } from "../kube/client.ts";
import type { Discovery } from "../kube/discovery.ts";
import type { Schemas } from "../kube/schemas.ts";
import type { Notifier } from "../notifications/notifier.ts";
import type { EventRecorder } from "../observability/events.ts";
import type { Log } from "../observability/log.ts";
import type { RolloutCounts } from "../observability/metrics.ts";
import type { Propagation } from "../observability/propagation.ts";
import type { CpuScheduler } from "../workqueue/cpu-scheduler.ts";

/** The services that restart a workload. */
export interface RestartDependencies {
  client: Pick<Client, keyof Client>;
  propagation: Pick<Propagation, "wrote">;
  events: Pick<EventRecorder, "record" | "recordOn">;
  notifier: Pick<Notifier, "notify">;
  rollouts: RolloutCounts;
  log: Pick<Log, "info">;
  installation: Pick<Installation, "reloader" | "rollouts">;
}

export interface RolloutDependencies extends RestartDependencies {
  installation: Pick<Installation, "scope" | "rollouts" | "refusal" | "reloader">;
  discovery: Pick<Discovery, "byKind" | "kindNotFound">;
  schemas: Pick<Schemas, "of">;
  cpu: Pick<CpuScheduler, "steps">;
  watcher: Watcher;
  bindings: Pick<BindingStore, "all">;
  /** Requeues a binding, although nothing of it has changed. */
  requeue(key: string): void;
}
