/** The services that reconcile bindings, and the inputs of one reconcile. Types only. */
import type { SecretBinding, TargetStatus } from "../../api/binding.ts";
import type { Installation } from "../../api/installation.ts";
import type { Verdict } from "../../api/verdict.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import type { BindingStore } from "../../cache/binding-store.ts";
import type { Watcher } from "../../cache/watcher.ts";
import type { Schemas } from "../../kube/schemas.ts";
import type { WriteVersions } from "../../kube/write-versions.ts";
import type { Metrics } from "../../observability/metrics.ts";
import type { CompiledBinding } from "../../pipeline/compile.ts";
import type { RolloutContext } from "../../rollout/discover/dependents.ts";
import type { RolloutController } from "../../rollout/rollout-controller.ts";
import type { ProducedBy } from "../../sources/grant-rules.ts";
import type { Poller } from "../../sources/poller.ts";
import type { SharedReads } from "../../sources/shared-reads.ts";
import type { Connections } from "../../sources/source.ts";
import type { Actor } from "../../targets/actor.ts";
import type { WriteContext } from "../../targets/dependencies.ts";
import type { Targets, TargetWithRecord } from "../../targets/records.ts";
import type { ReleaseDependencies } from "../../targets/release.ts";
import type { PreparedTarget } from "../../targets/sync.ts";
import type { LiveSource } from "../../transform/live-source.ts";
import type { CpuScheduler } from "../../workqueue/cpu-scheduler.ts";
import type { StatusInProgress } from "./binding-status-writer.ts";
import type { ObservedState } from "./observed-state.ts";
import type { TargetResult } from "./result-cache.ts";

export type Rollouts = Pick<RolloutController, "follow" | "look" | "needsValues" | "roll" | "forget">;

export interface BindingDependencies extends ReleaseDependencies {
  installation: ReleaseDependencies["installation"] & Pick<Installation, "limits">;
  bindings: Pick<
    BindingStore,
    "get" | "released" | "resolved" | "competingClaims" | "keyOf" | "protecting" | "wrote" | "excessOf" | "restore"
  >;
  metrics: Pick<Metrics, "limited">;
  schemas: Pick<Schemas, "of" | "renew" | "revision">;
  watcher: Watcher;
  versions: Pick<WriteVersions, "expectWrite">;
  /** Runs work whose cost a namespace chooses. */
  cpu: Pick<CpuScheduler, "run" | "steps">;
  /** Polls servers outside of the cluster. */
  polls: Pick<Poller, "subscribe" | "stateOf" | "isRefreshed">;
  connections: Connections;
  /** Reads the sources of all bindings. */
  sourceReads: Pick<SharedReads, "get">;
  /**
   * The account that Inlay impersonates for a binding. Undefined for a generated binding that differs from what its generator
   * wants: it is requeued once it does not.
   */
  actorOf(binding: SecretBinding): Actor | Problem | undefined;
  /** The composition that generates a binding at the moment. The binding is requeued when that changes. */
  compositionOf(binding: SecretBinding): ProducedBy;
  /** Which part of the installation the binding lacks. The binding is requeued when that changes. */
  incomplete(binding: SecretBinding): Verdict | undefined;
}

/** A binding, with what the watches show of its dependencies. */
export interface Observation {
  key: string;
  /** As it was read. */
  binding: SecretBinding;
  actor: Actor;
  compiled: CompiledBinding;
  observed: ObservedState;
  rollout: RolloutContext | undefined;
  /** Changes when the workloads that the rollout finds change. */
  workloads: string | undefined;
  /** The revision of the schemas before any of them was used. */
  schemas: number;
}

/** The targets to write, the values for them, and the status that records what was written. */
export interface Inputs {
  observation: Observation;
  status: StatusInProgress;
  targets: Targets;
  /** The targets whose result is known and whose state has not changed since. */
  known: ReadonlyMap<TargetWithRecord, TargetResult>;
  sources: ReadonlyMap<string, LiveSource | Problem>;
  context: WriteContext;
}

/** A target that is ready to be written, or its known result. */
export type Step = PreparedTarget | { record: TargetStatus; result: TargetResult };
