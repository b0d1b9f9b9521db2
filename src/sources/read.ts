/** Reads the sources of a binding, each once, so that all fields use values of one state. */
import type { ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { Client } from "../kube/client.ts";
import type { LiveSource } from "../transform/live-source.ts";
import { asWithdrawn, type GrantedSources, readGranted } from "./grants.ts";
import type { ListedSource, ResolvedSource } from "./source.ts";

/** Facts about the binding before its sources are read. */
export interface Readability {
  /** The reason why the binding's account can't be used. */
  account: Problem | undefined;
  /** The objects that its targets resolve to. */
  objects: readonly { ref: ObjectRef | Problem }[];
  /** The SecretGrants that apply to the binding. */
  grants: GrantedSources;
  problemOf(ref: ObjectRef | Problem): Problem | undefined;
  /** The version of an object that its watch shows. */
  seenVersion(ref: ObjectRef): string | undefined;
  /** A source as its watch shows it, or the reason why there is no watch. */
  listed(source: ListedSource): LiveSource | Problem;
}

/** Replaces sources if no target can be written. Each target has its own problem, which is reported first. */
const NOT_READ = new Problem("Unavailable", "the source was not read");

/**
 * By name: each source as it was read, or the reason why it was not. Unless `isForMore`, sources are not read if no target can be written.
 * `client` reads grants.
 */
export async function readSources(
  client: Pick<Client, "get">,
  sources: ReadonlyMap<string, ResolvedSource | Problem>,
  observed: Readability,
  isForMore: boolean,
): Promise<Map<string, LiveSource | Problem>> {
  const { account, objects, grants, problemOf } = observed;
  const isBlocked = !isForMore && objects.length > 0 && objects.every(({ ref }) => problemOf(ref) !== undefined);
  const read = async (source: ResolvedSource | Problem): Promise<LiveSource | Problem> => {
    if (account !== undefined) return account;
    if (source instanceof Problem) return source;
    const problem = (source.watched && problemOf(source.watched)) ?? (isBlocked ? NOT_READ : undefined);
    if (problem !== undefined) return problem;
    if (source.listed) return observed.listed(source);
    const { watched, grantedObject } = source;
    const seen = watched && observed.seenVersion(watched);
    if (grantedObject === undefined || grants.grantsFor(grantedObject) === undefined) return source.read(seen);
    return asWithdrawn(await readGranted(client, grants, grantedObject, source, seen), grants);
  };
  const named = async ([name, source]: readonly [string, ResolvedSource | Problem]) => {
    const result = await read(source);
    return [name, result instanceof Problem && result !== account ? result.with({ source: name }) : result] as const;
  };
  return new Map(await Promise.all([...sources].map(named)));
}

/** The versions of a binding's spec and of its sources as they were read. A watch may show older versions. */
export function sourceRevisions(generation: number | undefined, sources: Iterable<LiveSource | Problem>): string {
  const versions = [...sources].map((source) => (source instanceof Problem ? source.reason : source.version));
  return [generation, ...versions].join();
}
