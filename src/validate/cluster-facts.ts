/** Asks a cluster, as the user, what the check of files needs: kinds with their schemas, grants, connections, and whether selectors match. */
import { bindingKey, type SecretBinding } from "../api/binding.ts";
import { at, fieldsAt, listAt } from "../apimachinery/fields.ts";
import { isObject } from "../apimachinery/json.ts";
import { apiVersionOf, type JsonObject, type KubeObject, type Resource } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { NAMESPACES, SECRET_GRANTS } from "../apimachinery/resources.ts";
import type { LiveLists } from "../explain/live-lists.ts";
import type { Reader } from "../explain/reading.ts";
import { attempt } from "../kube/access-error.ts";
import type { Discovery } from "../kube/discovery.ts";
import { CONTROLLER } from "../kube/identity.ts";
import type { Schemas } from "../kube/schemas.ts";
import type { AnalysedBinding, Analysis } from "../render/analysis.ts";
import type { Surroundings } from "../render/inputs.ts";
import { type ServedKinds, servedKinds } from "../render/kinds.ts";
import { connectionKinds } from "../sources/registry.ts";
import { selectTargets } from "../targets/select.ts";
import { finish } from "../workqueue/cpu-scheduler.ts";

interface ClusterReaders {
  readonly reader: Pick<Reader, "list">;
  readonly lists: LiveLists;
  readonly discovery: Pick<Discovery, "byKindAsNamed" | "byPlural">;
  readonly schemas: Pick<Schemas, "of">;
}

/** What a cluster knows about the objects in the files. */
export interface ClusterFacts {
  readonly surroundings: NonNullable<Surroundings["cluster"]>;
  readonly notes: readonly string[];
  /** Whether a target of a binding, by its position, selects nothing in the cluster. */
  emptyInCluster(binding: AnalysedBinding, at: number): boolean;
}

/** `objects` are Inlay's own in the files. `analysisIn` analyses the files. */
export async function askCluster(
  { reader, lists, discovery, schemas }: ClusterReaders,
  objects: readonly JsonObject[],
  analysisIn: (known: Surroundings) => Promise<Analysis>,
): Promise<ClusterFacts> {
  const kinds = await kindsIn(discovery, schemas, objects);
  const read = await Promise.all(
    [SECRET_GRANTS, NAMESPACES, ...connectionKinds().map(({ resource }) => resource)].map((resource) =>
      reader.list({ resource, form: "whole" }, (object) => object as KubeObject & JsonObject),
    ),
  );
  const unreadable = read.flatMap((each) => (each.state === "Unreadable" ? [each.message] : []));
  const found = read.flatMap((each) => (each.state === "Found" ? each.it : []));
  const surroundings = { kinds, objects: found, isWhole: unreadable.length === 0 };
  const analysis = await analysisIn({ cluster: surroundings });
  const empty = await emptySelections(lists, analysis.bindings);
  return {
    surroundings,
    notes: unreadable.map((why) => `${why}, so connections, grants and namespaces are checked only in the files`),
    emptyInCluster: ({ each }, position) => empty.has(keyOf(each.binding, position)),
  };
}

/** The targets whose selections have no object, of those that the user may list. */
async function emptySelections(lists: LiveLists, bindings: readonly AnalysedBinding[]): Promise<Set<string>> {
  return lists.settled(() => {
    const empty = new Set<string>();
    for (const { each, references } of bindings) {
      const { objects, unresolved } = finish(selectTargets(lists, "validate/validate", CONTROLLER, references));
      const known = new Set([...objects, ...unresolved].map(({ target }) => target));
      for (const [position, { target }] of references.targets.entries())
        if (!known.has(target)) empty.add(keyOf(each.binding, position));
    }
    return empty;
  });
}

/** The kinds that targets, sources and claims have. A kind whose schema can't be read is known without it. */
async function kindsIn(
  discovery: ClusterReaders["discovery"],
  schemas: ClusterReaders["schemas"],
  objects: readonly JsonObject[],
): Promise<ServedKinds> {
  const named = objects.flatMap(specsIn).flatMap((spec) => {
    const targets = [...listAt(spec, "targets"), at(spec, "for")].filter(isObject);
    const sources = listAt(spec, "sources").map((each) => at(each, "object"));
    return [
      ...targets.map(({ apiVersion, kind }) => discovery.byKindAsNamed(String(apiVersion), String(kind))),
      ...sources
        .filter(isObject)
        .map(({ apiVersion, resource }) => discovery.byPlural(String(apiVersion), String(resource))),
    ];
  });
  const found = await Promise.all(named.map(attempt));
  const resources = new Map(
    found.flatMap((each) => (each === undefined || each instanceof Problem ? [] : [[keyOfKind(each), each]])),
  );
  const ofKind = async ([key, resource]: [string, Resource]) => [key, await attempt(schemas.of(resource))] as const;
  const known = new Map(await Promise.all([...resources].map(ofKind)));
  return servedKinds([...resources.values()], (resource) => {
    const schema = known.get(keyOfKind(resource));
    return schema instanceof Problem ? undefined : schema;
  });
}

const keyOfKind = (resource: Resource) => `${apiVersionOf(resource)} ${resource.kind}`;
const keyOf = (binding: SecretBinding, position: number) => `${bindingKey(binding)} ${position}`;

/** The spec of a SecretBinding, or of a BindingComposition with those of its bindings. */
function specsIn(object: JsonObject): JsonObject[] {
  const spec = fieldsAt(object, "spec");
  const bases = listAt(spec, "bindings").map((each) => at(each, "base", "spec"));
  return [spec, ...bases.filter(isObject)] as JsonObject[];
}
