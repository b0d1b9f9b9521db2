/**
 * Bindings that Inlay does not process: suspended, refused, too large to be kept, being deleted, or gone. Nothing is written for them, and
 * what they wrote stays or is released.
 */
import { FINALIZER, type SecretBinding, type StoredBinding } from "../../api/binding.ts";
import type { RolloutStatus } from "../../api/rollout.ts";
import { asRecorded } from "../../api/status-records.ts";
import type { Verdict } from "../../api/verdict.ts";
import type { KubeObject } from "../../apimachinery/objects.ts";
import { SECRET_BINDINGS } from "../../apimachinery/resources.ts";
import { listedAsController } from "../../kube/get.ts";
import { rolloutOf } from "../../rollout/status.ts";
import { releaseDeletedBinding } from "../../targets/release.ts";
import { AT_ONCE, BACKOFF, DONE, type WorkResult } from "../../workqueue/work-queue.ts";
import { ifRoom } from "../status-writer.ts";
import { ownsAnything } from "./announce.ts";
import type { BindingStatusWriter } from "./binding-status-writer.ts";
import { heldStatus, isSameStatus, refused } from "./conditions.ts";
import { Deletions } from "./deletions.ts";
import type { BindingDependencies } from "./dependencies.ts";
import { orWhenStalled } from "./requeue.ts";
import { tooLarge } from "./too-large.ts";

/** While another large binding of the namespace is in memory. Thousands may wait for it. */
const whileReading = (namespace: string): WorkResult => ({ retry: "after", ms: 250, rateLimitGroup: namespace });

const isHeld = ({ metadata }: SecretBinding): boolean => metadata.finalizers?.includes(FINALIZER) === true;

/** What goes on for a binding. Both return the status of its rollout that is not written yet. */
interface Running {
  /** Forgets its results and its rollout. Its watches go on. */
  forget(key: string): RolloutStatus | undefined;
  /** Ends its watches too. */
  stop(key: string): RolloutStatus | undefined;
}

export class UnprocessedBindings {
  readonly #deps: BindingDependencies;
  readonly #status: BindingStatusWriter;
  readonly #running: Running;
  readonly deletions: Deletions;
  /** The namespaces of which a whole binding is in memory for a moment. */
  readonly #reading = new Set<string>();

  constructor(deps: BindingDependencies, status: BindingStatusWriter, running: Running) {
    this.#deps = deps;
    this.#status = status;
    this.#running = running;
    this.deletions = new Deletions((...deletion) => releaseDeletedBinding(deps, ...deletion));
  }

  /**
   * For a binding that is suspended or refused: `verdict` says why. Its watches end, and changes in the meantime are noticed when it is
   * processed again.
   */
  async hold(key: string, binding: SecretBinding, verdict: Verdict): Promise<WorkResult> {
    const deferred = this.#running.stop(key);
    const held = await this.#status.setFinalizer(binding, ownsAnything(binding.status?.targets ?? []));
    const rollout = deferred && rolloutOf({ status: deferred, workloads: deferred.pending?.workloads?.length ?? 0 });
    const now = new Date();
    const status = heldStatus(held, verdict, now, rollout, this.#deps.incomplete(binding));
    await this.#status.writeStatus(held, status);
    this.#status.recordEvent(binding, status);
    return orWhenStalled(DONE, status, now);
  }

  /** For a binding that was too large to be kept whole. It is read whole for each thing that needs more than the stub. */
  async holdStub(key: string, stub: SecretBinding): Promise<WorkResult> {
    const { bindings, installation, incomplete } = this.#deps;
    const isDeleted = stub.metadata.deletionTimestamp !== undefined;
    const excess = bindings.excessOf(key);
    if (isDeleted && !isHeld(stub)) return DONE;
    if (isDeleted || excess === undefined)
      return this.#withWhole(stub, async (whole) => {
        if (isDeleted) return this.delete(key, stub, asRecorded(whole));
        // The watch requeues a binding that has changed since.
        return bindings.restore(whole) ? AT_ONCE : DONE;
      });
    this.#running.stop(key);
    const verdict = refused(tooLarge(excess, installation.limits));
    const now = new Date();
    const isReported = isSameStatus(stub.status, heldStatus(stub, verdict, now, undefined, incomplete(stub)));
    if (isReported) return orWhenStalled(DONE, stub.status, now);
    return this.#withWhole(stub, async (whole) => {
      const result = await this.report(asRecorded(whole), verdict);
      this.#deps.metrics.limited(excess.limit);
      return result;
    });
  }

  /** Releases what a binding wrote, and then removes its finalizer. `whole` is the binding itself, if only its stub is kept. */
  async delete(key: string, binding: SecretBinding, whole = binding): Promise<WorkResult> {
    if (!isHeld(binding)) return DONE;
    this.#running.forget(key);
    const { records, problem } = await this.deletions.releaseHeld(binding, whole);
    let last = whole;
    if (problem !== undefined) {
      const status = heldStatus(whole, refused(problem), new Date());
      // Without room, the release goes on.
      last = (await ifRoom(this.#status.writeConditions(whole, status))) ?? whole;
      this.#status.recordEvent(whole, status);
    }
    if (records.length > 0) return BACKOFF;
    await this.#status.removeFinalizer(last);
    return DONE;
  }

  /** Writes why Inlay does not process a binding. */
  async report(binding: SecretBinding, verdict: Verdict): Promise<WorkResult> {
    const now = new Date();
    const status = heldStatus(binding, verdict, now, undefined, this.#deps.incomplete(binding));
    await this.#status.writeConditions(binding, status);
    this.#status.recordEvent(binding, status);
    return orWhenStalled(DONE, status, now);
  }

  /** Reads the binding of a stub. So at most one whole binding of each namespace is in memory beside those that are kept. */
  async #withWhole(
    { metadata }: SecretBinding,
    work: (whole: StoredBinding) => Promise<WorkResult>,
  ): Promise<WorkResult> {
    const { namespace = "", name, uid } = metadata;
    if (this.#reading.has(namespace)) return whileReading(namespace);
    this.#reading.add(namespace);
    try {
      const ref = { resource: SECRET_BINDINGS, namespace, name };
      const whole = await listedAsController(this.#deps.client, ref);
      return whole?.metadata.uid === uid ? await work(whole as KubeObject & StoredBinding) : DONE;
    } finally {
      this.#reading.delete(namespace);
    }
  }
}
