/**
 * The controller of Reloader's annotations: it watches workloads and generates real bindings that restart them. It alone decides
 * the account of such a binding: the account for generated bindings, if the binding is exactly what the annotations ask for now,
 * whichever user created it.
 */
import { setImmediate as turn } from "node:timers/promises";
import { bindingKey, namespaceIn, type SecretBinding } from "../../api/binding.ts";
import type { Installation } from "../../api/installation.ts";
import { claimsToBeGenerated, namedObject, RELOADER_ACCOUNT, ReloaderView } from "../../api/reloader.ts";
import { firstOf } from "../../apimachinery/name-list.ts";
import { apiVersionOf } from "../../apimachinery/objects.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import { SERVICE_ACCOUNTS } from "../../apimachinery/resources.ts";
import type { BindingStore } from "../../cache/binding-store.ts";
import type { Informers } from "../../cache/informers.ts";
import type { Client } from "../../kube/client.ts";
import type { Discovery } from "../../kube/discovery.ts";
import { serviceAccountIdentity } from "../../kube/identity.ts";
import type { Log } from "../../observability/log.ts";
import type { Metrics } from "../../observability/metrics.ts";
import type { Actor } from "../../targets/actor.ts";
import { MAX_SYNCED } from "../../workloads/provider-class.ts";
import { soonest } from "../../workqueue/soonest.ts";
import { DONE, WorkQueue, type WorkResult } from "../../workqueue/work-queue.ts";
import { type GeneratedBindingServices, GeneratedBindings } from "../generated-bindings.ts";
import { choiceOf, type ReloadRules } from "./annotations.ts";
import {
  bindingsOf,
  isForeign,
  leftOver,
  obsoleteOf,
  PREFIX,
  RELOADER_BINDINGS,
  type ReloaderBinding,
} from "./bindings.ts";
import { ALL, Inventory, type InventoryResult } from "./inventory.ts";
import { type Pausable, Pauses } from "./pauses.ts";
import { concernsClasses, followsReferences, NamespaceSources, type ReloaderSource } from "./sources.ts";

/** How many sources a message names. */
const MAX_NAMED_SOURCES = 3;

/**
 * The sources that a binding may name, and the others: a new binding with a source that its account may not read is refused. An existing
 * binding keeps its baseline for such a source.
 */
function permitted(
  sources: readonly ReloaderSource[],
  refused: ReadonlySet<string>,
  there: ReadonlyMap<string, SecretBinding>,
): [permitted: ReloaderSource[], left: ReloaderSource[]] {
  if (!sources.some(({ kind }) => refused.has(kind))) return [[...sources], []];
  const sourcesThere = [...there.values()].filter(claimsToBeGenerated).flatMap(({ spec }) => spec.sources);
  const named = new Set(sourcesThere.flatMap((each) => namedObject(each) ?? []).map(textOf));
  const isPermitted = (each: ReloaderSource) => !refused.has(each.kind) || named.has(textOf(each));
  return [sources.filter(isPermitted), sources.filter((each) => !isPermitted(each))];
}

const textOf = ({ kind, name }: ReloaderSource) => `${kind} ${name}`;

const sourcesForbidden = (sources: readonly ReloaderSource[]) =>
  `does not restart for ${firstOf(sources.map(textOf), MAX_NAMED_SOURCES)}, because Inlay may not list objects of this kind in this namespace; ask the administrator of Inlay in this cluster to apply optional/reloader.yaml of this release`;

/** A namespace rests for this many times as long as it worked. */
const REST = 10;
const MAX_REST_MS = 5_000;
/** Shorter work needs no rest. */
const SHORT_MS = 20;

/** The processor time of this thread, which a busy machine does not change. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** Measures the processor time of one reconcile, in ms: everything but the time of `wait`, in which other reconciles work. */
export class OwnTime {
  #since = threadMs();
  #ms = 0;

  get ms(): number {
    return this.#ms + threadMs() - this.#since;
  }

  /** Awaits something else: the API server, or the turn of other work. */
  async wait<T>(other: Promise<T>): Promise<T> {
    this.#ms = this.ms;
    try {
      return await other;
    } finally {
      this.#since = threadMs();
    }
  }
}

export class Rests {
  /** By namespace, the end by the monotonic clock. */
  readonly #ends = new Map<string, number>();

  /** How many ms the namespace still rests; 0 or less if it does not. */
  leftMs(namespace: string): number {
    return (this.#ends.get(namespace) ?? 0) - performance.now();
  }

  /** Records how long a reconcile of the namespace worked. */
  worked(namespace: string, { ms }: Pick<OwnTime, "ms">): void {
    if (ms > SHORT_MS) this.#ends.set(namespace, performance.now() + Math.min(REST * ms, MAX_REST_MS));
  }

  forget(namespace: string): void {
    this.#ends.delete(namespace);
  }
}

/** A kind may be served later. */
const RETRY_MS = 20_000;
const CLASSES_FORBIDDEN =
  "Inlay may not list SecretProviderClasses in this namespace; ask the administrator of Inlay in this cluster to apply optional/reloader.yaml of this release";

/** How many classes an event names. */
const MAX_NAMED = 3;
const TOO_MANY_REFERENCES =
  "does not restart for the Secrets and ConfigMaps that its pods refer to, because these are more than Inlay reads (limits.referencesPerWorkload); remove references, or list the names in its annotations";

function classesTooLarge(names: readonly string[]): string {
  const which = `SecretProviderClasses ${firstOf(names, MAX_NAMED)}`;
  return `does not restart for the Secrets of the ${which}, because a class with more than ${MAX_SYNCED} Secrets and keys is not read, nor one beyond the limit of its namespace; list fewer in spec.secretObjects`;
}

/** A workload, and the rules of its annotations. */
type Chooser = InventoryResult["workloads"][number] & { choice: ReloadRules };

interface Services extends GeneratedBindingServices {
  installation: Installation;
  discovery: Discovery;
  bindings: BindingStore;
  informers: Pick<Informers, "watcher">;
  client: GeneratedBindingServices["client"] & Pick<Client, "apply">;
  log: Log;
  metrics: Pick<Metrics, "observeRefusedLists" | "limited">;
}

/** How many namespaces are synced at once. */
const CONCURRENCY = 4;
const BACKOFF_MS = { first: 500, most: 30_000 };

export class ReloaderController {
  readonly name = "reloader";
  /** Contains namespaces, and ALL. */
  readonly queue = new WorkQueue({ concurrency: CONCURRENCY, backoffMs: BACKOFF_MS });
  readonly #services: Services;
  readonly #actor: Actor;
  readonly #generated: GeneratedBindings<ReloaderBinding>;
  readonly #inventory: Inventory;
  readonly #view: ReloaderView;
  /** Set if Inlay writes Reloader's annotation of pauses to workloads. */
  readonly #pauses: Pauses | undefined;
  #actorChanged: (key: string) => void = () => {};
  /** By namespace and name of the binding: the wanted bindings. A namespace without an entry is not known yet. */
  readonly #desired = new Map<string, ReadonlyMap<string, ReloaderBinding>>();
  /** Bindings whose actor is not known, or that must be corrected. */
  readonly #waiting = new Set<string>();
  /** By namespace and uid of the workload, the mistakes in its annotations. */
  readonly #mistakes = new Map<string, ReadonlyMap<string, string>>();
  readonly #rests = new Rests();

  constructor(services: Services) {
    this.#services = services;
    const { installation, informers, bindings } = services;
    this.#view = new ReloaderView(installation.reloader);
    const namespace = installation.ownNamespace;
    const identity = serviceAccountIdentity(namespace, RELOADER_ACCOUNT);
    const account = { resource: SERVICE_ACCOUNTS, namespace, name: RELOADER_ACCOUNT };
    this.#actor = { as: { identity, wide: true }, account };
    if (installation.reloader?.recordOnWorkloads)
      this.#pauses = new Pauses(services.client, identity, this.#view.keys.pausedAt);
    const generator = { ...RELOADER_BINDINGS, identity };
    this.#generated = new GeneratedBindings(services, generator, (key) => this.#actorChanged(key));
    const watcher = informers.watcher((key) => this.queue.add(Inventory.subjectOf(key)));
    this.#inventory = new Inventory({ ...services, watcher }, this.#actor.as, (key) => this.queue.add(key));
    if (installation.reloader !== undefined) services.metrics.observeRefusedLists(() => this.#inventory.refused);
    bindings.listen({
      changed: (key) => {
        const binding = this.#inventory.has(namespaceIn(key)) ? bindings.get(key) : undefined;
        if (binding !== undefined) this.#bindingChanged(binding);
      },
      gone: (_, binding) => this.#bindingChanged(binding, true),
    });
  }

  start(): void {
    if (this.#services.installation.reloader !== undefined) this.queue.add(ALL);
  }

  /** `key` is a namespace, or ALL. */
  async reconcile(key: string): Promise<WorkResult> {
    if (key !== ALL) return this.#work(key);
    return (await this.#inventory.look()) ? { retry: "after", ms: RETRY_MS } : DONE;
  }

  onActorChanged(changed: (key: string) => void): void {
    this.#actorChanged = changed;
  }

  /** A binding was created, changed or deleted. */
  #bindingChanged(binding: SecretBinding, isGone = false): void {
    const { namespace = "", name } = binding.metadata;
    if (!this.#inventory.has(namespace) || (!name.startsWith(PREFIX) && !claimsToBeGenerated(binding))) return;
    const desired = this.#desired.get(namespace)?.get(name);
    // The annotation of its Deployment depends on when the rollout began.
    const hasBegun = this.#pauses?.hasBegun(binding) === true;
    // Another user's binding matters only when it is created or deleted.
    const isSettled = desired === undefined ? isForeign(binding) : this.#generated.isAsGenerated(binding, desired);
    if (isGone) for (const each of [this.#generated, this.#pauses]) each?.gone(binding);
    else if (isSettled && !hasBegun) return;
    this.queue.add(namespace);
  }

  /**
   * The account that Inlay impersonates for a binding that is labelled as generated, or why there is none. Undefined if the binding
   * differs from what the annotations ask for, or if that is not known yet; `onActorChanged` calls back when it is.
   */
  actorOf(binding: SecretBinding): Actor | Problem | undefined {
    const { namespace = "", name } = binding.metadata;
    const { installation } = this.#services;
    if (!installation.isReloading(namespace)) return leftOver(binding);
    const desired = this.#desired.get(namespace)?.get(name);
    if (desired !== undefined && this.#generated.isAsGenerated(binding, desired)) return this.#actor;
    // The namespace may be new, or may get the labels later.
    this.#waiting.add(bindingKey(binding));
    return this.#inventory.isUnselected(namespace) ? leftOver(binding) : undefined;
  }

  async #work(namespace: string): Promise<WorkResult> {
    const { bindings } = this.#services;
    if (!this.#inventory.has(namespace)) return this.#forget(namespace);
    const rest = this.#rests.leftMs(namespace);
    if (rest > 0) return { retry: "after", ms: rest };
    const own = new OwnTime();
    const found = this.#inventory.in(namespace);
    const choosers = found && (await this.#choosersOf(namespace, found, own));
    const classes = choosers && (await own.wait(this.#classesFor(namespace, choosers)));
    if (found === undefined || choosers === undefined || classes === undefined) return DONE;
    // Nothing is created twice: all existing bindings must be known.
    if (bindings.state.phase !== "synced") return { retry: "backoff" };
    const there = bindings.in(namespace);
    const all = new NamespaceSources([...found.present, ...classes.present]);
    const refused = new Set([...found.refused, ...(classes.isRefused ? ["SecretProviderClass"] : [])]);
    const desired = await this.#choose(namespace, choosers, all, refused, there, own);
    this.#rests.worked(namespace, own);
    this.#desired.set(namespace, desired);
    this.#wake(namespace);
    const obsolete = obsoleteOf([...there.values()], desired, found.unseen);
    const generated = await this.#generated.sync(namespace, [...desired.values()], obsolete, ({ name }) =>
      there.get(name),
    );
    return soonest([generated, (await this.#pauses?.sync(this.#pausablesIn(found, desired, there))) ?? DONE]);
  }

  #pausablesIn(
    { workloads }: InventoryResult,
    desired: ReadonlyMap<string, ReloaderBinding>,
    there: ReadonlyMap<string, SecretBinding>,
  ): Pausable[] {
    const byOwner = Map.groupBy(desired.values(), ({ owner }) => owner.uid);
    return workloads.flatMap(({ resource, namespace, name, version }) => {
      const noted = version.workload?.reloaderAnnotations?.own[this.#view.keys.pausedAt];
      const bindings = (byOwner.get(version.uid) ?? []).flatMap((each) => there.get(each.name) ?? []);
      const isPausable = noted !== undefined || bindings.some(({ spec }) => spec.rollout?.minInterval !== undefined);
      return isPausable ? [{ ref: { resource, ...(namespace && { namespace }), name }, version, noted, bindings }] : [];
    });
  }

  #wake(namespace: string): void {
    for (const key of this.#waiting) {
      if (namespaceIn(key) !== namespace) continue;
      this.#waiting.delete(key);
      this.#actorChanged(key);
    }
  }

  /** The namespace is deleted, or lost the labels that select it. */
  #forget(namespace: string): WorkResult {
    for (const map of [this.#desired, this.#mistakes]) map.delete(namespace);
    this.#rests.forget(namespace);
    this.#inventory.forget(namespace);
    this.#generated.forget(namespace);
    for (const binding of this.#services.bindings.in(namespace).values())
      if (claimsToBeGenerated(binding)) this.#waiting.add(bindingKey(binding));
    this.#wake(namespace);
    return DONE;
  }

  /** The workloads whose annotations ask for something. */
  async #choosersOf(namespace: string, { workloads }: InventoryResult, own: OwnTime): Promise<Chooser[]> {
    const { autoReloadAll = false, ignoreKinds = [] } = this.#services.installation.reloader ?? {};
    const rules = { keys: this.#view.keys, reloadAll: autoReloadAll, ignored: ignoreKinds };
    const choosers: Chooser[] = [];
    for (const each of workloads) {
      const { resource, version } = each;
      const choice = choiceOf({ kind: resource.kind, namespace }, version.workload?.reloaderAnnotations, rules);
      if (choice === undefined) continue;
      choosers.push({ ...each, choice });
      // Lists may be long.
      await own.wait(turn());
    }
    return choosers;
  }

  /** If no workload needs SecretProviderClasses, none are listed. */
  #classesFor(namespace: string, choosers: readonly Chooser[]): ReturnType<Inventory["classesIn"]> {
    if (choosers.some(({ choice, version }) => concernsClasses(choice, version.workload?.references ?? [])))
      return this.#inventory.classesIn(namespace);
    this.#inventory.forgetClasses(namespace);
    return Promise.resolve({ present: [], isRefused: false });
  }

  /** The wanted bindings by their names. Mistakes in annotations are recorded as events on the workload. */
  async #choose(
    namespace: string,
    choosers: readonly Chooser[],
    all: NamespaceSources,
    refused: ReadonlySet<string>,
    there: ReadonlyMap<string, SecretBinding>,
    own: OwnTime,
  ): Promise<Map<string, ReloaderBinding>> {
    const { events, installation, metrics } = this.#services;
    const { reloader } = installation;
    const desired = new Map<string, ReloaderBinding>();
    const current = new Map<string, string>();
    for (const { resource, name, version, choice } of choosers) {
      const { workload, uid, resourceVersion } = version;
      const found = all.chosen(choice, workload?.references ?? []);
      const mistakes = [...choice.mistakes, ...found.mistakes];
      if (refused.has("SecretProviderClass") && choice.rules.SecretProviderClass.isOwn)
        mistakes.push(CLASSES_FORBIDDEN);
      const [sources, left] = permitted(found.sources, refused, there);
      if (left.length > 0) mistakes.push(sourcesForbidden(left));
      const owner = { apiVersion: apiVersionOf(resource), kind: resource.kind, namespace, name, uid };
      for (const each of bindingsOf(owner, sources, { ...choice, ...reloader }, (workload?.stamps ?? []).length > 0)) {
        const other = there.get(each.name);
        if (other === undefined || !isForeign(other)) desired.set(each.name, each);
        else
          mistakes.push(
            `does not restart for its sources, because another user created a SecretBinding with the name ${each.name}; rename that one`,
          );
      }
      const notes = mistakes.map((note) => ({ reason: "InvalidAnnotation" as const, note }));
      const isOver = workload?.hasTooManyReferences === true && followsReferences(choice);
      const tooLarge = [
        ...(isOver ? [TOO_MANY_REFERENCES] : []),
        ...(found.unread.length > 0 ? [classesTooLarge(found.unread)] : []),
      ];
      const reports = [...notes, ...tooLarge.map((note) => ({ reason: "TooLarge" as const, note }))];
      if (reports.length > 0) {
        current.set(uid, reports.map(({ note }) => note).join("\n"));
        const isRecorded = this.#mistakes.get(namespace)?.get(uid) === current.get(uid);
        const regarding = { ...owner, metadata: { name, namespace, uid, resourceVersion } };
        if (isOver && !isRecorded) metrics.limited("referencesPerWorkload");
        for (const each of isRecorded ? [] : reports)
          events.recordOn(regarding, { type: "Warning", action: "Reload", ...each });
      }
      // Patterns may take a while.
      await own.wait(turn());
    }
    this.#mistakes.set(namespace, current);
    return desired;
  }
}
