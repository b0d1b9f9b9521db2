/** Lists all kinds of source, defines those of objects of the cluster, and parses and resolves spec.sources of a binding. */
import { isClusterScoped, type SecretBinding } from "../api/binding.ts";
import { assertWithin } from "../api/scope.ts";
import {
  apiVersionOf,
  isSameKind,
  type JsonObject,
  type KubeObject,
  type ObjectRef,
  parseApiVersion,
} from "../apimachinery/objects.ts";
import { type MissingPolicy, Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { attempt } from "../kube/access-error.ts";
import type { Discovery } from "../kube/discovery.ts";
import { providerClass } from "./provider-class.ts";
import type { ConnectionKind, ParsedSource, ResolveContext, ResolvedSource, SourceKind } from "./source.ts";
import { vault } from "./vault.ts";
import { dataSource, entries, watchedSource } from "./watched-source.ts";

const secret: SourceKind = {
  parse: ({ name, secret: at }, binding) =>
    at &&
    dataSource("Secret", name, at, binding, ({ data, type }) => ({
      data: new Map(entries(data, "base64")),
      ...(typeof type === "string" && { type }),
    })),
};

const object: SourceKind = {
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

const configMap: SourceKind = {
  parse: ({ name, configMap: at }, binding) =>
    at &&
    dataSource("ConfigMap", name, at, binding, ({ data, binaryData }) => {
      const binary = entries(binaryData, "base64");
      return {
        data: new Map([...entries(data, "utf8"), ...binary]),
        ...(binary.length > 0 && { binary: new Set(binary.map(([key]) => key)) }),
      };
    }),
};

/** Add a line for each new kind. A test may add its own kind while it runs. */
// biome-ignore format: one line for each kind
export const SOURCE_KINDS: SourceKind[] = [
  secret,
  configMap,
  object,
  vault,
  providerClass,
];

/** The sources of a binding, in the order of the spec. A source of an unknown kind can't be resolved. */
export function parseSources({ metadata, spec }: SecretBinding): ParsedSource[] {
  const namespace = metadata.namespace as string;
  return spec.sources.map((entry, position) => {
    const policy = { onMissing: entry.onMissing ?? spec.defaults.onMissing, optional: entry.optional ?? false };
    for (const kind of SOURCE_KINDS) {
      const parsed = kind.parse(entry, { namespace, policy });
      if (parsed !== undefined) return parsed;
    }
    return unknownSource(entry.name ?? "", policy, `spec.sources[${position}]`);
  });
}

/** The kinds of object through which stores are read. */
export const connectionKinds = (): ConnectionKind[] => SOURCE_KINDS.flatMap(({ connection }) => connection ?? []);

/** Undefined for an object of another kind. */
export const connectionKindOf = (object: Pick<KubeObject, "apiVersion" | "kind">): ConnectionKind | undefined =>
  connectionKinds().find(({ resource }) =>
    isSameKind(object, { apiVersion: apiVersionOf(resource), kind: resource.kind }),
  );

/** By name: each source as it can be read, or the reason why it can't. Throws no problem of a single source. */
export async function resolveSources(
  sources: readonly ParsedSource[],
  context: ResolveContext,
): Promise<Map<string, ResolvedSource | Problem>> {
  const resolve = async (source: ParsedSource) => {
    const resolved = await source.resolve(context);
    const object = resolved.watched ?? resolved.grantedObject;
    if (object !== undefined) assertWithin(context.installation.scope, object);
    return resolved;
  };
  const named = async (source: ParsedSource) => {
    const { name } = source;
    const resolved = await attempt(resolve(source));
    return [name, resolved instanceof Problem ? resolved.with({ source: name }) : resolved] as const;
  };
  return new Map(await Promise.all(sources.map(named)));
}

/** The namespaces of the Secrets that a binding reads, by the name of the source. */
export function secretNamespaces(sources: readonly ParsedSource[]): Map<string, string> {
  return new Map(sources.flatMap(({ name, secretIn }) => (secretIn === undefined ? [] : [[name, secretIn]])));
}

/** The CRD of the cluster is newer than this version of Inlay. */
function unknownSource(name: string, policy: MissingPolicy, at: string): ParsedSource {
  const what = "this version of Inlay does not know this kind of source; upgrade Inlay";
  return {
    name,
    policy,
    addressedBy: "key",
    describe: () => ({ kind: "", name }),
    isObject: () => false,
    resolve: async () => {
      throw new Problem("InvalidBinding", { at: [at], what });
    },
  };
}
