/** Compares the versions of a kind: which ones drop fields of others, and what an object would lose. Pure. */
import { apiVersionOf, type KubeObject, type ObjectRef, type Resource } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { Problem } from "../apimachinery/problem.ts";
import { droppedPaths, lacksFields, type VersionSchema } from "../transform/dropped-fields.ts";

export interface Version extends VersionSchema {
  name: string;
}

/** What a writer must know about the served versions of a kind. */
export interface Versions {
  /** The versions in which a write drops fields of other versions. */
  dropping: ReadonlyMap<string, { own: Version; others: readonly Version[] }>;
  /** The versions with fields that the stored version lacks. */
  unstored: ReadonlyMap<string, Version>;
  /** A version that drops nothing. */
  whole: string | undefined;
  /** The version in which objects are stored, if known. */
  stored: Version | undefined;
  /** Whether the conversion strategy is known to be `None`. */
  isKnown: boolean;
}

export interface Crd extends KubeObject {
  spec: {
    conversion?: { strategy?: string };
    preserveUnknownFields?: boolean;
    versions: { name: string; served: boolean; storage: boolean; schema?: { openAPIV3Schema?: OpenApiSchema } }[];
  };
}

/** The limit of paths in a message. */
const MAX_NAMED = 5;

export const NOTHING_DROPS: Versions = {
  dropping: new Map(),
  unstored: new Map(),
  whole: undefined,
  stored: undefined,
  isKnown: true,
};

/** Compares the versions of a CustomResourceDefinition. */
export function versionsIn({ spec }: Crd): Versions {
  if ((spec.conversion?.strategy ?? "None") !== "None" || spec.preserveUnknownFields) return NOTHING_DROPS;
  const all = spec.versions.map(({ name, schema, served, storage }) => {
    return { name, root: schema?.openAPIV3Schema ?? {}, resolve: () => undefined, served, storage };
  });
  const served = all.filter((each) => each.served);
  const stored = all.find(({ storage }) => storage);
  return compared(served, stored, true);
}

/** Compares served versions. `isKnown`: their conversion strategy is known to be `None`. */
export function compared(all: readonly Version[], stored: Version | undefined, isKnown: boolean): Versions {
  const drops = (by: Version | undefined, other: Version) => by !== undefined && by !== other && lacksFields(by, other);
  const found = all.map((own) => ({ own, others: all.filter((other) => drops(own, other) || drops(stored, other)) }));
  const unstored = new Map(all.flatMap((own) => (drops(stored, own) ? [[own.name, own] as const] : [])));
  const dropping = new Map(found.filter(({ others }) => others.length > 0).map((each) => [each.own.name, each]));
  return { dropping, unstored, whole: all.find(({ name }) => !dropping.has(name))?.name, stored, isKnown };
}

/** The paths of the object that a write in version `own` would drop. `views`: the object in several versions. */
export function lostIn(own: Version, views: ReadonlyMap<Version, KubeObject>, stored: Version | undefined): string[] {
  const drops = (by: Version | undefined, other: Version, object: KubeObject) =>
    by === undefined || by === other ? [] : [...droppedPaths(object, by, other)];
  const lost = [...views].flatMap(([other, object]) => [...drops(own, other, object), ...drops(stored, other, object)]);
  return [...new Set(lost)];
}

/**
 * The problem of a write that would drop fields of the object. `lacking`: the names of the versions that have to get the
 * fields if no version has them all.
 */
export function dropsFields(
  { resource }: Pick<ObjectRef, "resource">,
  lost: readonly string[],
  better: Version | undefined,
  lacking: readonly string[],
  isKnown: boolean,
): Problem {
  const what = `the object has ${named(lost)}`;
  const why = `which any write in ${apiVersionOf(resource)} removes, because the versions of the kind have no conversion`;
  const then = better
    ? `name apiVersion: ${apiVersionOf({ ...resource, version: better.name })} in the binding`
    : addTo(resource, lacking);
  const unknown = isKnown
    ? ""
    : `. If a webhook converts the versions, allow Inlay's own account to get customresourcedefinitions/${resource.plural}.${resource.group}`;
  const message = `${what}, ${why}. Nothing was written; ${then}, or remove the fields from the object${unknown}`;
  return new Problem("VersionDropsFields", message);
}

/** Another storage version is no advice: with the next write of an object, the API server drops what that one lacks. */
function addTo(resource: Resource, versions: readonly string[]): string {
  const named = versions.map((version) => apiVersionOf({ ...resource, version })).join(" and ");
  return `add the fields to the schema of ${named} in the CRD`;
}

/** The written paths that the stored version drops. */
export function unstoredIn(written: readonly object[], version: string, { unstored, stored }: Versions): string[] {
  const own = unstored.get(version);
  return own === undefined || stored === undefined
    ? []
    : written.flatMap((each) => [...droppedPaths(each, stored, own)]);
}

/** The problem of a write of fields that the stored version lacks. */
export function notStored(
  { resource }: Pick<ObjectRef, "resource">,
  lost: readonly string[],
  stored: Version,
): Problem {
  const storage = apiVersionOf({ ...resource, version: stored.name });
  const what = `${named(lost)}: the API server stores the kind as ${storage}, which lacks these fields`;
  const then = `remove the fields from the binding, or ${addTo(resource, [stored.name])}`;
  return new Problem("VersionDropsFields", `${what}. Nothing was written; ${then}`);
}

function named(paths: readonly string[]): string {
  const more = paths.length > MAX_NAMED ? ` and ${paths.length - MAX_NAMED} more` : "";
  return `${paths.slice(0, MAX_NAMED).join(", ")}${more}`;
}
