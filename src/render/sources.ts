/** Reads the sources of a binding from the objects in the files, with the grants that are there. */
import type { SecretBinding } from "../api/binding.ts";
import { isSameKind } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import { notGranted, type ProducedBy } from "../sources/grant-rules.ts";
import { type GrantedSources, observeGrants } from "../sources/grants.ts";
import { readSources } from "../sources/read.ts";
import type { WatchedSource } from "../sources/source.ts";
import type { References } from "../targets/references.ts";
import type { LiveSource } from "../transform/live-source.ts";
import type { FileCluster } from "./file-cluster.ts";
import type { Inputs } from "./inputs.ts";

export interface ReadSources {
  readonly sources: ReadonlyMap<string, LiveSource | Problem>;
  readonly notes: readonly string[];
}

/** Without any SecretGrant in the files, all are read, and a note says which need one. */
export async function sourcesOf(
  binding: SecretBinding,
  { sources }: References,
  { watcher, client }: FileCluster,
  { objects }: Inputs,
  producedBy: ProducedBy,
): Promise<ReadSources> {
  const watched = [...sources.values()].flatMap((each): WatchedSource[] =>
    !(each instanceof Error) && each.watched !== undefined ? [each] : [],
  );
  const { namespace = "", name } = binding.metadata;
  const observed = observeGrants(watcher, `${namespace}/${name}`, binding, watched, () => producedBy);
  const hasGrants = objects.some(({ object }) =>
    isSameKind(object, { apiVersion: "inlay.dev/v1alpha1", kind: "SecretGrant" }),
  );
  const grants: GrantedSources = hasGrants ? observed : { ...observed, grantsFor: () => undefined };
  const notes = watched
    .filter(({ needsGrant }) => needsGrant && !hasGrants)
    .map(
      ({ watched: ref, policy }) => `no grants are in the files: ${notGranted(observed.asker(), ref, policy).message}`,
    );
  const readability = {
    account: undefined,
    objects: [],
    grants,
    problemOf: () => undefined,
    seenVersion: () => undefined,
  };
  return { sources: await readSources(client, sources, readability, true), notes };
}
