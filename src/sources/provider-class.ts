/**
 * The kind of source `providerClass`: a SecretProviderClass of the Secrets Store CSI driver, by the versions that the driver reports for
 * the pods that mount it. The mounted values are only known to those pods.
 */
import { createHash } from "node:crypto";
import { at, listAt } from "../apimachinery/fields.ts";
import type { Resource } from "../apimachinery/objects.ts";
import { type MissingPolicy, MissingValue } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import type { ListedObject } from "../cache/watcher.ts";
import { kindNotFound } from "../kube/access-error.ts";
import type { Discovery } from "../kube/discovery.ts";
import type { LiveSource } from "../transform/live-source.ts";
import { PROVIDER_CLASS } from "../workloads/provider-class.ts";
import type { SourceKind } from "./source.ts";

const STATUSES = "secretproviderclasspodstatuses";
const CLASS_NAME = ["status", "secretProviderClassName"];
const CLASS_FIELD = CLASS_NAME.join(".");
const OBJECTS = ["status", "objects"];

export const providerClass: SourceKind = {
  parse({ name: called, providerClass: at }, { namespace, policy }) {
    if (at === undefined) return undefined;
    const { kind } = PROVIDER_CLASS;
    const { name } = at;
    return {
      name: called ?? name,
      policy,
      addressedBy: "key",
      providerClass: { namespace, name },
      describe: () => ({ kind, name }),
      isObject: () => false,
      resolve: async ({ discovery }) => {
        const resource = await statusesOf(discovery);
        const description = `${kind} ${namespace}/${name}`;
        return {
          place: [resource.group, kind, namespace, name],
          description,
          policy,
          listed: {
            resource,
            namespace,
            fields: [CLASS_FIELD, OBJECTS.join(".")],
            having: { field: CLASS_FIELD, text: name },
          },
          toLive: (members) => liveClass(name, description, policy, members),
        };
      },
    };
  },
};

/** The kind of the driver's reports. Throws Problem. */
export async function statusesOf(discovery: Pick<Discovery, "byPlural">): Promise<Resource> {
  const { apiVersion } = PROVIDER_CLASS;
  const resource = await discovery.byPlural(apiVersion, STATUSES);
  if (resource === undefined) throw kindNotFound(apiVersion, STATUSES);
  return resource;
}

/** The versions of each object that pods have, by the id of the object. */
export function versionsOf(name: string, statuses: readonly unknown[]): Map<string, Set<string>> {
  const versions = new Map<string, Set<string>>();
  for (const each of statuses) {
    if (at(each, ...CLASS_NAME) !== name) continue;
    for (const object of listAt(each, ...OBJECTS)) {
      const [id, version] = [at(object, "id"), at(object, "version")];
      if (typeof id !== "string" || typeof version !== "string" || id === "") continue;
      versions.set(id, (versions.get(id) ?? new Set()).add(version));
    }
  }
  return versions;
}

/** All known versions of a class, in an order that does not depend on the pods. */
function liveClass(
  name: string,
  description: string,
  policy: MissingPolicy,
  members: readonly ListedObject[],
): LiveSource {
  const versions = versionsOf(
    name,
    members.map(({ version }) => version.fields),
  );
  if (versions.size === 0) {
    const message = `no pod mounts the ${description}, or its driver reports no versions; the binding waits for one`;
    const problem = new MissingValue("SourceNotFound", message, policy);
    return { kind: "absent", description, version: "none", policy, problem, isUnmounted: true };
  }
  const texts = [...versions].sort(([a], [b]) => (a < b ? -1 : 1)).map(([id, all]) => [id, [...all].sort().join("\n")]);
  const data = new Map(texts.map(([id = "", text = ""]) => [id, new SecretValue<Uint8Array>(Buffer.from(text))]));
  const version = createHash("sha256").update(JSON.stringify(texts)).digest("base64url");
  const none = new SecretValue({});
  return {
    kind: "data",
    isVersions: true,
    isSecret: false,
    description,
    version,
    policy,
    annotations: none,
    labels: none,
    data,
  };
}
