/** Reads the live claims of the compositions in files, and the kinds that they have. */
import type { BindingComposition } from "../api/composition.ts";
import { apiVersionOf, type JsonObject, type KubeObject, type Resource } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { BINDING_COMPOSITIONS, NAMESPACES } from "../apimachinery/resources.ts";
import { Reader } from "../explain/reading.ts";
import { attempt } from "../kube/access-error.ts";
import type { Inputs } from "../render/inputs.ts";
import { type ServedKinds, servedKinds } from "../render/kinds.ts";
import { ownResource } from "./own-objects.ts";
import type { Readers } from "./readers.ts";

interface LiveClaims {
  readonly kinds: ServedKinds;
  readonly objects: readonly (KubeObject & JsonObject)[];
  readonly notes: readonly string[];
  /** Whether `objects` has all claims of the composition. */
  areKnown(composition: BindingComposition): boolean;
}

export async function claimsIn({ transport, discovery }: Readers, { objects }: Inputs): Promise<LiveClaims> {
  const compositions = objects.filter(({ object }) => ownResource(object) === BINDING_COMPOSITIONS);
  const reader = new Reader(transport);
  const resources: Resource[] = [];
  const notes: string[] = [];
  const found: (KubeObject & JsonObject)[] = [];
  const listed = new Set<string>();
  const list = async (resource: Resource) => {
    const scope = { resource, namespace: undefined, form: "whole" as const };
    const seen = await reader.list(scope, (object) => object as KubeObject & JsonObject);
    if (seen.state === "Found") {
      found.push(...seen.it);
      listed.add(idOf(apiVersionOf(resource), resource.kind));
    } else if (seen.state === "Unreadable") notes.push(`${seen.message}, so bindings of compositions may be missing`);
  };
  const wanted = new Map(
    compositions.map(({ object }) => {
      const { apiVersion, kind } = (object as unknown as BindingComposition).spec.for;
      return [idOf(apiVersion, kind), { apiVersion, kind }] as const;
    }),
  );
  for (const { apiVersion, kind } of wanted.values()) {
    const resource = await attempt(discovery.byKindAsNamed(apiVersion, kind));
    if (resource instanceof Problem) notes.push(resource.message);
    else if (resource === undefined) notes.push(`the cluster serves no ${kind} in ${apiVersion}, so it has no claims`);
    else {
      resources.push(resource);
      await list(resource);
    }
  }
  if (wanted.size > 0 && !wanted.has(idOf("v1", NAMESPACES.kind))) await list(NAMESPACES);
  return {
    kinds: servedKinds(resources),
    objects: found,
    notes,
    areKnown: ({ spec }) => listed.has(idOf(spec.for.apiVersion, spec.for.kind)),
  };
}

const idOf = (apiVersion: string, kind: string): string => `${apiVersion} ${kind}`;
