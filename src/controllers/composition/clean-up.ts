/**
 * Ends a deleted composition: deletes its bindings, and then removes its finalizer. If its account can't delete them, or the kind itself is
 * being deleted, they stay, as with `deletionPolicy: Orphan`.
 */
import { bindingKey, type SecretBinding } from "../../api/binding.ts";
import { COMPOSITION_LABEL } from "../../api/composed.ts";
import type { BindingComposition } from "../../api/composition.ts";
import type { Verdict } from "../../api/verdict.ts";
import { firstOf } from "../../apimachinery/name-list.ts";
import { apiVersionOf } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { BINDING_COMPOSITIONS, SECRET_BINDINGS } from "../../apimachinery/resources.ts";
import type { BindingStore } from "../../cache/binding-store.ts";
import { attempt } from "../../kube/access-error.ts";
import { shellWord } from "../../kube/grant-commands.ts";
import { serviceAccountIdentity } from "../../kube/identity.ts";
import type { KindDeletions } from "../../kube/kind-deletions.ts";
import type { EventMessage } from "../../observability/events.ts";
import type { Log } from "../../observability/log.ts";
import { isTimeUp } from "../../targets/release.ts";
import { BACKOFF, DONE, type WorkResult } from "../../workqueue/work-queue.ts";
import { requeueResult } from "../binding/requeue.ts";
import { type GeneratedBindingServices, GeneratedBindings } from "../generated-bindings.ts";
import { ifRoom } from "../status-writer.ts";
import type { ComposedIndex } from "./composed-index.ts";
import { ACCEPTED, deleting, KEPT_BY_OTHERS, notAccepted } from "./composition-status.ts";
import { generatorOf } from "./made-bindings.ts";
import type { Reporter } from "./reporter.ts";

export interface CleanUpServices extends GeneratedBindingServices {
  bindings: Pick<BindingStore, "state">;
  kindDeletions: Pick<KindDeletions, "isOngoing">;
  log: Pick<Log, "info" | "warn">;
  serverTime(): number;
}

type Index = Pick<ComposedIndex, "allOf">;
type Reports = Pick<Reporter, "hold" | "isHeld" | "removeFinalizer">;

/** How long a deleted composition waits for the deletion of its bindings before it looks for more bindings with its labels. */
const LEFT: WorkResult = { retry: "after", ms: 5_000 };
/** The limit of bindings in a message. */
const MAX_NAMED = 5;
/** An event cuts a longer note. A command that ends within its selector would delete the bindings of other compositions. */
const MAX_NAMES_LENGTH = 300;

export class CleanUp {
  readonly #services: CleanUpServices;
  readonly #index: Index;
  readonly #reporter: Reports;
  /** By uid of a composition: since when the deletion of its bindings fails, in ms of the epoch. */
  readonly #since = new Map<string, number>();

  constructor(services: CleanUpServices, index: Index, reporter: Reports) {
    this.#services = services;
    this.#index = index;
    this.#reporter = reporter;
  }

  async run(composition: BindingComposition): Promise<WorkResult> {
    if (!this.#reporter.isHeld(composition)) {
      await this.#report(composition, ACCEPTED, KEPT_BY_OTHERS);
      return DONE;
    }
    const isListed = this.#services.bindings.state.phase === "synced";
    const left = composition.spec.deletionPolicy === "Orphan" ? [] : this.#index.allOf(composition.metadata.name);
    if (left.length === 0 && isListed) return this.#end(composition);
    const isKept = await attempt(this.#isKindDeleted(composition));
    if (isKept === true) {
      const note = "kept all bindings, because a CustomResourceDefinition of Inlay is being deleted";
      return this.#end(composition, { type: "Normal", reason: "Retained", note });
    }
    return isKept === false && isListed ? this.#delete(composition, left) : BACKOFF;
  }

  forget({ uid }: BindingComposition["metadata"]): void {
    this.#since.delete(uid);
  }

  /** With the kind of the composition, or with that of its bindings, everything of Inlay is being deleted, or was. */
  async #isKindDeleted({ metadata }: BindingComposition): Promise<boolean | undefined> {
    const { kindDeletions } = this.#services;
    const { deletionTimestamp } = metadata;
    const isOwn = await kindDeletions.isOngoing(BINDING_COMPOSITIONS, metadata);
    if (isOwn !== false) return isOwn;
    return kindDeletions.isOngoing(SECRET_BINDINGS, { ...(deletionTimestamp && { deletionTimestamp }) });
  }

  async #delete(composition: BindingComposition, left: readonly SecretBinding[]): Promise<WorkResult> {
    const { name, uid } = composition.metadata;
    const { serviceAccount } = composition.spec;
    const identity = serviceAccountIdentity(serviceAccount.namespace, serviceAccount.name);
    const generator = generatorOf(name, identity, () => undefined);
    const generated = new GeneratedBindings(this.#services, generator, () => {});
    const result = await attempt(generated.sync(name, [], left, () => undefined));
    if (!(result instanceof Problem)) {
      this.#since.delete(uid);
      await this.#report(composition, ACCEPTED, deleting(left.length));
      return result.retry === "never" ? LEFT : result;
    }
    // Thousands of deletions take longer than the time for a failure, and one of them may fail once.
    const since = this.#since.get(uid) ?? Date.now();
    this.#since.set(uid, since);
    if (isTimeUp(this.#services, composition, since)) {
      const staying = left.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
      const named = firstOf(staying.map(bindingKey), MAX_NAMED);
      const names = named.length > MAX_NAMES_LENGTH ? `${staying.length} bindings` : named;
      const note = `deletion of bindings abandoned after 60 s, so these stay: ${names}; delete them with: kubectl delete secretbindings -A -l ${COMPOSITION_LABEL}=${shellWord(name)} (${result.message})`;
      return this.#end(composition, { type: "Warning", reason: "ReleaseAbandoned", note });
    }
    await this.#report(composition, notAccepted(result));
    const retry = requeueResult(name, [{ problem: result }]);
    return retry.retry === "never" ? LEFT : retry;
  }

  async #report(composition: BindingComposition, accepted: Verdict, ready = accepted): Promise<void> {
    // The deletion goes on.
    await ifRoom(this.#reporter.hold(composition, accepted, ready));
  }

  async #end(
    composition: BindingComposition,
    said?: Pick<EventMessage, "type" | "reason" | "note">,
  ): Promise<WorkResult> {
    await this.#reporter.removeFinalizer(composition);
    if (said === undefined) return DONE;
    const { metadata } = composition;
    const regarding = { apiVersion: apiVersionOf(BINDING_COMPOSITIONS), kind: BINDING_COMPOSITIONS.kind, metadata };
    this.#services.events.recordOn(regarding, { ...said, action: "Release" });
    const { type, reason, note } = said;
    this.#services.log[type === "Warning" ? "warn" : "info"]({ composition: metadata.name, reason }, note);
    return DONE;
  }
}
