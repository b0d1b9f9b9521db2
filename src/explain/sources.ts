/** A binding comes in; each of its sources goes out, with what of it is used and whether that is there. Never a value. */

import { type SecretBinding, type Source, sourceName } from "../api/binding.ts";
import type { SecretGrant } from "../api/secret-grant.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import type { KubeObject, ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { CONFIG_MAPS, NAMESPACES, SECRET_GRANTS, SECRETS } from "../apimachinery/resources.ts";
import { attempt } from "../kube/access-error.ts";
import { ALL_KEYS, type ReadTemplate, usesBySource } from "../sources/uses.ts";
import type { SourceSeen } from "./explanation.ts";
import { foundOr, type Reading } from "./reading.ts";
import { served, type Tools } from "./tools.ts";

type Labels = Readonly<Record<string, string>>;

/** Whether a grant lets an account of a namespace read an object, as far as its labels are known. */
export type LetsRead = (
  spec: SecretGrant["spec"],
  asker: { namespace: string; account: string },
  asked: ObjectRef,
  labels: { namespace: Labels | undefined; object: Labels | undefined },
) => boolean;

type LookingTools = Tools & { letsRead: LetsRead };

/** What is kept of a source: nothing of what it holds. */
interface Kept {
  resourceVersion: string;
  labels: Labels;
  has: ReadonlySet<string>;
}

export function lookAtSources(
  tools: LookingTools,
  binding: SecretBinding,
  readTemplate: ReadTemplate,
): Promise<SourceSeen[]> {
  const uses = usesBySource(binding, readTemplate);
  return Promise.all(
    binding.spec.sources.map((source) => lookAt(tools, binding, source, uses.get(sourceName(source)) ?? [])),
  );
}

async function lookAt(
  tools: LookingTools,
  binding: SecretBinding,
  source: Source,
  uses: readonly string[],
): Promise<SourceSeen> {
  const own = binding.metadata.namespace as string;
  const ref = await refOf(tools, source, own);
  const named = source.secret ?? source.configMap ?? source.object;
  const base = { source: sourceName(source), name: named.name, optional: source.optional ?? false };
  if (ref instanceof Problem) {
    const kind = source.object?.resource ?? "";
    return { ...base, kind, state: "Unreadable", message: ref.message, uses: uses.map((of) => ({ of })) };
  }
  const isElsewhere = !source.object && ref.namespace !== own;
  const [reading, grants] = await Promise.all([
    tools.reader.get(ref, keeping(uses, source), "whole"),
    isElsewhere ? grantsIn(tools, ref.namespace as string) : undefined,
  ]);
  const kept = reading.state === "Found" ? reading.it : undefined;
  return {
    ...base,
    kind: ref.resource.kind,
    ...(ref.namespace !== undefined && { namespace: ref.namespace }),
    state: reading.state,
    ...(reading.state === "Unreadable" && { message: reading.message }),
    ...(kept && { resourceVersion: kept.resourceVersion }),
    uses: uses.map((of) => ({ of, ...(kept && { present: kept.has.has(of) }) })),
    ...(grants && { grants: await consent(tools, binding, ref, grants, kept?.labels) }),
  };
}

async function refOf({ discovery }: Tools, source: Source, own: string): Promise<ObjectRef | Problem> {
  if (source.secret) return { resource: SECRETS, namespace: own, ...source.secret };
  if (source.configMap) return { resource: CONFIG_MAPS, namespace: own, ...source.configMap };
  const { apiVersion, resource: plural, name } = source.object;
  const resource = await served(apiVersion, plural, discovery.byPlural(apiVersion, plural));
  if (resource instanceof Problem) return resource;
  return { resource, name, ...(resource.namespaced && { namespace: own }) };
}

function keeping(uses: readonly string[], source: Source): (object: KubeObject) => Kept {
  return (object) => ({
    resourceVersion: object.metadata.resourceVersion,
    labels: object.metadata.labels ?? {},
    has: new Set(uses.filter((use) => (source.object ? hasField(object, use) : hasKey(object, use)))),
  });
}

function hasKey(object: KubeObject, key: string): boolean {
  const keys = [object["data"], object["binaryData"]].flatMap((data) => Object.keys(data ?? {}));
  return key === ALL_KEYS ? keys.length > 0 : keys.includes(key);
}

function hasField(object: KubeObject, path: string): boolean {
  try {
    const value = path === ALL_KEYS ? undefined : FieldPath.parse(path).get(object);
    return value !== undefined && value !== null;
  } catch (error) {
    if (error instanceof Problem) return false;
    throw error;
  }
}

type Grant = { name: string; spec: SecretGrant["spec"] };

/** The SecretGrants of a namespace. */
export function grantsIn({ reader }: Tools, namespace: string): Promise<Reading<Grant[]>> {
  return reader.list({ resource: SECRET_GRANTS, namespace, form: "whole" }, (object) => ({
    name: object.metadata.name,
    spec: (object as unknown as SecretGrant).spec,
  }));
}

async function consent(
  { reader, letsRead }: LookingTools,
  { metadata, spec }: SecretBinding,
  asked: ObjectRef,
  grants: Reading<Grant[]>,
  object: Labels | undefined,
): Promise<NonNullable<SourceSeen["grants"]>> {
  if (grants.state === "Unreadable") return { state: "Unreadable", message: grants.message, by: [] };
  const own = metadata.namespace as string;
  const home = await attempt(reader.get({ resource: NAMESPACES, name: own }, (each) => each.metadata.labels ?? {}));
  if (home instanceof Problem) return { state: "Unreadable", message: home.message, by: [] };
  const labels = { namespace: foundOr<Labels | undefined>(home, undefined), object };
  const asker = { namespace: own, account: spec.serviceAccountName };
  const by = foundOr(grants, []).filter((grant) => letsRead(grant.spec, asker, asked, labels));
  if (by.length > 0) return { state: "Found", by: by.map(({ name }) => name) };
  const isSure = labels.namespace !== undefined && labels.object !== undefined;
  const message = "no SecretGrant there lets this binding read it, as far as you may see labels";
  return isSure ? { state: "NotFound", by: [] } : { state: "Unreadable", message, by: [] };
}
