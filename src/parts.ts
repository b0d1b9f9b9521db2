/** The parts that a reconcile works with, which main.ts makes, and what one reconcile is about. Types only. */

import type { SecretBinding, Target } from "./api/binding.ts";
import type { Installation } from "./api/installation.ts";
import type { ObjectRef } from "./apimachinery/objects.ts";
import type { Problem } from "./apimachinery/problem.ts";
import type { Left } from "./apply/last-applied.ts";
import type { BindingStore } from "./cache/binding-store.ts";
import type { Streams } from "./cache/informers.ts";
import type { As } from "./cache/subscription.ts";
import type { Client } from "./kube/client.ts";
import type { Discovery } from "./kube/discovery.ts";
import type { Identity } from "./kube/identity.ts";
import type { Schemas } from "./kube/schemas.ts";
import type { EventRecorder } from "./observability/events.ts";
import type { Log } from "./observability/log.ts";
import type { RolloutCounts } from "./observability/metrics.ts";
import type { Propagation } from "./observability/propagation.ts";
import type { Contention } from "./targets/contention-budget.ts";
import type { Planning } from "./targets/plan-cache.ts";

/** As whom a binding is acted for: an account, which has to be there. */
export interface Actor {
  as: As;
  account: ObjectRef;
}

export interface Parts {
  installation: Installation;
  client: Client;
  discovery: Discovery;
  schemas: Schemas;
  bindings: BindingStore;
  streams: Streams;
  contention: Contention;
  events: EventRecorder;
  propagation: Propagation;
  rollouts: RolloutCounts;
  log: Log;
  /** Undefined for a binding that is not as it was made, or of which that is not known yet: it is looked at again. */
  actorOf(binding: SecretBinding): Actor | Problem | undefined;
  /** Has a binding looked at again, though nothing of it has changed. */
  again(key: string): void;
}

/** One reconcile of one binding. */
export interface Run {
  parts: Parts;
  binding: SecretBinding;
  /** As whom everything is read and written. */
  identity: Identity;
  /** Why nothing can be done as that account. */
  account: Problem | undefined;
  /** Why the values don't belong together. */
  differ: Problem | undefined;
  /** The version of an object that a stream shows: a first read may be as old as that. */
  seen(ref: ObjectRef): string | undefined;
  /** A target as this binding left it, if nobody has changed it since. */
  left(target: Target, ref: ObjectRef): Left | undefined;
  /** The versions of all that values come from. */
  inputs: string;
  /** The uids of the objects that values come from. */
  sourceUids: readonly string[];
}

/** One that writes what the binding says, and not only releases. */
export interface WritingRun extends Run {
  planning: Planning;
}
