/** Defines the services for work on a binding, and the context of one reconcile. Each function names what it uses. */
import { onReleaseOf, recreates, type SecretBinding, type Target } from "../api/binding.ts";
import type { Installation } from "../api/installation.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import type { LastApplied } from "../apply/last-applied.ts";
import type { BindingStore } from "../cache/binding-store.ts";
import { verbsFor, WRITE_VERBS } from "../kube/access-error.ts";
import type { Client } from "../kube/client.ts";
import type { Discovery } from "../kube/discovery.ts";
import type { ObjectAccess } from "../kube/get.ts";
import type { Identity } from "../kube/identity.ts";
import type { Schemas } from "../kube/schemas.ts";
import type { EventRecorder } from "../observability/events.ts";
import type { Log } from "../observability/log.ts";
import type { Propagation } from "../observability/propagation.ts";
import type { ParsedSource } from "../sources/source.ts";
import type { CpuScheduler } from "../workqueue/cpu-scheduler.ts";
import type { ContentionBudget } from "./contention-budget.ts";
import type { PlanCache } from "./plan-cache.ts";
import type { Rejections } from "./rejections.ts";

export interface Dependencies {
  installation: Pick<Installation, "scope" | "ownNamespace" | "closedNamespace" | "refusal" | "requires" | "limits">;
  client: Pick<Client, keyof Client>;
  /** The API server's time, in ms of the epoch. */
  serverTime: () => number;
  discovery: Pick<Discovery, "byKind" | "byKindInGroup" | "byPlural" | "kindNotFound" | "forget">;
  schemas: Pick<Schemas, "of">;
  bindings: Pick<BindingStore, "competingClaims" | "keyOf" | "protecting">;
  cpu: Pick<CpuScheduler, "run" | "steps">;
  contention: Pick<ContentionBudget, "mayWrite" | "wrote" | "stateOf" | "forget">;
  rejections: Pick<Rejections, "trial" | "reverted" | "reversion" | "forget">;
  events: Pick<EventRecorder, "record" | "recordOn">;
  propagation: Pick<Propagation, "wrote">;
  log: Pick<Log, "info" | "warn">;
}

/** What a release must know about a binding. */
export interface ReleaseContext {
  deps: Dependencies;
  binding: SecretBinding;
  /** The identity of all reads and writes. */
  identity: Identity;
  /** Why the account can't be used. */
  account: Problem | undefined;
  /** Collects, for the status, which values a release left because others own them too. */
  retained?: string[];
}

/** The access to a target whose fields the binding writes, and does not create. */
export const writeAccess = (
  { deps: { client }, identity }: Pick<ReleaseContext, "deps" | "identity">,
  ref: ObjectRef,
): ObjectAccess => ({ client, identity, ref, verbs: WRITE_VERBS });

/** The access to a target, with all verbs that its entry in the spec needs. */
export function targetAccess(
  { deps: { client }, binding, identity }: ReleaseContext,
  { target, ref }: { target: Target; ref: ObjectRef },
) {
  const creates = target.create !== undefined;
  const verbs = verbsFor(creates, onReleaseOf(binding, target, creates), recreates(target));
  return { client, identity, ref, verbs } satisfies ObjectAccess;
}

/** One reconcile of one binding. */
export interface SyncContext extends ReleaseContext {
  /** Why the sources don't belong together. */
  sourceMismatch: Problem | undefined;
  /** The version of an object in its watch. The first read may use a cache of that age. */
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

/** A reconcile that writes, and does not only release. */
export interface WriteContext extends SyncContext {
  /** The namespaces of the Secrets that the binding reads, by the name of the source. */
  secretNamespaces: ReadonlyMap<string, string>;
  planning: PlanCache;
}
