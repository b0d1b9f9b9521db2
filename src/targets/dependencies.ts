/** What the work on one binding is done with, and what one reconcile is about. A function names the services that it uses. Types only. */
import type { SecretBinding, Target } from "../api/binding.ts";
import type { Installation } from "../api/installation.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import type { LastApplied } from "../apply/last-applied.ts";
import type { BindingStore } from "../cache/binding-store.ts";
import type { Client } from "../kube/client.ts";
import type { Discovery } from "../kube/discovery.ts";
import type { Identity } from "../kube/identity.ts";
import type { Schemas } from "../kube/schemas.ts";
import type { EventRecorder } from "../observability/events.ts";
import type { Log } from "../observability/log.ts";
import type { Propagation } from "../observability/propagation.ts";
import type { ParsedSource } from "../sources/source.ts";
import type { ContentionBudget } from "./contention-budget.ts";
import type { PlanCache } from "./plan-cache.ts";

export interface Dependencies {
  installation: Pick<Installation, "scope" | "ownNamespace" | "closedNamespace" | "refusal" | "requires">;
  client: Pick<Client, keyof Client>;
  /** The time by the API server's clock, in ms of the epoch. */
  serverTime: () => number;
  discovery: Pick<Discovery, "byKind" | "byKindInGroup" | "byPlural" | "forget">;
  schemas: Pick<Schemas, "of">;
  bindings: Pick<BindingStore, "competingClaims" | "keyOf">;
  contention: Pick<ContentionBudget, "mayWrite" | "wrote" | "stateOf">;
  events: Pick<EventRecorder, "record" | "recordOn">;
  propagation: Pick<Propagation, "wrote">;
  log: Pick<Log, "info" | "warn">;
}

/** What a release needs to know of a binding. */
export interface ReleaseContext {
  deps: Dependencies;
  binding: SecretBinding;
  /** As whom everything is read and written. */
  identity: Identity;
  /** Why nothing can be done as that account. */
  account: Problem | undefined;
}

/** One reconcile of one binding. */
export interface SyncContext extends ReleaseContext {
  /** Why the values don't belong together. */
  sourceMismatch: Problem | undefined;
  /** The version of an object that its watch shows: a first read may be as old as that. */
  seenVersion(ref: ObjectRef): string | undefined;
  /** A target as this binding last applied it, if it has not changed since. */
  lastApplied(target: Target, ref: ObjectRef): LastApplied | undefined;
  /** Changes with the spec and with every source. */
  sourceRevisions: string;
  /** spec.sources, parsed once for all targets. */
  parsedSources: readonly ParsedSource[];
  /** The uids of the objects that values come from. */
  sourceUids: readonly string[];
}

/** One that writes what the binding says, and does not only release. */
export interface WriteContext extends SyncContext {
  /** The namespaces of the Secrets that the binding reads, by the name of the source. */
  secretNamespaces: ReadonlyMap<string, string>;
  planning: PlanCache;
}
