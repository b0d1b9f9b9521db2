/** What a binding depends on comes in; how far the streams that carry it are, and what they show, goes out. */
import { createHash } from "node:crypto";
import { onReleaseOf, type SecretBinding, type Target, type TargetStatus } from "../../api/binding.ts";
import { isOlder, type ObjectRef, type Version } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { Streams } from "../../cache/informers.ts";
import type { ReflectorState } from "../../cache/reflector.ts";
import { type Dependency, isCollection } from "../../cache/subscription.ts";
import { accountNotFound, accountRefusal, READ_VERBS, streamRefusal, verbsFor } from "../../kube/access-error.ts";
import { CONTROLLER } from "../../kube/identity.ts";
import type { Actor } from "../../parts.ts";
import { type Consent, consentOf } from "../../sources/grants.ts";
import type { References } from "../../targets/references.ts";
import { type Members, membersOf } from "../../targets/select.ts";

/** Objects that workloads may belong to. */
export interface Owners {
  uids: ReadonlySet<string>;
  /** Why some of them can't be known. */
  problem: Problem | undefined;
}

export interface View extends Pick<Members, "members" | "unknown" | "closed" | "notes"> {
  /** Some stream has not brought its first list yet; the binding is called again when it has. Fields wait for no workloads. */
  pending: boolean;
  /** Why nothing can be done as the binding's account at all. */
  account: Problem | undefined;
  /** Why an object can't be worked with: it could not be resolved, or can't be watched. */
  problemOf(ref: ObjectRef | Problem): Problem | undefined;
  /** The version of an object that its stream shows. */
  seen(ref: ObjectRef): string | undefined;
  /** What other namespaces let the binding read. */
  consent: Consent;
  /** The uids of the objects that values come from. */
  sourceUids: string[];
  /** Changes with every source. */
  sourceState: string;
  /** The objects that are targets. */
  owners(): Owners;
  /** All that the outcome of one target depends on, of that version: `shown`, or one that we made or read. */
  stateOf(
    target: Target,
    ref: ObjectRef,
    record: TargetStatus,
    isSynced: boolean,
    version: Version | undefined,
  ): string;
  /** All that the outcome depends on, with the versions that we made or read since. */
  fingerprint(binding: SecretBinding, known: ReadonlyMap<ObjectRef, Version>, workloads: string): string;
  /** The version that the stream shows, unless a later one of the same object is known already. */
  shown(ref: ObjectRef, known?: Version): Version | undefined;
  /** The same, if nothing that the binding looks at has changed since the known one. */
  unchanged(target: Target, ref: ObjectRef, known: Version): Version | undefined;
}

export function viewOf(
  streams: Streams,
  key: string,
  binding: SecretBinding,
  { as, account }: Actor,
  references: References,
  rivalsAt: (target: Target, ref: ObjectRef) => readonly unknown[],
  workloads: readonly Dependency[] = [],
): View {
  const { sources } = references;
  const { identity } = as;
  const { members, unknown, closed, notes, dependencies, versions } = membersOf(streams, key, identity, references);
  const sourceRefs = [...sources.values()].flatMap((ref) => (ref instanceof Problem ? [] : [ref]));
  const consent = consentOf(streams, key, binding, sourceRefs);
  // What nobody granted is not even looked at.
  const granted = sourceRefs.filter((ref) => {
    const grants = consent.grantsFor(ref);
    return grants === undefined || (!(grants instanceof Problem) && grants.length > 0);
  });
  const targetOf = new Map(
    members.flatMap(({ target, ref }) => (ref instanceof Problem ? [] : [[ref, target] as const])),
  );
  const own: Dependency[] = [
    { identity: CONTROLLER, ref: account },
    ...consent.dependencies,
    ...granted.map((ref) => ({ ...as, ref })),
    ...dependencies,
  ];
  streams.observe(key, [...own, ...workloads]);
  const pending = own.some(
    (each) => (isCollection(each) ? streams.members(key, each) : streams.look(key, each)).phase === "pending",
  );
  const looks = new Map<ObjectRef, ReflectorState & { version?: Version }>([
    ...own.flatMap((each) => (isCollection(each) ? [] : [[each.ref, streams.look(key, each)] as const])),
    ...[...versions].map(([ref, version]) => [ref, { phase: "synced", version }] as const),
  ]);

  const problemOf = (ref: ObjectRef | Problem): Problem | undefined => {
    if (ref instanceof Problem) return ref;
    const look = looks.get(ref);
    if (look?.phase !== "failed") return undefined;
    const target = targetOf.get(ref);
    const verbs = target ? verbsFor(target.create !== undefined, onReleaseOf(binding, target)) : READ_VERBS;
    return ref === account
      ? accountRefusal(look.error, identity, ref)
      : streamRefusal(look.error, { identity, ref, verbs }, "watch");
  };
  // As they are now: one who comes later calls again.
  const rivals = new Map([...targetOf].map(([ref, target]) => [ref, rivalsText(rivalsAt(target, ref))]));
  const textOf = (ref: ObjectRef, version: Version | undefined, target?: Target) =>
    looks.get(ref)?.phase === "failed" ? "failed" : versionText(version, ref, target);
  const seenOf = (ref: ObjectRef) => textOf(ref, looks.get(ref)?.version);
  const sourceState = [...sourceRefs.map((ref) => seenOf(ref)), consent.state].join();
  const inputs = [binding.metadata.generation, sourceState].join();

  const shown = (ref: ObjectRef, known?: Version) => newer(looks.get(ref)?.version, known);

  return {
    members,
    unknown,
    closed,
    notes,
    pending,
    account: problemOf(account) ?? (looks.get(account)?.version ? undefined : accountNotFound(identity)),
    problemOf,
    consent,
    seen: (ref) => looks.get(ref)?.version?.resourceVersion,
    sourceState,
    owners: () => ({
      uids: new Set([...targetOf.keys()].flatMap((ref) => shown(ref)?.uid ?? [])),
      problem: [...unknown.map(({ problem }) => problem), ...members.map(({ ref }) => problemOf(ref))].find(
        (each) => each !== undefined,
      ),
    }),
    sourceUids: sourceRefs.flatMap((ref) => looks.get(ref)?.version?.uid ?? []),
    shown,
    unchanged: (target, ref, known) => {
      const version = shown(ref, known);
      return textOf(ref, version, target) === versionText(known, ref, target) ? version : undefined;
    },
    stateOf: (target, ref, record, isSynced, version) =>
      digest([
        binding.metadata.uid,
        inputs,
        seenOf(account),
        // What keeps a target from being written may be told by its metadata too.
        textOf(ref, version, isSynced ? target : undefined),
        rivals.get(ref) ?? "",
        ownText(record),
      ]),
    fingerprint: (now, known, workloadsText) =>
      digest([
        now.metadata.resourceVersion,
        workloadsText,
        inputs,
        seenOf(account),
        ...members.map(({ target, ref }) =>
          ref instanceof Problem
            ? ref.message
            : `${textOf(ref, known.get(ref) ?? looks.get(ref)?.version, target)} ${rivals.get(ref)}`,
        ),
        ...unknown.map(({ problem }) => problem.message),
        ...notes,
      ]),
  };
}

function newer(seen: Version | undefined, known: Version | undefined): Version | undefined {
  if (seen === undefined || known === undefined || seen.uid !== known.uid) return seen;
  return isOlder(seen, known) ? known : seen;
}

const rivalsText = (rivals: readonly unknown[]) => (rivals.length === 0 ? "" : JSON.stringify(rivals));

/** What a record says is ours, whatever the order in which it says so. */
function ownText({ reason: _r, message: _m, ...own }: TargetStatus): string {
  return JSON.stringify(Object.entries(own).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Short, however much it is made from: versions, names and paths, and never a value. */
const digest = (texts: readonly string[]) => createHash("sha256").update(texts.join("\n")).digest("base64");

/**
 * Where a kind has a status subresource, its generation grows with each change outside metadata and status, so a target
 * whose status alone changed need not be read again. Other kinds have no generation to go by, and of an object that the
 * binding made its metadata counts too.
 */
function versionText(version: Version | undefined, { resource }: ObjectRef, target: Target | undefined): string {
  if (version === undefined) return "none";
  const byGeneration =
    resource.hasStatus &&
    version.generation !== undefined &&
    target?.create === undefined &&
    target?.fields.every(({ path }) => !path.startsWith("metadata") && !path.startsWith("["));
  return `${version.uid}/${byGeneration ? `g${version.generation}` : version.resourceVersion}`;
}
