/**
 * The kind of source `providerClass`: a SecretProviderClass of the Secrets Store CSI driver, by the versions that the driver reports for
 * the pods that mount it. The mounted values are only known to those pods.
 */
import { createHash } from "node:crypto";
import type { Limits } from "../api/limits.ts";
import { at, listAt } from "../apimachinery/fields.ts";
import type { Resource } from "../apimachinery/objects.ts";
import { attemptSync, type MissingPolicy, MissingValue, Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import type { ListedObject } from "../cache/watcher.ts";
import { kindNotFound } from "../kube/access-error.ts";
import type { Discovery } from "../kube/discovery.ts";
import { absentSource, type LiveSource } from "../transform/live-source.ts";
import { PROVIDER_CLASS } from "../workloads/provider-class.ts";
import { assertFewKeys } from "./many-keys.ts";
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
      resolve: async ({ discovery, installation }) => {
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
          toLive: (members) => liveClass(name, description, policy, members, installation.limits),
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

/** How many reports and objects in them are read without an interruption. */
const STEP = 256;

/** The versions of each object that pods have, by the id of the object. Stops when there are more than `most`. */
export function* versionsOf(
  name: string,
  statuses: Iterable<unknown>,
  most = Number.POSITIVE_INFINITY,
): Generator<void, { versions: Map<string, Set<string>>; count: number }> {
  const versions = new Map<string, Set<string>>();
  let [read, count] = [0, 0];
  for (const each of statuses) {
    if (++read % STEP === 0) yield;
    if (at(each, ...CLASS_NAME) !== name) continue;
    for (const object of listAt(each, ...OBJECTS)) {
      if (++read % STEP === 0) yield;
      const [id, version] = [at(object, "id"), at(object, "version")];
      if (typeof id !== "string" || typeof version !== "string" || id === "") continue;
      const known = versions.get(id) ?? new Set();
      if (!known.has(version)) count++;
      versions.set(id, known.add(version));
      if (count > most) return { versions, count };
    }
  }
  return { versions, count };
}

/** All known versions of a class, in an order that does not depend on the pods. */
function* liveClass(
  name: string,
  description: string,
  policy: MissingPolicy,
  members: readonly ListedObject[],
  limits: Limits,
): Generator<void, LiveSource | Problem> {
  if (members.some(({ version }) => version.isTooLarge)) {
    const message = `the driver's reports about the pods of the namespace are too large together for Inlay to read all versions of the ${description}; mount fewer objects, or run fewer pods that mount them`;
    return new Problem("TooLarge", message);
  }
  const fields = members.map(({ version }) => version.fields);
  const { versions, count } = yield* versionsOf(name, fields, limits.keysPerSource);
  const tooMany = attemptSync(() => assertFewKeys(description, count, limits));
  if (tooMany instanceof Problem) return tooMany;
  if (versions.size === 0) {
    const message = `no pod mounts the ${description}, or its driver reports no versions; the binding waits for one`;
    return { ...absentSource(description, new MissingValue("SourceNotFound", message, policy)), isUnmounted: true };
  }
  const texts = [...versions].sort(([a], [b]) => (a < b ? -1 : 1)).map(([id, all]) => [id, [...all].sort().join("\n")]);
  const data = new Map(texts.map(([id = "", text = ""]) => [id, new SecretValue<Uint8Array>(Buffer.from(text))]));
  const version = createHash("sha256").update(JSON.stringify(texts)).digest("base64url");
  const none = new SecretValue({});
  const common = { description, version, policy, annotations: none, labels: none };
  return { kind: "data", isVersions: true, isSecret: false, ...common, data };
}
