/**
 * Where the installation says so, what workloads say to Reloader comes in by streams, and real bindings that restart them go
 * out. Who acts for such a binding is decided here and nowhere else: an account of its own, if the binding is what the
 * annotations of its workload come to at this moment, whoever wrote it.
 */
import { setImmediate as turn } from "node:timers/promises";
import { bindingKey, namespaceIn, type SecretBinding } from "../../api/binding.ts";
import { claimsToBeMade, RELOADER_ACCOUNT } from "../../api/reloader.ts";
import { apiVersionOf } from "../../apimachinery/objects.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import { SERVICE_ACCOUNTS } from "../../apimachinery/resources.ts";
import { serviceAccountIdentity } from "../../kube/identity.ts";
import { describeError } from "../../observability/log.ts";
import type { Actor, Parts } from "../../parts.ts";
import { ownActor } from "../../targets/actor.ts";
import { WorkQueue, type WorkResult } from "../../workqueue/work-queue.ts";
import { isOthers, leftOver, MadeBindings } from "../generated-bindings.ts";
import { type Choice, choiceOf } from "./annotations.ts";
import { bindingsOf, type Made, PREFIX } from "./bindings.ts";
import { ALL, AnnotatedWorkloads, type Found } from "./inventory.ts";
import { concernsClasses, There } from "./sources.ts";

/** A kind may be served from now on. */
const LOOK_AGAIN_MS = 20_000;
/** A namespace that took long lets all others go first for so many times as long. */
const REST = 10;
const LONGEST_REST_MS = 5_000;
const SHORT_MS = 20;
const DONE: WorkResult = { retry: "never" };
const BLIND =
  "SecretProviderClasses can't be listed here; whoever installed Inlay has to apply optional/reloader.yaml as it is now";

/** A workload, and what its annotations come to. */
type Chooser = Found["workloads"][number] & { choice: Choice };

export class Reloading {
  readonly #parts: Parts;
  readonly #actor: Actor;
  readonly #bindings: MadeBindings;
  readonly #workloads: AnnotatedWorkloads;
  readonly #queue: WorkQueue;
  /** By namespace, and there by the name of the binding: what there has to be. Of the others it is not known yet. */
  readonly #made = new Map<string, ReadonlyMap<string, Made>>();
  /** Bindings that wait to be known, or to be put right. */
  readonly #held = new Set<string>();
  /** By namespace, what is wrong with the annotations of each workload. */
  readonly #told = new Map<string, ReadonlyMap<string, string>>();
  readonly #rests = new Map<string, number>();

  constructor(parts: Parts) {
    this.#parts = parts;
    const namespace = parts.installation.ownNamespace;
    const identity = serviceAccountIdentity(namespace, RELOADER_ACCOUNT);
    this.#actor = {
      as: { identity, wide: true },
      account: { resource: SERVICE_ACCOUNTS, namespace, name: RELOADER_ACCOUNT },
    };
    this.#bindings = new MadeBindings(parts, identity);
    this.#workloads = new AnnotatedWorkloads(parts, this.#actor.as, (key) => this.#queue.add(key));
    this.#queue = new WorkQueue({
      concurrency: 4,
      backoffMs: { first: 500, most: 30_000 },
      work: (key) => (key === ALL ? this.#look() : this.#work(key)),
      onError: (namespace, error) =>
        parts.log.warn(
          { namespace, error: describeError(error) },
          "bindings of Reloader's annotations are tried again",
        ),
    });
  }

  start(): void {
    if (this.#parts.installation.reloader !== undefined) this.#queue.add(ALL);
  }

  stop(): Promise<void> {
    return this.#queue.stop();
  }

  /** Whether what streams tell of under this key is for here. The keys of bindings have a slash. */
  static owns(key: string): boolean {
    return !key.includes("/");
  }

  /** A stream has news. */
  changed(key: string): void {
    this.#queue.add(AnnotatedWorkloads.subjectOf(key));
  }

  /** A binding is new, changed or gone. */
  bindingChanged(binding: SecretBinding, isGone = false): void {
    const { namespace = "", name } = binding.metadata;
    if (!this.#workloads.has(namespace) || (!name.startsWith(PREFIX) && !claimsToBeMade(binding))) return;
    const made = this.#made.get(namespace)?.get(name);
    if (isGone) this.#bindings.gone(binding);
    // Somebody's own is in nobody's way but when it comes or goes.
    else if (made === undefined ? isOthers(binding) : this.#bindings.isAsMade(binding, made)) return;
    this.#queue.add(namespace);
  }

  /**
   * As whom a binding is acted for, or why it is not. Undefined: it says that it was made of annotations, and is not what they
   * come to, or that is not known yet; it is looked at again when it is put right, or known.
   */
  actorOf(binding: SecretBinding): Actor | Problem | undefined {
    const { namespace = "", name } = binding.metadata;
    const { installation } = this.#parts;
    if (!claimsToBeMade(binding)) return ownActor(binding, installation);
    if (!installation.isReloading(namespace)) return leftOver(binding);
    const made = this.#made.get(namespace)?.get(name);
    if (made !== undefined && this.#bindings.isAsMade(binding, made)) return this.#actor;
    this.#held.add(bindingKey(binding));
    return undefined;
  }

  async #look(): Promise<WorkResult> {
    return (await this.#workloads.look()) ? { retry: "after", ms: LOOK_AGAIN_MS } : DONE;
  }

  async #work(namespace: string): Promise<WorkResult> {
    const { bindings, again } = this.#parts;
    if (!this.#workloads.has(namespace)) return this.#forget(namespace);
    const began = performance.now();
    const rest = (this.#rests.get(namespace) ?? 0) - began;
    if (rest > 0) return { retry: "after", ms: rest };
    const found = this.#workloads.in(namespace);
    const choosers = found && (await this.#choosersOf(found));
    const classes = choosers && (await this.#classesFor(namespace, choosers));
    if (found === undefined || choosers === undefined || classes === undefined) return DONE;
    // Nothing is made that is there already.
    if (bindings.state.phase !== "synced") return { retry: "backoff" };
    const keys = bindings.all.filter(({ metadata }) => metadata.namespace === namespace).map(bindingKey);
    const there = new Map(keys.flatMap((key) => bindings.get(key) ?? []).map((each) => [each.metadata.name, each]));
    const all = new There([...found.present, ...classes.present]);
    const made = await this.#choose(namespace, choosers, all, classes.isRefused, there);
    const took = performance.now() - began;
    if (took > SHORT_MS) this.#rests.set(namespace, performance.now() + Math.min(REST * took, LONGEST_REST_MS));
    this.#made.set(namespace, made);
    for (const key of this.#held) {
      if (namespaceIn(key) !== namespace) continue;
      this.#held.delete(key);
      again(key);
    }
    return this.#bindings.sync(namespace, made, there, found.unseen);
  }

  #forget(namespace: string): WorkResult {
    for (const map of [this.#made, this.#told, this.#rests]) map.delete(namespace);
    this.#workloads.forget(namespace);
    this.#bindings.forget(namespace);
    return DONE;
  }

  /** Those that say anything. */
  async #choosersOf({ workloads }: Found): Promise<Chooser[]> {
    const { autoReloadAll = false } = this.#parts.installation.reloader ?? {};
    const choosers: Chooser[] = [];
    for (const each of workloads) {
      const choice = choiceOf(each.resource.kind, each.version.workload?.told, autoReloadAll);
      if (choice === undefined) continue;
      choosers.push({ ...each, choice });
      // Lists may be long.
      await turn();
    }
    return choosers;
  }

  /** Where no workload has to do with any, nothing is asked for. */
  #classesFor(namespace: string, choosers: readonly Chooser[]): ReturnType<AnnotatedWorkloads["classesIn"]> {
    if (choosers.some(({ choice, version }) => concernsClasses(choice, version.workload?.references ?? [])))
      return this.#workloads.classesIn(namespace);
    this.#workloads.forgetClasses(namespace);
    return Promise.resolve({ present: [], isRefused: false });
  }

  /** The bindings that there have to be, by their names. A workload whose annotations are wrong is told so. */
  async #choose(
    namespace: string,
    choosers: readonly Chooser[],
    all: There,
    isBlind: boolean,
    there: ReadonlyMap<string, SecretBinding>,
  ): Promise<Map<string, Made>> {
    const made = new Map<string, Made>();
    const told = new Map<string, string>();
    for (const { resource, name, version, choice } of choosers) {
      const { workload, uid, resourceVersion } = version;
      const found = all.chosen(choice, workload?.references ?? []);
      const mistakes = [...choice.mistakes, ...found.mistakes];
      if (isBlind && choice.rules.SecretProviderClass.isOwn) mistakes.push(BLIND);
      const owner = { apiVersion: apiVersionOf(resource), kind: resource.kind, name, uid };
      for (const each of bindingsOf(owner, found.sources, choice, (workload?.stamps ?? []).length > 0)) {
        const other = there.get(each.name);
        if (other === undefined || !isOthers(other)) made.set(each.name, each);
        else
          mistakes.push(`restarts for nothing, as ${each.name} is a binding of somebody's own; give that another name`);
      }
      if (mistakes.length > 0) {
        told.set(uid, mistakes.join("\n"));
        if (this.#told.get(namespace)?.get(uid) !== told.get(uid))
          this.#tell({ ...owner, metadata: { name, namespace, uid, resourceVersion } }, mistakes);
      }
      // Patterns may take a while.
      await turn();
    }
    this.#told.set(namespace, told);
    return made;
  }

  #tell(regarding: Parameters<Parts["events"]["recordOn"]>[0], mistakes: readonly string[]): void {
    for (const note of mistakes)
      this.#parts.events.recordOn(regarding, { type: "Warning", reason: "InvalidAnnotation", action: "Reload", note });
  }
}
