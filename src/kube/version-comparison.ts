/**
 * The versions of a kind come in; which of them drop fields of others, what that means for an object, and how to say so goes out.
 * Pure.
 */
import { apiVersionOf, describeObject, type KubeObject, type ObjectRef } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { Problem } from "../apimachinery/problem.ts";
import { droppedPaths, lacksFields, type VersionSchema } from "../transform/dropped-fields.ts";

export interface Version extends VersionSchema {
  name: string;
}

/** What a write has to know of the versions that a kind is served in. */
export interface Versions {
  /** By version, all that have fields which a write in it drops; one that drops nothing is left out. */
  dropping: ReadonlyMap<string, { own: Version; others: readonly Version[] }>;
  /** By version, those of which the stored version lacks fields. */
  unstored: ReadonlyMap<string, Version>;
  /** One that drops nothing. */
  whole: string | undefined;
  /** The one that objects are stored in, if it is known. */
  stored: Version | undefined;
  /** Whether it is known that they convert by `None`. */
  isKnown: boolean;
}

export interface Crd extends KubeObject {
  spec: {
    conversion?: { strategy?: string };
    preserveUnknownFields?: boolean;
    versions: { name: string; served: boolean; storage: boolean; schema?: { openAPIV3Schema?: OpenApiSchema } }[];
  };
}

/** So many paths are named in a message. */
const MAX_NAMED = 5;

export const NOTHING_DROPS: Versions = {
  dropping: new Map(),
  unstored: new Map(),
  whole: undefined,
  stored: undefined,
  isKnown: true,
};

/** What a CustomResourceDefinition says. */
export function versionsIn({ spec }: Crd): Versions {
  if ((spec.conversion?.strategy ?? "None") !== "None" || spec.preserveUnknownFields) return NOTHING_DROPS;
  const all = spec.versions.map(({ name, schema, served, storage }) => {
    return { name, root: schema?.openAPIV3Schema ?? {}, resolve: () => undefined, served, storage };
  });
  const served = all.filter((each) => each.served);
  const stored = all.find(({ storage }) => storage);
  return compared(served, stored, true);
}

/** Of versions that are served. `isKnown`: they convert by `None`. */
export function compared(all: readonly Version[], stored: Version | undefined, isKnown: boolean): Versions {
  const drops = (by: Version | undefined, other: Version) => by !== undefined && by !== other && lacksFields(by, other);
  const found = all.map((own) => ({ own, others: all.filter((other) => drops(own, other) || drops(stored, other)) }));
  const unstored = new Map(all.flatMap((own) => (drops(stored, own) ? [[own.name, own] as const] : [])));
  const dropping = new Map(found.filter(({ others }) => others.length > 0).map((each) => [each.own.name, each]));
  return { dropping, unstored, whole: all.find(({ name }) => !dropping.has(name))?.name, stored, isKnown };
}

/** The paths that a write in version `own` would drop, of those that the object has as versions show it. */
export function lostIn(own: Version, views: ReadonlyMap<Version, KubeObject>, stored: Version | undefined): string[] {
  const drops = (by: Version | undefined, other: Version, object: KubeObject) =>
    by === undefined || by === other ? [] : [...droppedPaths(object, by, other)];
  const lost = [...views].flatMap(([other, object]) => [...drops(own, other, object), ...drops(stored, other, object)]);
  return [...new Set(lost)];
}

/** Why nothing is written to an object that would lose fields. */
export function dropsFields(
  { resource, namespace, name = "" }: Omit<ObjectRef, "name"> & { name?: string },
  lost: readonly string[],
  better: Version | undefined,
  isKnown: boolean,
): Problem {
  const what = `${describeObject(resource.kind, namespace, name)} has ${named(lost)}`;
  const why = `which any write through ${apiVersionOf(resource)} removes: the versions of the kind don't convert`;
  const names = better && `name apiVersion: ${apiVersionOf({ ...resource, version: better.name })} in the binding`;
  const then = names ?? "no version that is served and stored has all of them";
  const unknown = isKnown
    ? ""
    : `. If a webhook converts them, let Inlay see that: grant its account get on customresourcedefinitions/${resource.plural}.${resource.group}`;
  const message = `${what}, ${why}. Nothing was written; ${then}, or take the fields out of the object${unknown}`;
  return new Problem("VersionDropsFields", message);
}

/** The paths of what is about to be written in a version that the stored one drops. */
export function unstoredIn(written: readonly object[], version: string, { unstored, stored }: Versions): string[] {
  const own = unstored.get(version);
  return own === undefined || stored === undefined
    ? []
    : written.flatMap((each) => [...droppedPaths(each, stored, own)]);
}

/** Why fields are not written that the API server would not store. */
export function notStored(
  { resource }: Pick<ObjectRef, "resource">,
  lost: readonly string[],
  stored: Version,
): Problem {
  const storage = apiVersionOf({ ...resource, version: stored.name });
  const what = `${named(lost)}: the API server stores the kind as ${storage}, which lacks that, and its versions don't convert`;
  return new Problem(
    "VersionDropsFields",
    `${what}. Nothing was written; take the fields out of the binding, or store another version`,
  );
}

function named(paths: readonly string[]): string {
  const more = paths.length > MAX_NAMED ? ` and ${paths.length - MAX_NAMED} more` : "";
  return `${paths.slice(0, MAX_NAMED).join(", ")}${more}`;
}
