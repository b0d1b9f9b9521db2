/** What all kinds of source that are Kubernetes objects share: how they are watched and read, and what a missing object means. */
import { isObject } from "../apimachinery/json.ts";
import { describeObject, idOf, type JsonObject, type KubeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { attemptSync, type MissingPolicy, MissingValue, Problem } from "../apimachinery/problem.ts";
import { CONFIG_MAPS, SECRETS } from "../apimachinery/resources.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { attempt, READ_VERBS } from "../kube/access-error.ts";
import { getIfExists } from "../kube/get.ts";
import { absentSource, type LiveSource } from "../transform/live-source.ts";
import { assertFewKeys } from "./many-keys.ts";
import type { ParseContext, ParsedSource, ResolveContext, WatchedSource } from "./source.ts";

type StoredObject = KubeObject & JsonObject;
type Entry = readonly [key: string, bytes: SecretValue<Uint8Array>];
type Data = Extract<LiveSource, { kind: "data" }>;
type Content =
  | Pick<Data, "kind" | "isSecret" | "tokenOf" | "data" | "type" | "binary">
  | Pick<Extract<LiveSource, { kind: "object" }>, "kind" | "object">;

export function watchedSource(
  ref: ObjectRef,
  policy: MissingPolicy,
  { client, identity }: Pick<ResolveContext, "client" | "identity">,
  needsGrant: boolean,
  contentOf: (object: StoredObject) => Content,
): WatchedSource {
  const { resource, namespace = "", name } = ref;
  const description = describeObject(resource.kind, namespace, name);
  const fromObject = (object: KubeObject | undefined): LiveSource => {
    if (object === undefined) {
      const message = `there is no ${description}; create it, or correct its kind or name in spec.sources`;
      return absentSource(description, new MissingValue("SourceNotFound", message, policy));
    }
    const { uid, resourceVersion, annotations = {}, labels = {} } = object.metadata;
    const texts = { annotations: new SecretValue(annotations), labels: new SecretValue(labels) };
    const version = `${uid}/${resourceVersion}`;
    return { description, version, resourceVersion, policy, ...texts, ...contentOf(object as StoredObject) };
  };
  return {
    place: [resource.group, resource.kind, namespace, name],
    description,
    policy,
    watched: ref,
    ...(needsGrant && { grantedObject: ref }),
    fromObject,
    read: async (seen) => {
      const read = await attempt(getIfExists<KubeObject>({ client, identity, ref, verbs: READ_VERBS }, seen, "values"));
      return read instanceof Problem ? read : attemptSync(() => fromObject(read));
    },
  };
}

/** A Secret or ConfigMap, in the binding's namespace or another one. */
export function dataSource(
  kind: "Secret" | "ConfigMap",
  name: string | undefined,
  named: { name: string; namespace?: string; granted?: boolean },
  { namespace: own, policy }: ParseContext,
  contentOf: (object: StoredObject) => Pick<Data, "data" | "type" | "binary">,
): ParsedSource {
  const isSecret = kind === "Secret";
  const resource = isSecret ? SECRETS : CONFIG_MAPS;
  const namespace = named.namespace ?? own;
  const needsGrant = named.granted === true || namespace !== own;
  const data = { kind, namespace, name: named.name, needsGrant };
  const ref: ObjectRef = { resource, namespace, name: named.name };
  return {
    name: name ?? data.name,
    policy,
    addressedBy: "key",
    data,
    ...(needsGrant && { grantedAs: describeObject(kind, namespace, named.name) }),
    ...(isSecret && { secretIn: data.namespace }),
    describe: () => data,
    isObject: (other) => idOf(other) === idOf(ref),
    locate: async () => ref,
    resolve: async (context) => {
      const closed = context.installation.closedNamespace(named.namespace);
      if (closed !== undefined) throw closed;
      return watchedSource(ref, policy, context, needsGrant, (object) => {
        const count = sizeOf(object["data"]) + sizeOf(object["binaryData"]);
        assertFewKeys(describeObject(kind, ref.namespace, ref.name), count, context.installation.limits);
        return { kind: "data", isSecret, ...tokenOf(object), ...contentOf(object) };
      });
    },
  };
}

const sizeOf = (field: unknown): number => (isObject(field) ? Object.keys(field).length : 0);

function tokenOf({ type, metadata }: StoredObject): { tokenOf?: string } {
  const account = metadata.annotations?.["kubernetes.io/service-account.name"];
  return type === "kubernetes.io/service-account-token" && account !== undefined ? { tokenOf: account } : {};
}

/** The entries of a field whose values are strings in that encoding. */
export function entries(field: unknown, encoding: "base64" | "utf8"): Entry[] {
  const texts = Object.entries((field ?? {}) as Record<string, string>);
  return texts.map(([key, text]) => [key, new SecretValue(Buffer.from(text, encoding))]);
}
