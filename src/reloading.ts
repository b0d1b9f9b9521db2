/**
 * Where the installation says so, what workloads say to Reloader comes in by streams, and real bindings that restart them go
 * out. Who acts for such a binding is decided here and nowhere else: an account of its own, if the binding is what the
 * annotations of its workload come to at this moment, whoever wrote it.
 */
import { setImmediate as turn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { CONTROLLER, type Identity, serviceAccountIdentity } from "./kube/identity.ts";
import { READ_VERBS, streamRefusal } from "./kube/refusal.ts";
import { isOthers, leftOver, MadeBindings } from "./made-bindings.ts";
import { bindingKey, namespaceIn, type SecretBinding } from "./model/binding.ts";
import { isGlob } from "./model/glob.ts";
import { CONFIG_MAPS, NAMESPACES, SECRETS, SERVICE_ACCOUNTS } from "./model/kinds.ts";
import { apiVersionOf, type Resource } from "./model/kube-object.ts";
import type { Problem } from "./model/problem.ts";
import { claimsToBeMade, RELOADER_ACCOUNT } from "./model/reloader.ts";
import { WORKLOAD_KINDS } from "./model/workload.ts";
import { ownActor } from "./own-actor.ts";
import type { Actor, Parts } from "./parts.ts";
import { WorkQueue, type WorkResult } from "./queue/work-queue.ts";
import { bindingsOf, type Made, PREFIX } from "./reloader/bindings.ts";
import { choiceOf, type SourceKind } from "./reloader/choice.ts";
import { type Present, There } from "./reloader/sources.ts";
import { describeError } from "./run/log.ts";
import type { Collection } from "./watch/interest.ts";
import type { Member } from "./watch/streams.ts";

/** Those that the account may restart, as far as they are served. */
const KINDS = ["Deployment", "StatefulSet", "DaemonSet", "CronJob", "Rollout"] as const;
/** The key under which it is found out which namespaces and kinds there are. No namespace is called so. */
const ALL = "*";
/** A kind may be served from now on. */
const LOOK_AGAIN_MS = 20_000;
/** A namespace that took long lets all others go first for so many times as long. */
const REST = 10;
const LONGEST_REST_MS = 5_000;
const SHORT_MS = 20;
const DONE: WorkResult = { retry: "never" };

interface Kind {
  resource: Resource;
  template: string;
}

/** What there is in a namespace. */
interface Found {
  /** Those that were looked at. */
  kinds: string[];
  workloads: (Member & Kind)[];
  present: Present[];
}

export class Reloading {
  readonly #parts: Parts;
  readonly #identity: Identity;
  readonly #actor: Actor;
  readonly #bindings: MadeBindings;
  readonly #queue: WorkQueue;
  #kinds: Kind[] = [];
  #namespaces: ReadonlySet<string> = new Set();
  /** By namespace, and there by the name of the binding: what there has to be. Of the others it is not known yet. */
  readonly #made = new Map<string, ReadonlyMap<string, Made>>();
  /** Bindings that wait to be known, or to be put right. */
  readonly #held = new Set<string>();
  /** By namespace, what is wrong with the annotations of each workload. */
  readonly #told = new Map<string, ReadonlyMap<string, string>>();
  readonly #refused = new Map<string, string>();
  readonly #rests = new Map<string, number>();

  constructor(parts: Parts) {
    this.#parts = parts;
    const namespace = parts.installation.ownNamespace;
    this.#identity = serviceAccountIdentity(namespace, RELOADER_ACCOUNT);
    this.#actor = {
      as: { identity: this.#identity, wide: true },
      account: { resource: SERVICE_ACCOUNTS, namespace, name: RELOADER_ACCOUNT },
    };
    this.#bindings = new MadeBindings(parts, this.#identity);
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
    this.#queue.add(key);
  }

  /** A binding is new, changed or gone. */
  bindingChanged(binding: SecretBinding, isGone = false): void {
    const { namespace = "", name } = binding.metadata;
    if (!this.#namespaces.has(namespace) || (!name.startsWith(PREFIX) && !claimsToBeMade(binding))) return;
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

  /** Finds out which namespaces and kinds there are. */
  async #look(): Promise<WorkResult> {
    const kinds = await this.#servedKinds();
    const now = this.#named() ?? this.#matched();
    if (now === undefined) return DONE;
    const isOther = !isDeepStrictEqual(kinds, this.#kinds);
    this.#kinds = kinds;
    const before = this.#namespaces;
    this.#namespaces = now;
    for (const namespace of new Set([...before, ...now]))
      if (isOther || before.has(namespace) !== now.has(namespace)) this.#queue.add(namespace);
    return { retry: "after", ms: LOOK_AGAIN_MS };
  }

  async #servedKinds(): Promise<Kind[]> {
    const found = await Promise.all(
      KINDS.map(async (kind) => {
        const { apiVersion, template } = WORKLOAD_KINDS[kind];
        const resource = await this.#parts.discovery.byKind(apiVersion, kind);
        return resource === undefined ? [] : [{ resource, template }];
      }),
    );
    return found.flat();
  }

  /** Those that the installation names, if it has no globs: nobody has to see which there are. */
  #named(): Set<string> | undefined {
    const { installation } = this.#parts;
    const names = installation.scope === undefined ? (installation.reloader?.namespaces ?? []) : [installation.scope];
    return names.some(isGlob) ? undefined : new Set(names.filter((each) => installation.isReloading(each)));
  }

  /** Undefined while that is not known. */
  #matched(): Set<string> | undefined {
    const { streams, installation } = this.#parts;
    const all: Collection = {
      identity: CONTROLLER,
      resource: NAMESPACES,
      namespace: undefined,
      labels: "",
      names: installation.reloader?.namespaces,
      choice: true,
    };
    streams.observe(ALL, [all]);
    const seen = streams.members(ALL, all);
    if (seen.phase === "failed") return this.#complain(ALL, all, seen.error);
    if (seen.phase === "pending") return undefined;
    this.#refused.delete(ALL);
    return new Set(seen.members.map(({ name }) => name).filter((name) => installation.isReloading(name)));
  }

  async #work(namespace: string): Promise<WorkResult> {
    const { bindings, again } = this.#parts;
    if (!this.#namespaces.has(namespace)) return this.#forget(namespace);
    const began = performance.now();
    const rest = (this.#rests.get(namespace) ?? 0) - began;
    if (rest > 0) return { retry: "after", ms: rest };
    const found = this.#seen(namespace);
    if (found === undefined) return DONE;
    // Nothing is made that is there already.
    if (bindings.state.phase !== "synced") return { retry: "backoff" };
    const keys = bindings.all.filter(({ metadata }) => metadata.namespace === namespace).map(bindingKey);
    const there = new Map(keys.flatMap((key) => bindings.get(key) ?? []).map((each) => [each.metadata.name, each]));
    const made = await this.#choose(namespace, found, there);
    const took = performance.now() - began;
    if (took > SHORT_MS) this.#rests.set(namespace, performance.now() + Math.min(REST * took, LONGEST_REST_MS));
    this.#made.set(namespace, made);
    for (const key of this.#held) {
      if (namespaceIn(key) !== namespace) continue;
      this.#held.delete(key);
      again(key);
    }
    const unseen = KINDS.filter((kind) => !found.kinds.includes(kind));
    return this.#bindings.sync(namespace, made, there, unseen);
  }

  #forget(namespace: string): WorkResult {
    this.#parts.streams.observe(namespace, []);
    for (const map of [this.#made, this.#told, this.#refused, this.#rests]) map.delete(namespace);
    this.#bindings.forget(namespace);
    return DONE;
  }

  /** What the streams show of a namespace; undefined as long as that is not all. */
  #seen(namespace: string): Found | undefined {
    const { streams } = this.#parts;
    const of = (resource: Resource, more: Pick<Collection, "workload"> = {}): Collection => {
      return { ...this.#actor.as, resource, namespace, labels: "", names: undefined, choice: true, ...more };
    };
    const kinds = this.#kinds.map((kind) => ({
      kind,
      watched: of(kind.resource, { workload: { template: kind.template } }),
    }));
    const sources = [SECRETS, CONFIG_MAPS].map((resource) => of(resource));
    const all = [...kinds.map(({ watched }) => watched), ...sources];
    streams.observe(namespace, all);
    const states = all.map((each) => ({ watched: each, ...streams.members(namespace, each) }));
    const failed = states.find((each) => each.phase === "failed");
    // Nobody's annotations are taken for none since they can't be seen.
    if (failed?.phase === "failed") return this.#complain(namespace, failed.watched, failed.error);
    if (states.some(({ phase }) => phase === "pending")) return undefined;
    this.#refused.delete(namespace);
    const membersOf = (watched: Collection) => states.find((each) => each.watched === watched)?.members ?? [];
    return {
      kinds: kinds.map(({ kind }) => kind.resource.kind),
      workloads: kinds.flatMap(({ kind, watched }) => membersOf(watched).map((member) => ({ ...member, ...kind }))),
      present: sources.flatMap((watched) =>
        membersOf(watched).map(
          ({ name, version: { mark } }): Present => ({ kind: watched.resource.kind as SourceKind, name, mark }),
        ),
      ),
    };
  }

  #complain(key: string, watched: Collection, error: Parameters<typeof streamRefusal>[0]): undefined {
    const { identity, resource, namespace } = watched;
    const { message } = streamRefusal(error, { identity, ref: { resource, namespace }, verbs: READ_VERBS }, "list");
    // It was served a moment ago.
    if (error.status === 404) this.#parts.discovery.forget(apiVersionOf(resource));
    if (error.status === 404 && key !== ALL) this.#queue.add(ALL);
    if (this.#refused.get(key) === message) return;
    this.#refused.set(key, message);
    const file = `deploy/${this.#parts.installation.scope ? "namespaced" : "manifests"}/optional/reloader.yaml`;
    this.#parts.log.error({ namespace, error: message }, `Reloader's annotations can't be read; apply ${file}`);
  }

  /** The bindings that there have to be, by their names. A workload whose annotations are wrong is told so. */
  async #choose(
    namespace: string,
    { workloads, present }: Found,
    there: ReadonlyMap<string, SecretBinding>,
  ): Promise<Map<string, Made>> {
    const { autoReloadAll = false } = this.#parts.installation.reloader ?? {};
    const made = new Map<string, Made>();
    const told = new Map<string, string>();
    const all = new There(present);
    for (const { resource, name, version } of workloads) {
      const { workload, uid, resourceVersion } = version;
      const choice = choiceOf(resource.kind, workload?.told, autoReloadAll);
      if (choice === undefined) continue;
      const found = all.chosen(choice, workload?.references ?? []);
      const mistakes = [...choice.mistakes, ...found.mistakes];
      const owner = { apiVersion: apiVersionOf(resource), kind: resource.kind, name, uid };
      for (const each of bindingsOf(owner, found.sources, choice)) {
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
