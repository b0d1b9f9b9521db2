/**
 * The story of a binding: resolve, watch, read, transform, decide, apply, report. A key comes in, the cluster as the
 * binding wants it goes out, and whether to look again. Nothing here depends on what an event said.
 */
import { isStatus } from "./kube/api-error.ts";
import { CONTROLLER, serviceAccountIdentity } from "./kube/identity.ts";
import {
  FINALIZER,
  missingPolicyOf,
  type SecretBinding,
  type Status,
  type StoredBinding,
  type TargetStatus,
} from "./model/binding.ts";
import { CONTROLLER_MANAGER } from "./model/field-manager.ts";
import type { ObjectRef } from "./model/kube-object.ts";
import type { TargetOutcome } from "./model/outcome.ts";
import { Problem } from "./model/problem.ts";
import type { LiveSource } from "./model/source-value.ts";
import { storedStatus } from "./model/status-records.ts";
import type { Parts, Run } from "./parts.ts";
import type { WorkResult } from "./queue/work-queue.ts";
import { isSameStatus, statusOf, suspendedStatus, withRecords } from "./report/status.ts";
import { type References, resolveReferences } from "./resolve/references.ts";
import { inputsOf, readSource } from "./resolve/sources.ts";
import { olderClaims, yieldToOlder } from "./rivals.ts";
import { type Prepared, prepareTarget, syncTarget } from "./target.ts";
import { sourcesDiffer } from "./transform/require-same.ts";
import { pathsOf, recordFor, releaseDeleted, releaseModeOf, releaseUnnamed } from "./undo.ts";
import { type View, viewOf } from "./view.ts";
import { SECRET_BINDINGS } from "./watch/bindings.ts";
import type { Named } from "./watch/claims.ts";

const DONE: WorkResult = { retry: "never" };
const SOON: WorkResult = { retry: "backoff" };
/** When to look again at what only a change of rules heals: schemas, webhooks, policies. */
const LATE_MS = 30_000;
/** Stands in for sources that no target can be written from. Each target has a problem of its own that is told first. */
const NOT_READ = new Problem("Unavailable", "the source was not read");

export class Reconciler {
  readonly #parts: Parts;
  /** All that the outcome of a binding depends on, as it was when nothing was left to do. */
  readonly #settled = new Map<string, string>();
  /** Deleted bindings that had no finalizer, since they only retain: their names still stand in managedFields. */
  readonly #gone = new Map<string, { binding: SecretBinding; since: number }>();
  /** When the release of a deleted binding began, by its uid. */
  readonly #deletions = new Map<string, number>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Takes note of a binding that is gone; its key has to be reconciled once more. */
  gone(key: string, binding: SecretBinding): void {
    this.#gone.set(key, { binding, since: Date.now() });
  }

  async reconcile(key: string): Promise<WorkResult> {
    const { bindings, streams, discovery, client } = this.#parts;
    const goneReleased = await this.#releaseGone(key);
    const binding = bindings.get(key);
    if (binding === undefined) return this.#forget(key, goneReleased);
    if (binding.metadata.deletionTimestamp !== undefined) return this.#delete(key, binding);
    if (binding.spec.suspend) return this.#suspend(key, binding);

    const identity = serviceAccountIdentity(binding.metadata.namespace as string, binding.spec.serviceAccountName);
    const references = await resolveReferences(binding, discovery);
    bindings.resolved(key, namedIn(references));
    const view = viewOf(streams, key, binding, identity, references, (ref) => olderClaims(this.#parts, binding, ref));
    if (view.pending) return DONE;
    if (goneReleased && this.#settled.get(key) === view.fingerprint(binding, new Map())) return DONE;
    this.#settled.delete(key);

    const { account, seen, sourceUids } = view;
    const sources = await readSources(references, view, (ref, name) =>
      readSource(client, identity, ref, missingPolicyOf(binding, name), view.seen(ref)),
    );
    const { requireSame } = binding.spec;
    const differ = requireSame === undefined ? undefined : sourcesDiffer(requireSame, sources);
    const inputs = inputsOf(binding.metadata.generation, sources.values());
    const run: Run = { parts: this.#parts, binding, identity, account, differ, seen, inputs, sourceUids };
    const named = references.targets.map((each) => ({ ...each, record: recordFor(binding, each.target, each.ref) }));
    const left = await releaseUnnamed(run, new Set(named.map(({ record }) => record)));
    const prepared = await Promise.all(
      named.map(async (each) => {
        const blocked = account ?? view.problemOf(each.ref);
        const yielded = blocked === undefined ? await yieldToOlder(run, each) : undefined;
        return yielded ?? prepareTarget(run, each, sources, blocked);
      }),
    );
    const records = [...prepared, ...left].map(({ record }) => record);
    const held = await this.#withFinalizer(binding, records);
    const noted = acquires(prepared) ? await this.#writeStatus(held, withRecords(held, records)) : held;
    const outcomes = await allEnded(prepared.map((each) => syncTarget(run, each)));
    const result = await this.#report(key, binding, noted, outcomes, left, view);
    return goneReleased ? result : SOON;
  }

  /** Writes the status, tells what changed, and says when to look again. `binding` is as it was read, `noted` as it is. */
  async #report(
    key: string,
    binding: SecretBinding,
    noted: SecretBinding,
    outcomes: TargetOutcome[],
    left: TargetOutcome[],
    view: View,
  ): Promise<WorkResult> {
    const { events, log } = this.#parts;
    const status = statusOf(binding, outcomes, left, new Date());
    const reported = await this.#writeStatus(noted, status);
    const [before, now] = [binding.status?.conditions?.[0], status.conditions?.[0]];
    if (now?.status === "False" && (before?.reason !== now.reason || before.message !== now.message)) {
      events.record(binding, { type: "Warning", reason: now.reason, action: "Sync", note: now.message });
      log.warn({ binding: key, reason: now.reason }, now.message);
    }
    const all = [...outcomes, ...left];
    for (const { record, problem } of all) {
      if (problem?.reason === "KindNotFound") this.#parts.discovery.forget(record.apiVersion);
    }
    if (all.some(({ problem }) => problem?.healing === "soon")) return SOON;
    const waits = all.flatMap(({ againMs, problem }) => againMs ?? (problem?.healing === "late" ? LATE_MS : []));
    if (waits.length > 0) return { retry: "after", ms: Math.min(...waits) };
    if (all.some(({ problem }) => problem !== undefined)) return DONE;
    const written = new Map(outcomes.flatMap(({ written: w }) => (w ? [[w.ref, w.version] as const] : [])));
    this.#settled.set(key, view.fingerprint(reported, written));
    return DONE;
  }

  async #writeStatus(binding: SecretBinding, status: Status): Promise<SecretBinding> {
    if (isSameStatus(binding.status, status)) return binding;
    const { client, bindings } = this.#parts;
    const stored: StoredBinding = { ...binding, status: storedStatus(status) };
    return bindings.wrote(await client.replaceStatus(CONTROLLER, refOf(binding), stored, CONTROLLER_MANAGER));
  }

  /** A binding that removes what it wrote holds its own deletion until that is done; others hold nothing. */
  async #withFinalizer(binding: SecretBinding, records: TargetStatus[]): Promise<SecretBinding> {
    const removes = records.some(({ onRelease }) => onRelease === "Remove");
    const finalizers = binding.metadata.finalizers ?? [];
    if (removes === finalizers.includes(FINALIZER)) return binding;
    const others = finalizers.filter((each) => each !== FINALIZER);
    return this.#setFinalizers(binding, removes ? [...others, FINALIZER] : others);
  }

  async #setFinalizers(binding: SecretBinding, finalizers: string[]): Promise<SecretBinding> {
    const { client, bindings } = this.#parts;
    const patch = { metadata: { resourceVersion: binding.metadata.resourceVersion, finalizers } };
    return bindings.wrote(await client.mergePatch(CONTROLLER, refOf(binding), patch, CONTROLLER_MANAGER));
  }

  /** Nothing is watched either: what happened meanwhile is seen when the binding goes on. */
  async #suspend(key: string, binding: SecretBinding): Promise<WorkResult> {
    this.#settled.delete(key);
    this.#parts.streams.observe(key, []);
    const records = binding.status?.targets ?? [];
    const released = records.map((record) => ({ ...record, onRelease: releaseModeOf(binding, record) }));
    const held = await this.#withFinalizer(binding, released);
    await this.#writeStatus(held, suspendedStatus(held, new Date()));
    return DONE;
  }

  async #delete(key: string, binding: SecretBinding): Promise<WorkResult> {
    const finalizers = binding.metadata.finalizers ?? [];
    if (!finalizers.includes(FINALIZER)) return DONE;
    this.#settled.delete(key);
    const { uid } = binding.metadata;
    const since = this.#deletions.get(uid) ?? Date.now();
    this.#deletions.set(uid, since);
    const { done } = await releaseDeleted(this.#parts, binding, since);
    if (!done) return SOON;
    try {
      await this.#setFinalizers(
        binding,
        finalizers.filter((each) => each !== FINALIZER),
      );
    } catch (error) {
      if (!isStatus(error, 404)) throw error;
    }
    this.#deletions.delete(uid);
    return DONE;
  }

  /** Releases what a binding of this name wrote that is gone since. Says whether nothing is left of it. */
  async #releaseGone(key: string): Promise<boolean> {
    const gone = this.#gone.get(key);
    if (gone === undefined) return true;
    const { done } = await releaseDeleted(this.#parts, gone.binding, gone.since);
    if (done && this.#gone.get(key) === gone) this.#gone.delete(key);
    return done;
  }

  #forget(key: string, goneReleased: boolean): WorkResult {
    this.#settled.delete(key);
    this.#parts.streams.observe(key, []);
    return goneReleased ? DONE : SOON;
  }
}

/** Before a path is written or an object made for the first time, status says so: a crash leaves nothing unrecorded. */
function acquires(prepared: readonly Prepared[]): boolean {
  return prepared.some((each) => {
    if ("whole" in each) return each.isNew;
    return "decision" in each && each.decision.write && each.decision.acquires.length > 0;
  });
}

/** The objects that a binding's targets are, with what it names there. */
function namedIn({ targets }: References): Named[] {
  return targets.flatMap(({ target, ref }) => (ref instanceof Problem ? [] : [{ ref, paths: [...pathsOf(target)] }]));
}

/** Each source is read once, so that all targets take their values from the same state of it. */
async function readSources(
  { sources, targets }: References,
  view: View,
  read: (ref: ObjectRef, name: string) => Promise<LiveSource | Problem>,
): Promise<Map<string, LiveSource | Problem>> {
  const blocked = targets.every(({ ref }) => view.problemOf(ref) !== undefined);
  const entries = [...sources].map(async ([name, ref]) => {
    const problem = view.account ?? view.problemOf(ref) ?? (blocked ? NOT_READ : undefined);
    return [name, problem ?? (await read(ref as ObjectRef, name))] as const;
  });
  return new Map(await Promise.all(entries));
}

/** Waits until all have ended, also when one fails: what goes on in the background could meet the next reconcile. */
async function allEnded<T>(work: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(work);
  return Promise.all(work);
}

function refOf({ metadata: { namespace, name } }: SecretBinding): ObjectRef {
  return { resource: SECRET_BINDINGS, name, ...(namespace !== undefined && { namespace }) };
}
