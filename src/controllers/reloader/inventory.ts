/**
 * What streams show to the account for Reloader's annotations comes in; which namespaces there are goes out, and all that there is
 * in one to go by, once that is known.
 */
import { isDeepStrictEqual } from "node:util";
import { isGlob } from "../../apimachinery/glob.ts";
import { apiVersionOf, type Resource } from "../../apimachinery/objects.ts";
import { CONFIG_MAPS, NAMESPACES, SECRETS } from "../../apimachinery/resources.ts";
import type { Member } from "../../cache/informers.ts";
import type { As, Collection } from "../../cache/subscription.ts";
import { READ_VERBS, streamRefusal } from "../../kube/access-error.ts";
import { CONTROLLER } from "../../kube/identity.ts";
import { RareKind } from "../../kube/optional-kind.ts";
import type { Parts } from "../../parts.ts";
import { standing } from "../../reloader/jobs.ts";
import { PROVIDER_CLASS, syncedBy } from "../../workloads/provider-class.ts";
import { WORKLOAD_KINDS } from "../../workloads/workload.ts";
import type { SourceKind } from "./annotations.ts";
import type { Present } from "./sources.ts";

/** Those that the account may restart, as far as they are served; and if the installation says so, Jobs. */
const KINDS = ["Deployment", "StatefulSet", "DaemonSet", "CronJob", "Rollout"] as const;
const WITH_JOBS = [...KINDS, "Job"] as const;
/** The key under which it is found out which namespaces and kinds there are. No namespace is called so. */
export const ALL = "*";
/** With a namespace behind it, the key of its classes. */
const CLASSES = "+";

interface Kind {
  resource: Resource;
  template: string;
}

/** What there is in a namespace. */
export interface Found {
  /** Of these kinds it is not known which there are. */
  unseen: string[];
  workloads: (Member & Kind)[];
  present: Present[];
}

export class AnnotatedWorkloads {
  readonly #parts: Pick<Parts, "installation" | "streams" | "discovery" | "log">;
  readonly #as: As;
  /** Has a namespace, or ALL, looked at again. */
  readonly #again: (key: string) => void;
  readonly #classes: RareKind;
  #kinds: Kind[] = [];
  #namespaces: ReadonlySet<string> = new Set();
  /** The namespaces that have to do with classes, and the kind as it was served then. */
  readonly #mounting = new Map<string, Resource | undefined>();
  readonly #refused = new Map<string, string>();

  constructor(
    parts: Pick<Parts, "installation" | "streams" | "discovery" | "log">,
    as: As,
    again: (key: string) => void,
  ) {
    this.#parts = parts;
    this.#as = as;
    this.#again = again;
    this.#classes = new RareKind(parts.discovery, PROVIDER_CLASS);
  }

  has(namespace: string): boolean {
    return this.#namespaces.has(namespace);
  }

  /** What is to be looked at when streams tell of that key: a namespace, or ALL. */
  static subjectOf(key: string): string {
    return key.startsWith(CLASSES) ? key.slice(CLASSES.length) : key;
  }

  /** Finds out which namespaces and kinds there are; false while that is not known. */
  async look(): Promise<boolean> {
    const kinds = await this.#servedKinds();
    const classes = this.#mounting.size === 0 ? undefined : await this.#classes.served();
    const now = this.#named() ?? this.#matched();
    if (now === undefined) return false;
    const isOther = !isDeepStrictEqual(kinds, this.#kinds);
    this.#kinds = kinds;
    const before = this.#namespaces;
    this.#namespaces = now;
    for (const namespace of new Set([...before, ...now])) {
      const hasOther = this.#mounting.has(namespace) && !isDeepStrictEqual(this.#mounting.get(namespace), classes);
      if (isOther || hasOther || before.has(namespace) !== now.has(namespace)) this.#again(namespace);
    }
    return true;
  }

  async #servedKinds(): Promise<Kind[]> {
    const found = await Promise.all(
      (this.#parts.installation.reloader?.jobs ? WITH_JOBS : KINDS).map(async (kind) => {
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

  /** What there is in a namespace; undefined as long as that is not all. */
  in(namespace: string): Found | undefined {
    const { streams } = this.#parts;
    const of = (resource: Resource, more: Pick<Collection, "workload"> = {}): Collection => {
      return { ...this.#as, resource, namespace, labels: "", names: undefined, choice: true, ...more };
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
    const seen = kinds.map(({ kind }) => kind.resource.kind);
    return {
      unseen: KINDS.filter((kind) => !seen.includes(kind)),
      workloads: kinds.flatMap(({ kind, watched }) =>
        standing(membersOf(watched)).map((each) => ({ ...each, ...kind })),
      ),
      present: sources.flatMap((watched) =>
        membersOf(watched).map(
          ({ name, version: { mark } }): Present => ({ kind: watched.resource.kind as SourceKind, name, mark }),
        ),
      ),
    };
  }

  /**
   * The SecretProviderClasses of a namespace; undefined as long as they are not known. Where the account may not list them there
   * are those that it saw before.
   */
  async classesIn(namespace: string): Promise<{ present: Present[]; isRefused: boolean } | undefined> {
    const { streams } = this.#parts;
    const key = `${CLASSES}${namespace}`;
    const resource = await this.#classes.served();
    this.#mounting.set(namespace, resource);
    if (resource === undefined) {
      streams.observe(key, []);
      return { present: [], isRefused: false };
    }
    const watched: Collection = {
      ...this.#as,
      resource,
      namespace,
      labels: "",
      names: undefined,
      whole: true,
    };
    streams.observe(key, [watched]);
    const seen = streams.members(key, watched);
    if (seen.phase === "pending") return undefined;
    const isRefused = seen.phase === "failed" && seen.error.status === 403;
    if (seen.phase === "failed") this.#complain(key, watched, seen.error);
    else this.#refused.delete(key);
    if (seen.phase === "failed" && !isRefused) return undefined;
    const present = seen.members.map(({ name, version: { mark, spec } }): Present => {
      const writes = syncedBy(spec).map(({ secret }) => secret);
      return { kind: "SecretProviderClass", name, mark, writes };
    });
    return { present, isRefused };
  }

  /** Nothing in a namespace has to do with classes any more. */
  forgetClasses(namespace: string): void {
    if (!this.#mounting.delete(namespace)) return;
    this.#parts.streams.observe(`${CLASSES}${namespace}`, []);
    this.#refused.delete(`${CLASSES}${namespace}`);
  }

  forget(namespace: string): void {
    this.#parts.streams.observe(namespace, []);
    this.#refused.delete(namespace);
    this.forgetClasses(namespace);
  }

  #complain(key: string, watched: Collection, error: Parameters<typeof streamRefusal>[0]): undefined {
    const { identity, resource, namespace } = watched;
    const { message } = streamRefusal(error, { identity, ref: { resource, namespace }, verbs: READ_VERBS }, "list");
    // It was served a moment ago.
    if (error.status === 404) this.#parts.discovery.forget(apiVersionOf(resource));
    if (error.status === 404 && key !== ALL) this.#again(ALL);
    if (this.#refused.get(key) === message) return;
    this.#refused.set(key, message);
    const file = `deploy/${this.#parts.installation.scope ? "namespaced" : "manifests"}/optional/reloader.yaml`;
    this.#parts.log.error({ namespace, error: message }, `Reloader's annotations can't be read; apply ${file}`);
  }
}
