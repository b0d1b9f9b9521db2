/**
 * Reads sources that need a SecretGrant: sources in other namespaces, and sources with `granted`. Watches show when to reconcile, and which
 * sources may be read at all. Each value is checked again after it was read, by the current grant, so that a value that was read after a
 * grant was deleted is never used.
 */
import type { SecretBinding, Status } from "../api/binding.ts";
import { DEFAULT_LIMITS } from "../api/limits.ts";
import type { SecretGrant } from "../api/secret-grant.ts";
import type { KubeObject, ObjectRef } from "../apimachinery/objects.ts";
import { MissingValue, Problem } from "../apimachinery/problem.ts";
import { NAMESPACES, SECRET_GRANTS } from "../apimachinery/resources.ts";
import type { CollectionSubscription } from "../cache/subscription.ts";
import type { ListedObject, Watcher } from "../cache/watcher.ts";
import { attempt, READ_VERBS, streamRefusal } from "../kube/access-error.ts";
import type { Client } from "../kube/client.ts";
import { getAsController } from "../kube/get.ts";
import { CONTROLLER } from "../kube/identity.ts";
import { absentSource, type LiveSource } from "../transform/live-source.ts";
import { finish, type RunSteps } from "../workqueue/cpu-scheduler.ts";
import { type Grant, type GrantIndex, type GrantLimits, indexOf } from "./grant-index.ts";
import {
  type Asker,
  admits,
  allows,
  compositionUnknown,
  coversObject,
  dependsOnComposition,
  dependsOnNamespace,
  grantsBehind,
  homeOf,
  type Known,
  mayAllow,
  namespaceDeleted,
  notGranted,
  type ProducedBy,
  tooManyGrants,
} from "./grant-rules.ts";
import type { ParsedSource, PolledSource, ResolvedSource, WatchedSource } from "./source.ts";

/** The most grants that are read again for one source, one after the other, while the watch is behind. */
const MAX_READ = 8;

/** What `observeGrants` may do, and how. */
export interface GrantOptions {
  limits: GrantLimits;
  /** Runs the work of comparing grants. */
  steps: RunSteps;
  /** Called when it turns out that grants of a namespace don't count. */
  limited(namespace: string, index: GrantIndex): void;
}

const DEFAULTS: GrantOptions = { limits: DEFAULT_LIMITS, steps: async (work) => finish(work), limited: () => {} };

export interface GrantedSources {
  /** The binding when this is called: its composition may change after each request. */
  asker(): Asker;
  /** Whether a grant may apply once the binding's composition is known. */
  isPending: boolean;
  /** The sources whose values were copied before, by status. */
  copied: readonly string[];
  /** The collections to watch. */
  dependencies: CollectionSubscription[];
  /** Changes with everything that the streams show, and with the composition if it decides. */
  state: string;
  /** The grants that permit the source unless its labels forbid it, or the reason why they are unknown. Undefined: it needs no grant. */
  grantsFor(ref: ObjectRef): readonly Grant[] | Problem | undefined;
  /** Why other grants may permit the source that don't count. */
  exceededFor(ref: ObjectRef): Problem | undefined;
  steps: RunSteps;
}

/** Yields where it may be interrupted: the number and size of the grants have high limits. */
export function* observeGrants(
  watcher: Pick<Watcher, "list">,
  key: string,
  { metadata, spec: { serviceAccountName }, status }: SecretBinding,
  sources: readonly Pick<ResolvedSource, "grantedObject" | "grantedLabels">[],
  compositionOf: () => ProducedBy,
  { limits, steps, limited }: GrantOptions = DEFAULTS,
): Generator<void, GrantedSources> {
  const own = metadata.namespace as string;
  const copied = status?.copiedSources ?? [];
  const askerNow = (): Asker => ({ namespace: own, account: serviceAccountName, composition: compositionOf() });
  const labels = new Map(
    sources.flatMap(({ grantedObject, grantedLabels }) =>
      grantedObject && grantedLabels ? [[grantedObject, grantedLabels] as const] : [],
    ),
  );
  const needing = sources.flatMap(({ grantedObject }) => grantedObject ?? []);
  const exceeded = new Map<ObjectRef, Problem>();
  const common = { asker: askerNow, copied, steps, exceededFor: (ref: ObjectRef) => exceeded.get(ref) };
  if (needing.length === 0)
    return { ...common, isPending: false, dependencies: [], state: "", grantsFor: () => undefined };

  const asker = askerNow();
  const dependencies: CollectionSubscription[] = [];
  const shown = (ref: CollectionSubscription): readonly ListedObject[] | Problem => {
    dependencies.push(ref);
    const seen = watcher.list(key, ref);
    if (seen.phase !== "failed") return seen.members;
    return streamRefusal(seen.error, { identity: ref.identity, ref, verbs: READ_VERBS }, "watch");
  };
  const listed = new Map<string, readonly ListedObject[] | Problem>();
  const standings = new Map<ObjectRef, readonly Grant[] | Problem>();
  for (const ref of needing) {
    const { namespace = "" } = ref;
    const members = listed.get(namespace) ?? shown(collection({ resource: SECRET_GRANTS, namespace, whole: true }));
    listed.set(namespace, members);
    if (members instanceof Problem) {
      standings.set(ref, members);
      continue;
    }
    const { index, isNew } = yield* indexOf(members, limits);
    const { uncounted, tooLarge } = index;
    if (isNew && uncounted.length + tooLarge.length > 0) limited(namespace, index);
    const all = index.for(asker, ref);
    const { grantsPerSource, grantsPerNamespace } = limits;
    if (all.length > grantsPerSource) {
      const what = `${all.length} SecretGrants that may permit it`;
      exceeded.set(ref, tooManyGrants(ref, what, grantsPerSource, "grantsPerSource"));
    } else if (uncounted.length > 0) {
      const what = `${grantsPerNamespace + uncounted.length} SecretGrants`;
      exceeded.set(ref, tooManyGrants(ref, what, grantsPerNamespace, "grantsPerNamespace"));
    }
    const known = labels.get(ref);
    const relevant: Grant[] = [];
    for (const grant of all.slice(0, grantsPerSource)) {
      yield;
      const { spec } = grant;
      if (mayAllow(spec, asker, ref) && (known === undefined || coversObject(spec, ref, known))) relevant.push(grant);
    }
    standings.set(ref, relevant);
  }
  const byNamespace = [...standings].flatMap(([ref, grants]) =>
    !(grants instanceof Problem) && grants.some(({ spec }) => dependsOnNamespace(spec)) ? [ref] : [],
  );
  const home = byNamespace.length > 0 ? shown(collection({ resource: NAMESPACES, names: [own] })) : [];
  let isPending = false;
  const [place] = home instanceof Problem ? [] : home.map(({ version: { uid, labels = {} } }) => ({ uid, labels }));
  for (const [ref, grants] of standings) {
    yield;
    if (grants instanceof Problem) continue;
    const admitting = grants.filter(({ spec }) => admits(spec, asker, ref, place, "any"));
    const tooMany = admitting.length === 0 ? exceeded.get(ref) : undefined;
    const isKnown = admitting.length === 0 || admitting.some(({ spec }) => admits(spec, asker, ref, place));
    // Without that watch, a changed label or uid of the namespace would not withdraw the permission.
    if (home instanceof Problem && byNamespace.includes(ref)) standings.set(ref, home);
    else standings.set(ref, tooMany ?? (isKnown ? admitting : compositionUnknown(ref)));
    isPending ||= !isKnown && asker.composition === "pending";
  }
  const { composition } = asker;
  const composedBy = typeof composition === "object" ? `by ${composition.by}` : composition;
  const composerOf = (each: readonly Grant[]) =>
    each.length === 0 || each.some(({ spec }) => dependsOnComposition(spec)) ? composedBy : "";
  const state = [...standings.values()].map((each) =>
    each instanceof Problem
      ? each.message
      : [...each.map(({ name, version }) => `${name}/${version}`), composerOf(each)].join(" "),
  );
  const versions = home instanceof Problem ? [] : home.map(({ version }) => version.resourceVersion);
  const all = [...state, ...versions].join();
  return { ...common, isPending, dependencies, state: all, grantsFor: (ref) => standings.get(ref) };
}

/** Reads a source that needs a grant, if a grant permits it. */
export async function readGranted(
  client: Pick<Client, "get">,
  { asker, grantsFor, exceededFor, steps }: Pick<GrantedSources, "asker" | "grantsFor" | "exceededFor" | "steps">,
  ref: ObjectRef,
  { description, policy, read }: WatchedSource | PolledSource,
  seen: string | undefined,
): Promise<LiveSource | Problem> {
  const grants = grantsFor(ref) ?? [];
  if (grants instanceof Problem) return grants;
  if (grants.length === 0) return refused(description, notGranted(asker(), ref, policy));
  const source = await read(seen);
  if (source instanceof Problem || source.kind === "absent") return source;
  const place = getAsController(client, { resource: NAMESPACES, name: ref.namespace as string });
  const asking = asker();
  const permitted = permitsNow(client, asking, ref, source.labels.reveal(), grants, steps);
  const now = await attempt(Promise.all([place, permitted]));
  if (now instanceof Problem) return now;
  const [there, by] = now;
  if (there === undefined || isBeingDeleted(there)) return refused(description, namespaceDeleted(ref, policy));
  if (by === undefined) return exceededFor(ref) ?? refused(description, notGranted(asking, ref, policy));
  // The version includes the grants, because a new grant is a change even for an unchanged source.
  return { ...source, version: `${source.version} ${by}`, isGranted: true };
}

/**
 * The versions of the grants that permit the binding to read an object with these labels now; undefined if there are none. Throws
 * Problem("Unavailable") if an unknown composition decides, or if the watch shows many grants that no longer permit it.
 */
async function permitsNow(
  client: Pick<Client, "get">,
  asker: Asker,
  asked: ObjectRef,
  object: Readonly<Record<string, string>>,
  grants: readonly Grant[],
  steps: RunSteps,
): Promise<string | undefined> {
  const isByNamespace = grants.some(({ spec }) => dependsOnNamespace(spec));
  const home = isByNamespace
    ? await getAsController(client, { resource: NAMESPACES, name: asker.namespace })
    : undefined;
  const known = { namespace: home && homeOf(home), object };
  const { permitting, isUnknown } = await steps(permittedBy(grants, asker, asked, known));
  for (const { name } of permitting.slice(0, MAX_READ)) {
    const ref = { resource: SECRET_GRANTS, namespace: asked.namespace as string, name };
    const grant = await getAsController<SecretGrant & KubeObject>(client, ref);
    if (grant !== undefined && !isBeingDeleted(grant) && allows(grant.spec, asker, asked, known))
      return [grant, home].map((each) => `${each?.metadata.uid}/${each?.metadata.resourceVersion}`).join();
  }
  if (permitting.length > MAX_READ) throw grantsBehind(asked);
  if (isUnknown) throw compositionUnknown(asked);
  return undefined;
}

/** The grants that permit the binding to read an object, and whether an unknown composition decides for others. */
function* permittedBy(
  grants: readonly Grant[],
  asker: Asker,
  asked: ObjectRef,
  known: Known,
): Generator<void, { permitting: Grant[]; isUnknown: boolean }> {
  const permitting: Grant[] = [];
  let isUnknown = false;
  for (const grant of grants) {
    if (allows(grant.spec, asker, asked, known)) permitting.push(grant);
    else isUnknown ||= allows(grant.spec, asker, asked, known, "any");
    yield;
  }
  return { permitting, isUnknown };
}

/** Adds to a source without a grant whether its values were copied before. */
export function asWithdrawn(source: LiveSource | Problem, { copied }: GrantedSources): LiveSource | Problem {
  if (source instanceof Problem || source.kind !== "absent" || source.problem.reason !== "NotGranted") return source;
  if (!copied.includes(source.description)) return source;
  const { policy, message: why } = source.problem;
  const message = `the grant for values that were copied here was withdrawn; rotate those values; ${why}`;
  return { ...source, problem: new MissingValue("GrantWithdrawn", message, policy) };
}

/** The sources that status records as copied, and those that are copied now. Sources that the spec no longer names are dropped. */
export function copiedSources(
  { status }: Pick<SecretBinding, "status">,
  parsed: readonly ParsedSource[],
  now: Iterable<string> = [],
): Pick<Status, "copiedSources"> {
  const named = parsed.flatMap(({ grantedAs }) => grantedAs ?? []);
  const copied = [...new Set([...(status?.copiedSources ?? []), ...now])].filter((each) => named.includes(each)).sort();
  return copied.length === 0 ? {} : { copiedSources: copied };
}

const isBeingDeleted = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;

const refused = (description: string, problem: MissingValue): LiveSource =>
  absentSource(description, problem, problem.reason);

const collection = (
  of: Pick<CollectionSubscription, "resource"> & Partial<CollectionSubscription>,
): CollectionSubscription => ({ identity: CONTROLLER, namespace: undefined, labels: "", names: undefined, ...of });
