/** The kind of source `object`: any other object, in the binding's namespace or cluster-scoped. */
import { isClusterScoped } from "../api/binding.ts";
import { type JsonObject, type ObjectRef, parseApiVersion } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import type { Discovery } from "../kube/discovery.ts";
import type { SourceKind } from "./source.ts";
import { watchedSource } from "./watched-source.ts";

export const object: SourceKind = {
  parse({ name: called, object: at }, { namespace, policy }) {
    if (at === undefined) return undefined;
    const { apiVersion, resource: plural, name } = at;
    const isCluster = isClusterScoped(at);
    const locate = async (discovery: Pick<Discovery, "byPlural" | "kindNotFound">): Promise<ObjectRef> => {
      const resource = await discovery.byPlural(apiVersion, plural);
      if (resource === undefined) throw await discovery.kindNotFound(apiVersion, plural, "plural");
      return { resource, name, ...(resource.namespaced && { namespace }) };
    };
    return {
      name: called ?? name,
      policy,
      addressedBy: "fieldPath",
      describe: () => ({ kind: plural, name }),
      isObject: (other) =>
        other.resource.group === parseApiVersion(apiVersion).group &&
        other.resource.plural === plural &&
        other.namespace === (isCluster ? undefined : namespace) &&
        other.name === name,
      locate,
      resolve: async (context) => {
        const ref = await locate(context.discovery);
        if (ref.resource.namespaced === isCluster) {
          const actual = ref.resource.namespaced ? "Namespaced" : "Cluster";
          const message = `the kind of source ${called ?? name} has scope ${actual}; set scope: ${actual} in the source`;
          throw new Problem("InvalidBinding", message);
        }
        return watchedSource(ref, policy, context, false, (read) => ({
          kind: "object",
          object: new SecretValue<JsonObject>(read),
        }));
      },
    };
  },
};
