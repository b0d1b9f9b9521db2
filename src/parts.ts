/** The parts that a reconcile works with, which main.ts makes, and what one reconcile is about. Types only. */
import type { Contention } from "./apply/contention.ts";
import type { Left } from "./apply/unread.ts";
import type { Client } from "./kube/client.ts";
import type { Discovery } from "./kube/discovery.ts";
import type { Identity } from "./kube/identity.ts";
import type { Schemas } from "./kube/schemas.ts";
import type { SecretBinding, Target } from "./model/binding.ts";
import type { Installation } from "./model/installation.ts";
import type { ObjectRef } from "./model/kube-object.ts";
import type { Problem } from "./model/problem.ts";
import type { Planning } from "./planning.ts";
import type { EventRecorder } from "./report/events.ts";
import type { RolloutCounts } from "./report/metrics.ts";
import type { Propagation } from "./report/propagation.ts";
import type { Log } from "./run/log.ts";
import type { BindingStore } from "./watch/bindings.ts";
import type { As } from "./watch/interest.ts";
import type { Streams } from "./watch/streams.ts";

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
