/** Lists the permissions of a binding's account, by the function that lists them after a denied request. */
import { fieldsOfTarget, type SecretBinding } from "../api/binding.ts";
import type { Installation } from "../api/installation.ts";
import { describeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { NAMESPACES, SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import { type RequiredPermission, requiredAccess } from "../controllers/binding/required-access.ts";
import { STREAM_VERBS } from "../kube/access-error.ts";
import type { FileCluster } from "../render/file-cluster.ts";
import { compileFile, fileWorld } from "../render/file-world.ts";
import type { Inputs } from "../render/inputs.ts";
import { secretNamespaces } from "../sources/registry.ts";
import type { ParsedSource } from "../sources/source.ts";
import { isSelection, type References } from "../targets/references.ts";
import { noSelection, type SelectedObject } from "../targets/select.ts";
import { checkFields } from "../transform/plan.ts";
import { assertAcknowledged, readableCopies } from "../transform/readable-copies.ts";
import { type KindSearch, withSourceKinds } from "./kinds.ts";

/** In place of the namespaces that a selector finds in the cluster. No namespace has this name. */
export const ALL_NAMESPACES = "*";

/** A problem with its place in the binding. */
interface PlacedProblem {
  readonly place: string;
  readonly problem: Problem;
}

interface AccessServices {
  readonly kinds: KindSearch;
  readonly cluster: FileCluster;
  readonly inputs: Pick<Inputs, "stores">;
  readonly installation: Installation;
}

export async function bindingAccess(
  binding: SecretBinding,
  services: AccessServices,
): Promise<{ permissions: RequiredPermission[]; problems: PlacedProblem[] }> {
  const { cluster, installation, inputs } = services;
  const { namespace = "" } = binding.metadata;
  const account = { resource: SERVICE_ACCOUNTS, namespace, name: binding.spec.serviceAccountName };
  const world = {
    ...fileWorld(cluster, inputs, installation),
    discovery: withSourceKinds(services.kinds, binding),
    // All objects that a target may have, whatever the files contain.
    select: ({ targets }: References) => ({ ...noSelection(), objects: targets.flatMap(objectsOf) }),
  };
  const compiled = await compileFile(binding, world);
  const { references, selection, rollout: found } = compiled;
  const permissions = requiredAccess({
    binding,
    account,
    references,
    objects: selection.objects,
    collections: [],
    lookups: found?.lookups ?? [],
    connections: world.connections,
    problems: [],
  });
  const ofRollout = [found?.problem, ...(found?.closed ?? []).map((each) => each.problem)];
  return {
    permissions: [...permissions, ...namespaceAccess(references)],
    problems: [
      ...references.parsedSources.flatMap((source, at) =>
        placed(`spec.sources[${at}]`, [references.sources.get(source.name), unknownConnection(source, cluster)]),
      ),
      ...references.targets.flatMap((each, at) =>
        placed(`spec.targets[${at}]`, [each.at, unacknowledged(binding, references, each, installation)]),
      ),
      ...placed("spec.rollout", ofRollout),
    ],
  };
}

/** The objects that a target names, or one without a name for all objects that it may select. */
function objectsOf({ target, at }: References["targets"][number]): SelectedObject[] {
  if (at instanceof Problem || !isSelection(at)) return [{ target, ref: at, selected: false }];
  const places = "labels" in at.namespaces ? [ALL_NAMESPACES] : at.namespaces;
  const name = typeof at.objects === "string" ? at.objects : "";
  return places.map((namespace) => {
    const ref: ObjectRef = { resource: at.resource, name, ...(namespace !== undefined && { namespace }) };
    return { target, ref, selected: true };
  });
}

/** In the controller, it is one of the collections that selectors watch. */
function namespaceAccess({ targets }: References): RequiredPermission[] {
  const selects = targets.some(({ at }) => !(at instanceof Problem) && isSelection(at) && "labels" in at.namespaces);
  return selects ? [{ ref: { resource: NAMESPACES }, verbs: STREAM_VERBS, why: "namespaceSelector" }] : [];
}

const placed = (place: string, found: readonly unknown[]): PlacedProblem[] =>
  found.flatMap((problem) => (problem instanceof Problem ? [{ place, problem }] : []));

/** The copies that the configuration requires to be acknowledged. */
function unacknowledged(
  binding: SecretBinding,
  { parsedSources }: References,
  each: References["targets"][number],
  installation: Installation,
): Problem | undefined {
  const names = parsedSources.map(({ name }) => name);
  const secrets = secretNamespaces(parsedSources);
  const found = attemptSync(() => {
    const recipes = checkFields(fieldsOfTarget(each.target), names);
    for (const { ref } of objectsOf(each))
      if (!(ref instanceof Problem))
        assertAcknowledged(binding, readableCopies(binding, secrets, recipes, ref), installation);
  });
  // Mistakes in fields need no permission.
  return found?.reason === "NotAcknowledged" ? found : undefined;
}

/** Without the connection, it is unknown whether the account logs in. */
function unknownConnection({ store }: ParsedSource, cluster: FileCluster): Problem | undefined {
  const ref = store?.access && store.connection?.ref;
  if (ref === undefined || cluster.find(ref) !== undefined) return undefined;
  const called = describeObject(ref.resource.kind, ref.namespace, ref.name);
  const message = `the ${called} is unknown, so its login is too; add it with -f, or use --cluster to read it from your cluster`;
  return new Problem("ConnectionNotFound", message);
}
