/**
 * Compiles a binding: finds everything that depends on its spec and on the cluster's shape, and on no value. The controller observes and writes
 * what this finds; `inlay diff`, `inlay render` and `inlay rbac` show it. src/targets/evaluate.ts computes the fields from the values.
 */
import { bindingKey, type SecretBinding } from "../api/binding.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { CollectionSubscription } from "../cache/subscription.ts";
import type { Watcher } from "../cache/watcher.ts";
import { STREAM_VERBS, streamRefusal } from "../kube/access-error.ts";
import type { Client } from "../kube/client.ts";
import type { Identity } from "../kube/identity.ts";
import { type RolloutReferences, resolveRollout } from "../rollout/discover/lookups.ts";
import type { ProducedBy } from "../sources/grant-rules.ts";
import { type GrantedSources, type GrantOptions, observeGrants } from "../sources/grants.ts";
import { type Readability, readSources, sourceRevisions } from "../sources/read.ts";
import { secretNamespaces } from "../sources/registry.ts";
import type { ListedSource, ResolveContext, ResolvedSource } from "../sources/source.ts";
import type { WriteContext } from "../targets/dependencies.ts";
import { type ReferenceContext, type References, resolveReferences } from "../targets/references.ts";
import { type SelectionResult, selectTargets } from "../targets/select.ts";
import type { LiveSource } from "../transform/live-source.ts";
import { finish, type RunSteps } from "../workqueue/cpu-scheduler.ts";

/** What a step may ask: of the controller's caches, of the user's cluster, or of files. */
export interface World extends Omit<ReferenceContext, "identity" | "accountUid" | "compositionOf"> {
  readonly watcher: Pick<Watcher, "list">;
  /** The composition that makes a binding at the moment. */
  compositionOf(binding: SecretBinding): ProducedBy;
  /** Runs work of a binding that yields where it may be interrupted. */
  stepsOf(binding: SecretBinding): RunSteps;
  /** Does work again until all lists that it asks `watcher` for are there. By default, the work is done once. */
  settled?<T>(work: () => Promise<T>): Promise<T>;
  /** How grants are compared. */
  grantOptions?(binding: SecretBinding): GrantOptions;
  /** The objects of the targets. By default, those that `watcher` shows. */
  select?(references: References): SelectionResult;
}

/** What a binding refers to, as far as no value decides it. */
export interface CompiledBinding {
  readonly key: string;
  readonly binding: SecretBinding;
  readonly identity: Identity;
  readonly references: References;
  /** The sources that are resolved. */
  readonly resolved: readonly ResolvedSource[];
  readonly selection: SelectionResult;
  readonly grants: GrantedSources;
  /** Where its workloads are; undefined without a rollout. */
  readonly rollout: RolloutReferences | undefined;
  /** For resolving more sources in the same way. */
  readonly resolving: ResolveContext;
}

/** `accountUid` is undefined until the account is known to exist. Sends requests only for discovery. Throws no problem of a single part. */
export async function compile(
  binding: SecretBinding,
  { identity, accountUid }: Pick<ResolveContext, "identity" | "accountUid">,
  world: World,
): Promise<CompiledBinding> {
  const key = bindingKey(binding);
  const { watcher } = world;
  const compositionOf = () => world.compositionOf(binding);
  const resolving = { ...world, identity, accountUid, compositionOf };
  const references = await resolveReferences(binding, resolving);
  const resolved = [...references.sources.values()].flatMap((each) => (each instanceof Problem ? [] : [each]));
  const steps = world.stepsOf(binding);
  function* look() {
    return {
      selection: world.select?.(references) ?? (yield* selectTargets(watcher, key, identity, references)),
      grants: yield* observeGrants(watcher, key, binding, resolved, compositionOf, world.grantOptions?.(binding)),
    };
  }
  const { selection, grants } = await (world.settled?.(() => steps(look())) ?? steps(look()));
  const { rollout: spec } = binding.spec;
  const subject = { ...references, objects: selection.objects };
  const rollout = spec && (await resolveRollout(binding, spec, subject, world, steps));
  return { key, binding, identity, references, resolved, selection, grants, rollout, resolving };
}

/** What lists show at the moment, for a world that watches no single objects. */
export function listedNow({ key, identity, selection, grants }: CompiledBinding, { watcher }: World): Readability {
  return {
    account: undefined,
    objects: selection.objects,
    grants,
    problemOf: (ref) => (ref instanceof Problem ? ref : undefined),
    seenVersion: () => undefined,
    listed: (source) => finish(readListed(source, listingFor(source, { identity }), watcher, key)),
  };
}

/** What to list for a source. `as`: the identity that lists, and how its requests are marked. */
export const listingFor = <As extends Pick<CollectionSubscription, "identity">>({ listed }: ListedSource, as: As) => ({
  ...as,
  labels: "",
  names: undefined,
  ...listed,
});

/** The value of a source that is a list, or why it can't be listed. */
export function* readListed(
  source: ListedSource,
  listing: CollectionSubscription,
  watcher: World["watcher"],
  key: string,
): Generator<void, LiveSource | Problem> {
  const seen = watcher.list(key, listing);
  if (seen.phase !== "failed") return yield* source.toLive(seen.members);
  return streamRefusal(seen.error, { identity: listing.identity, ref: listing, verbs: STREAM_VERBS }, "list");
}

/** The values of the sources, and what follows from them for all targets. */
export interface Values
  extends Pick<WriteContext, "sourceMismatch" | "sourceRevisions" | "parsedSources" | "secretNamespaces"> {
  readonly sources: ReadonlyMap<string, LiveSource | Problem>;
}

/** Reads each source once, unless nothing needs it. */
export async function readValues(
  { binding, references: { sources, parsedSources } }: CompiledBinding,
  client: Pick<Client, "get">,
  observed: Readability,
  needs: "nothing" | "targets" | "more",
): Promise<Values> {
  const read =
    needs === "nothing"
      ? new Map<string, LiveSource | Problem>()
      : await readSources(client, sources, observed, needs === "more");
  const { requireSame } = binding.spec;
  return {
    sources: read,
    sourceMismatch: requireSame === undefined ? undefined : sourcesDiffer(requireSame, read),
    sourceRevisions: sourceRevisions(binding.metadata.generation, read.values()),
    parsedSources,
    secretNamespaces: secretNamespaces(parsedSources),
  };
}

/**
 * Checks that all sources have the annotation with the same value, except missing optional ones. Returns undefined if
 * so, else the Problem of a source that is missing or could not be read, or Problem("SourceAnnotationMismatch").
 */
export function sourcesDiffer(key: string, sources: ReadonlyMap<string, LiveSource | Problem>): Problem | undefined {
  const byValue = new Map<string, string[]>();
  const without: string[] = [];
  for (const source of sources.values()) {
    if (source instanceof Problem) return source;
    if (source.kind === "absent") {
      if (source.policy.optional) continue;
      return source.problem;
    }
    const annotations = source.annotations.reveal();
    const value = Object.hasOwn(annotations, key) ? annotations[key] : undefined;
    if (value === undefined) without.push(source.description);
    else byValue.set(value, [...(byValue.get(value) ?? []), source.description]);
  }
  if (without.length > 0)
    return mismatch(key, `${without.join(" and ")} ${without.length > 1 ? "don't" : "doesn't"} have it`);
  if (byValue.size < 2) return undefined;
  return mismatch(key, `it differs between ${[...byValue.values()].map((same) => same.join(", ")).join(" and ")}`);
}

function mismatch(key: string, how: string): Problem {
  const message = `all sources must have the annotation ${key} with the same value: ${how}; nothing is written until they have`;
  return new Problem("SourceAnnotationMismatch", message);
}
