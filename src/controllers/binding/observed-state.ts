/** Subscribes to everything that a binding depends on, and reports what the watches show of it and whether they are in sync. */
import { createHash } from "node:crypto";
import {
  fieldsOfTarget,
  onReleaseOf,
  recreates,
  type SecretBinding,
  type Target,
  type TargetStatus,
} from "../../api/binding.ts";
import { REFRESH_ANNOTATION } from "../../api/refresh.ts";
import { isOlder, type ObjectRef, type Version } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { ReflectorState } from "../../cache/reflector.ts";
import { isCollection, type Subscription } from "../../cache/subscription.ts";
import type { Watcher } from "../../cache/watcher.ts";
import { accountNotFound, accountRefusal, READ_VERBS, streamRefusal, verbsFor } from "../../kube/access-error.ts";
import { CONTROLLER } from "../../kube/identity.ts";
import { type CompiledBinding, listingFor, readListed } from "../../pipeline/compile.ts";
import type { Owners } from "../../rollout/discover/dependents.ts";
import type { Poll, PollState } from "../../sources/poll.ts";
import type { Poller } from "../../sources/poller.ts";
import type { Readability } from "../../sources/read.ts";
import type { ListedSource } from "../../sources/source.ts";
import type { Actor } from "../../targets/actor.ts";
import type { SelectionResult } from "../../targets/select.ts";
import type { LiveSource } from "../../transform/live-source.ts";

/** What the watches show of everything that a binding depends on. */
export interface ObservedState extends Readability, Pick<SelectionResult, "unresolved" | "closed" | "notes"> {
  readonly objects: SelectionResult["objects"];
  /**
   * Some watch is not in sync yet, or it is still being computed which composition generates the binding. The binding is
   * requeued when that ends. Fields do not wait for workloads.
   */
  readonly pending: boolean;
  /** Whether every server outside of the cluster has answered since the binding was asked to read it again. */
  readonly isRefreshed: boolean;
  /** Why an object can't be used: Inlay could not resolve it, or can't watch it. */
  problemOf(ref: ObjectRef | Problem): Problem | undefined;
  /** Changes when any source changes. */
  readonly sourceState: string;
  /** `sourceState` with the generation of the spec that names the sources. */
  readonly sourceRevisions: string;
  /** The objects that are targets. */
  owners(): Owners;
  /** The uids of the objects that values come from. */
  readonly sourceUids: readonly string[];
  /** The version that the watch shows, unless a later version of the same object is known. */
  shown(ref: ObjectRef, known?: Version): Version | undefined;
  /** The version now, or undefined if the object has changed since the known version in a way that concerns the binding. */
  unchanged(target: Target, ref: ObjectRef, known: Version): Version | undefined;
  /**
   * A digest of all that decides the outcome of one target. `version` is the shown version, or a later one that Inlay wrote or
   * read.
   */
  stateOf(
    target: Target,
    ref: ObjectRef,
    record: TargetStatus,
    isSynced: boolean,
    version: Version | undefined,
  ): string;
  /** A digest of all that decides the outcome of the binding. `known` has the versions that Inlay wrote or read since. */
  fingerprint(now: SecretBinding, known: ReadonlyMap<ObjectRef, Version>, workloadsText: string): string;
}

interface ObserveServices {
  readonly watcher: Watcher;
  readonly polls: Pick<Poller, "subscribe" | "stateOf" | "isRefreshed">;
  /** The paths of other bindings at an object of a target. */
  competingAt(target: Target, ref: ObjectRef): Generator<void, readonly unknown[]>;
}

/** Yields where it may be interrupted. A change that arrives meanwhile requeues the binding. */
export function* observe(
  { watcher, polls, competingAt }: ObserveServices,
  {
    key,
    binding,
    references,
    resolved,
    selection,
    grants: grantedSources,
  }: Omit<CompiledBinding, "rollout" | "resolving">,
  { as, account }: Actor,
  workloads: readonly Subscription[] = [],
): Generator<void, ObservedState> {
  const { identity } = as;
  const { objects, unresolved, closed, notes, dependencies, versions } = selection;
  const watchedSources = resolved.flatMap((each) => (each.watched ? [each] : []));
  const sourceRefs = watchedSources.map(({ watched }) => watched);
  // Inlay neither watches nor polls a source that no SecretGrant permits.
  const granted = resolved.filter(({ grantedObject }) => {
    const grants = grantedObject && grantedSources.grantsFor(grantedObject);
    return grants === undefined || (!(grants instanceof Problem) && grants.length > 0);
  });
  const listings = new Map(resolved.flatMap((each) => (each.listed ? [[each, listingFor(each, as)] as const] : [])));
  const pollState = (poll: Poll | undefined) => (poll === undefined ? PENDING : polls.stateOf(poll));
  const targetOf = new Map(
    objects.flatMap(({ target, ref }) => (ref instanceof Problem ? [] : [[ref, target] as const])),
  );
  const own: Subscription[] = [
    { identity: CONTROLLER, ref: account },
    ...grantedSources.dependencies,
    ...granted.flatMap(({ watched }) => (watched === undefined ? [] : [{ ...as, ref: watched }])),
    ...listings.values(),
    ...dependencies,
  ];
  yield* watcher.subscribing(key, [...own, ...workloads]);
  const accountLook = watcher.get(key, { identity: CONTROLLER, ref: account });
  // Inlay does not impersonate an account that does not exist.
  const asked = granted.flatMap((each) =>
    !each.watched && !each.listed && accountLook.version !== undefined ? [each.poll] : [],
  );
  const refresh = binding.metadata.annotations?.[REFRESH_ANNOTATION];
  if (accountLook.phase !== "pending")
    polls.subscribe(
      key,
      asked.flatMap((poll) => poll ?? []),
      refresh,
    );
  const pending =
    grantedSources.isPending ||
    asked.some((poll) => pollState(poll).phase === "pending") ||
    own.some((each) => (isCollection(each) ? watcher.list(key, each) : watcher.get(key, each)).phase === "pending");
  const looks = new Map<ObjectRef, ReflectorState & { version?: Version }>([
    ...own.flatMap((each) => (isCollection(each) ? [] : [[each.ref, watcher.get(key, each)] as const])),
    ...[...versions].map(([ref, version]) => [ref, { phase: "synced", version }] as const),
  ]);

  const problemOf = (ref: ObjectRef | Problem): Problem | undefined => {
    if (ref instanceof Problem) return ref;
    const look = looks.get(ref);
    if (look?.phase !== "failed") return undefined;
    if (ref === account) return accountRefusal(look.error, identity, ref);
    const target = targetOf.get(ref);
    const verbs = target
      ? verbsFor(target.create !== undefined, onReleaseOf(binding, target), recreates(target))
      : READ_VERBS;
    return streamRefusal(look.error, { identity, ref, verbs }, "watch");
  };
  /** As they are now: the watch requeues the binding when they change. */
  const live = new Map<ListedSource, LiveSource | Problem>();
  for (const [source, listing] of listings) live.set(source, yield* readListed(source, listing, watcher, key));
  const listed = (source: ListedSource) => live.get(source) as LiveSource | Problem;
  const listedText = (live: LiveSource | Problem) => (live instanceof Problem ? problemText(live) : live.version);
  // Computed once: a competing binding that is created later requeues this one.
  const competing = new Map<ObjectRef, string>();
  for (const [ref, target] of targetOf) {
    yield;
    const claims = yield* competingAt(target, ref);
    if (claims.length > 0) competing.set(ref, yield* digestOf(claims));
  }
  const textOf = (ref: ObjectRef, version: Version | undefined, target?: Target) => {
    const look = looks.get(ref);
    return look?.phase === "failed" ? `failed ${look.error.essence}` : versionText(version, ref, target);
  };
  const seenOf = (ref: ObjectRef) => textOf(ref, looks.get(ref)?.version);
  const sourceState = [
    ...[...references.sources.values()].map((each) => {
      if (each instanceof Problem) return problemText(each);
      if (each.listed) return listedText(listed(each));
      return each.watched ? seenOf(each.watched) : pollText(pollState(each.poll));
    }),
    grantedSources.state,
  ].join();
  const sourceRevisions = [binding.metadata.generation, sourceState].join();
  const isHere = (namespace: string | undefined) => namespace === undefined || namespace === binding.metadata.namespace;
  const shown = (ref: ObjectRef, known?: Version) => newer(looks.get(ref)?.version, known);

  return {
    objects,
    unresolved,
    closed,
    notes,
    pending,
    isRefreshed: polls.isRefreshed(key),
    account: problemOf(account) ?? (looks.get(account)?.version ? undefined : accountNotFound(identity)),
    problemOf,
    grants: grantedSources,
    seenVersion: (ref: ObjectRef) => looks.get(ref)?.version?.resourceVersion,
    listed,
    sourceState,
    sourceRevisions,
    owners: (): Owners => ({
      uids: new Set([...targetOf.keys()].flatMap((ref) => shown(ref)?.uid ?? [])),
      // Dependents are in the namespace of their owner, and Inlay looks for them only in the binding's namespace.
      problem: [
        ...unresolved.filter((each) => isHere(each.namespace)).map(({ problem }) => problem),
        ...objects
          .filter(({ ref }) => ref instanceof Problem || isHere(ref.namespace))
          .map(({ ref }) => problemOf(ref)),
      ].find((each) => each !== undefined),
    }),
    sourceUids: sourceRefs.flatMap((ref) => looks.get(ref)?.version?.uid ?? []),
    shown,
    unchanged: (target: Target, ref: ObjectRef, known: Version) => {
      const version = shown(ref, known);
      return textOf(ref, version, target) === versionText(known, ref, target) ? version : undefined;
    },
    stateOf: (target: Target, ref: ObjectRef, record: TargetStatus, isSynced: boolean, version: Version | undefined) =>
      digest([
        binding.metadata.uid,
        sourceRevisions,
        seenOf(account),
        // A target that is not written may depend on its metadata too.
        textOf(ref, version, isSynced ? target : undefined),
        competing.get(ref) ?? "",
        ownText(record),
      ]),
    fingerprint: (now: SecretBinding, known: ReadonlyMap<ObjectRef, Version>, workloadsText: string) =>
      digest([
        now.metadata.resourceVersion,
        workloadsText,
        sourceRevisions,
        seenOf(account),
        ...objects.map(({ target, ref }) =>
          ref instanceof Problem
            ? ref.message
            : `${textOf(ref, known.get(ref) ?? looks.get(ref)?.version, target)} ${competing.get(ref) ?? ""}`,
        ),
        ...unresolved.map(({ problem }) => problem.message),
        ...notes,
      ]),
  };
}

const PENDING: PollState = { phase: "pending" };

function pollText(state: PollState): string {
  if (state.phase === "synced") return state.answer.version;
  return state.phase === "failed" ? problemText(state.problem) : state.phase;
}

const problemText = ({ reason, message }: Problem) => `${reason} ${message}`;

function newer(seen: Version | undefined, known: Version | undefined): Version | undefined {
  if (seen === undefined || known === undefined || seen.uid !== known.uid) return seen;
  return isOlder(seen, known) ? known : seen;
}

/** A digest of competing claims, which may name thousands of long paths. */
function* digestOf(claims: readonly unknown[]): Generator<void, string> {
  const hash = createHash("sha256");
  for (const claim of claims) {
    hash.update(`${JSON.stringify(claim)}\n`);
    yield;
  }
  return hash.digest("base64");
}

/** What the record says Inlay owns, whatever the order of its fields. */
function ownText({ reason: _r, message: _m, readablePaths: _p, ...own }: TargetStatus): string {
  return JSON.stringify(Object.entries(own).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A short digest of versions, names and paths, and never of a value. */
const digest = (texts: readonly string[]) => createHash("sha256").update(texts.join("\n")).digest("base64");

/**
 * If a kind has a status subresource, each change outside metadata and status increments its generation, so a target of which
 * only the status changed need not be read again. Other kinds have no generation. Of an object that the binding created, metadata
 * counts too. A write in a version that lacks fields drops them without a new generation.
 */
function versionText(version: Version | undefined, { resource }: ObjectRef, target: Target | undefined): string {
  if (version === undefined) return "none";
  const byGeneration =
    resource.hasStatus &&
    !resource.hasLossyVersions &&
    version.generation !== undefined &&
    target !== undefined &&
    target.create === undefined &&
    fieldsOfTarget(target).every(({ path }) => !path.startsWith("metadata") && !path.startsWith("["));
  return `${version.uid}/${byGeneration ? `g${version.generation}` : version.resourceVersion}`;
}
