/** Reads the sources of a binding from the objects in the files, subject to the SecretGrants in the files. */
import type { SecretBinding } from "../api/binding.ts";
import { isSameKind, type ObjectRef } from "../apimachinery/objects.ts";
import { type Advice, type MissingPolicy, Problem, reasonOf } from "../apimachinery/problem.ts";
import { CONTROLLER } from "../kube/identity.ts";
import { notGranted, type ProducedBy } from "../sources/grant-rules.ts";
import { type GrantedSources, observeGrants } from "../sources/grants.ts";
import { readSources } from "../sources/read.ts";
import type { ListedSource, ResolvedSource } from "../sources/source.ts";
import type { References } from "../targets/references.ts";
import type { LiveSource } from "../transform/live-source.ts";
import { finish } from "../workqueue/cpu-scheduler.ts";
import type { FileCluster } from "./file-cluster.ts";
import type { FileStores } from "./file-stores.ts";
import type { Inputs } from "./inputs.ts";

export interface ReadSources {
  readonly sources: ReadonlyMap<string, LiveSource | Problem>;
  readonly notes: readonly string[];
  /** The SecretGrants that it needs, if the files contain no grants at all. */
  readonly grants: readonly Advice[];
  /** Problems of sources in stores, with their places in the binding. */
  readonly problems: readonly { readonly place: string; readonly problem: Problem }[];
}

/** Where sources are read from. */
interface SourceFiles {
  readonly cluster: FileCluster;
  readonly stores: FileStores;
  readonly inputs: Inputs;
}

/** If the files contain no SecretGrant, all sources are read, and `grants` lists the missing grants. */
export async function sourcesOf(
  binding: SecretBinding,
  { parsedSources, sources }: References,
  { cluster: { watcher, client }, stores, inputs: { objects, isCluster } }: SourceFiles,
  producedBy: ProducedBy,
): Promise<ReadSources> {
  const resolved = [...sources.values()].flatMap((each): ResolvedSource[] => (each instanceof Problem ? [] : [each]));
  const { namespace = "", name } = binding.metadata;
  const observed = finish(observeGrants(watcher, `${namespace}/${name}`, binding, resolved, () => producedBy));
  const isGrant = { apiVersion: "inlay.dev/v1alpha1", kind: "SecretGrant" };
  const hasGrants = isCluster || objects.some(({ object }) => isSameKind(object, isGrant));
  const grants: GrantedSources = hasGrants ? observed : { ...observed, grantsFor: () => undefined };
  const needed = (ref: ObjectRef, policy: MissingPolicy) =>
    reasonOf(notGranted(observed.asker(), ref, policy).within("the files contain no grants"));
  const neededGrants = resolved.flatMap(({ grantedObject, policy }) =>
    grantedObject === undefined || hasGrants ? [] : needed(grantedObject, policy),
  );
  const readability = {
    account: undefined,
    objects: [],
    grants,
    problemOf: () => undefined,
    seenVersion: () => undefined,
    listed: (source: ListedSource) => {
      const listing = { ...source.listed, identity: CONTROLLER, labels: "", names: undefined };
      return finish(source.toLive(watcher.list(`${namespace}/${name}`, listing).members));
    },
  };
  const problems = parsedSources.flatMap(({ name: called, store }, position) => {
    const problem = store && sources.get(called);
    return problem instanceof Problem ? [{ place: `spec.sources[${position}]`, problem }] : [];
  });
  const read = await readSources(client, sources, readability, true);
  return { sources: read, notes: [...stores.notes], grants: neededGrants, problems };
}
