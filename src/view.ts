/** What a binding depends on comes in; how far the streams that carry it are, and what they show, goes out. */
import { CONTROLLER, type Identity } from "./kube/identity.ts";
import { accountNotFound, accountRefusal, READ_VERBS, refusal, verbsFor } from "./kube/refusal.ts";
import { onReleaseOf, type SecretBinding, type Target } from "./model/binding.ts";
import type { ObjectRef } from "./model/kube-object.ts";
import { Problem } from "./model/problem.ts";
import type { References } from "./resolve/references.ts";
import type { ReflectorState } from "./watch/reflector.ts";
import type { Streams, Version } from "./watch/streams.ts";

export interface View {
  /** Some stream has not brought its first list yet; the binding is called again when it has. */
  pending: boolean;
  /** Why nothing can be done as the binding's account at all. */
  account: Problem | undefined;
  /** Why an object can't be worked with: it could not be resolved, or can't be watched. */
  problemOf(ref: ObjectRef | Problem): Problem | undefined;
  /** The version of an object that its stream shows. */
  seen(ref: ObjectRef): string | undefined;
  /** The uids of the objects that values come from. */
  sourceUids: string[];
  /** All that the outcome depends on, with the versions that writes of ours have made since. */
  fingerprint(binding: SecretBinding, written: ReadonlyMap<ObjectRef, Version>): string;
}

export function viewOf(
  streams: Streams,
  key: string,
  binding: SecretBinding,
  identity: Identity,
  references: References,
  rivalsAt: (ref: ObjectRef) => unknown,
): View {
  const { serviceAccount, sources, targets } = references;
  const isRef = (ref: ObjectRef | Problem): ref is ObjectRef => !(ref instanceof Problem);
  const sourceRefs = [...sources.values()].filter(isRef);
  const targetRefs = targets.map(({ ref }) => ref).filter(isRef);
  const interests = [
    { identity: CONTROLLER, ref: serviceAccount },
    ...[...sourceRefs, ...targetRefs].map((ref) => ({ identity, ref })),
  ];
  streams.observe(key, interests);
  const looks = new Map(interests.map((interest) => [interest.ref, streams.look(key, interest)]));

  const problemOf = (ref: ObjectRef | Problem): Problem | undefined => {
    if (ref instanceof Problem) return ref;
    const look = looks.get(ref);
    if (look?.phase !== "failed") return undefined;
    const target = targetOf.get(ref);
    const verbs = target ? verbsFor(target.create !== undefined, onReleaseOf(binding, target)) : READ_VERBS;
    const problem =
      ref === serviceAccount
        ? accountRefusal(look.error, identity, ref)
        : refusal(look.error, { identity, ref, verbs }, "watch");
    // The stream goes on asking, and calls when it may.
    return look.error.status === 403 ? new Problem(problem.reason, problem.message, "event") : problem;
  };
  // As they are now: one who comes later calls again.
  const rivals = targetRefs.map((ref) => JSON.stringify(rivalsAt(ref)));
  const targetOf = new Map(targets.map(({ target, ref }) => [ref, target]));
  const textOf = (ref: ObjectRef, look: (ReflectorState & { version?: Version }) | undefined, written?: Version) =>
    look?.phase === "failed" ? "failed" : versionText(written ?? look?.version, ref, targetOf.get(ref));

  return {
    pending: [...looks.values()].some(({ phase }) => phase === "pending"),
    account: problemOf(serviceAccount) ?? (looks.get(serviceAccount)?.version ? undefined : accountNotFound(identity)),
    problemOf,
    seen: (ref) => looks.get(ref)?.version?.resourceVersion,
    sourceUids: sourceRefs.flatMap((ref) => looks.get(ref)?.version?.uid ?? []),
    fingerprint: (now, written) =>
      [
        now.metadata.resourceVersion,
        ...[...looks].map(([ref, look]) => textOf(ref, look, written.get(ref))),
        ...rivals,
      ].join(),
  };
}

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
