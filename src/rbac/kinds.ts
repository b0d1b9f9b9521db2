/**
 * Finds kinds for permissions. A wrong plural or scope would grant the wrong permission, so a kind counts as unknown unless a CRD, the
 * cluster or Kubernetes itself defines it.
 */
import type { SecretBinding } from "../api/binding.ts";
import { parseApiVersion, type Resource } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { Discovery } from "../kube/discovery.ts";
import type { Kinds } from "../render/kinds.ts";
import { knownWorkload } from "../workloads/workload.ts";

/** What the resolution of references asks. */
export type KindSearch = Pick<Discovery, "byKind" | "byPlural" | "kindNotFound">;

/** The groups of Kubernetes and of Inlay, whose plurals and scopes are fixed. */
const BUILT_IN = new Set([
  ...["", "apps", "batch", "autoscaling", "policy", "inlay.dev"],
  ...["networking", "storage", "rbac.authorization", "scheduling", "node", "coordination", "discovery"].map(
    ofKubernetes,
  ),
  ...["admissionregistration", "apiextensions", "apiregistration", "certificates", "events"].map(ofKubernetes),
  ofKubernetes("flowcontrol.apiserver"),
]);
const CLUSTER_SCOPED = "Cluster";

function ofKubernetes(name: string): string {
  return `${name}.k8s.io`;
}

/** The kinds of the files. */
export function fileKinds(kinds: Kinds): KindSearch {
  const isKnown = (apiVersion: string, kind: string) => {
    const { group } = parseApiVersion(apiVersion);
    const isWorkload = knownWorkload(kind)?.apiVersion === apiVersion;
    return isWorkload || BUILT_IN.has(group) || kinds.known(apiVersion, kind) !== undefined;
  };
  return {
    byKind: async (apiVersion, kind) => (isKnown(apiVersion, kind) ? kinds.resourceOf(apiVersion, kind) : undefined),
    byPlural: async (apiVersion, plural) => {
      const found = kinds.byPlural(apiVersion, plural);
      return found && isKnown(apiVersion, found.kind) ? found : undefined;
    },
    kindNotFound: async (apiVersion, kind) =>
      new Problem(
        "KindNotFound",
        `the kind ${kind} of ${apiVersion} is unknown; add its CRD with --crds, or use --cluster to read it from your cluster`,
      ),
  };
}

/** A source names the plural and the scope of its kind, so it needs no CRD. */
export function withSourceKinds(kinds: KindSearch, { spec }: Pick<SecretBinding, "spec">): KindSearch {
  return {
    byKind: (apiVersion, kind) => kinds.byKind(apiVersion, kind),
    kindNotFound: (apiVersion, kind, by) => kinds.kindNotFound(apiVersion, kind, by),
    byPlural: async (apiVersion, plural) => {
      const found = await kinds.byPlural(apiVersion, plural);
      if (found !== undefined) return found;
      const named = spec.sources.find(({ object: at }) => at?.apiVersion === apiVersion && at.resource === plural);
      const isClass = spec.sources.some(({ providerClass }) => providerClass !== undefined);
      if (named === undefined && !isClass) return undefined;
      return resourceOf(apiVersion, plural, named?.object?.scope !== CLUSTER_SCOPED);
    },
  };
}

const resourceOf = (apiVersion: string, plural: string, namespaced: boolean): Resource => ({
  ...parseApiVersion(apiVersion),
  kind: plural,
  plural,
  namespaced,
  hasStatus: false,
});

/** The kind, or throws Problem("KindNotFound"). */
export async function kindOf(kinds: KindSearch, apiVersion: string, kind: string): Promise<Resource> {
  const found = await kinds.byKind(apiVersion, kind);
  if (found === undefined) throw await kinds.kindNotFound(apiVersion, kind);
  return found;
}
