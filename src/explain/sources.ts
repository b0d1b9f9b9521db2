/** Explains each source of a binding: which keys are used, and whether they exist. Contains no values. */
import type { Condition, SecretBinding } from "../api/binding.ts";
import { COMPOSITION_LABEL } from "../api/composed.ts";
import type { SecretGrant } from "../api/secret-grant.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import type { KubeObject, ObjectRef } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { NAMESPACES, SECRET_GRANTS } from "../apimachinery/resources.ts";
import { attempt } from "../kube/access-error.ts";
import { allows, dependsOnNamespace, homeOf, type ProducedBy, verbFor } from "../sources/grant-rules.ts";
import { statusesOf, versionsOf } from "../sources/provider-class.ts";
import { parseSources } from "../sources/registry.ts";
import type { ParsedSource } from "../sources/source.ts";
import { ALL_KEYS, filterIn, type ReadTemplate, usesBySource } from "../sources/uses.ts";
import { finish } from "../workqueue/cpu-scheduler.ts";
import type { SourceExplanation } from "./explanation.ts";
import { foundOr, type Reading, seenOf } from "./reading.ts";
import type { Tools } from "./tools.ts";

type Labels = Readonly<Record<string, string>>;

/** The status of the object through which a store is read. */
interface ConnectionStatus {
  conditions?: readonly Condition[];
  /** Of the server. */
  version?: string;
}

/** The kept part of a source, without its values. */
interface Kept {
  resourceVersion: string;
  labels: Labels;
  has: ReadonlySet<string>;
  /** Undefined for other objects, whose status may have values. */
  connection: ConnectionStatus | undefined;
}

const NO_OBJECT = new Problem("Unavailable", "it is not an object in this cluster; only the controller reads it");

export function explainSources(
  tools: Tools,
  binding: SecretBinding,
  readTemplate: ReadTemplate,
): Promise<SourceExplanation[]> {
  const uses = usesBySource(binding, readTemplate);
  return Promise.all(
    parseSources(binding).map((source) => explainSource(tools, binding, source, uses.get(source.name) ?? [])),
  );
}

async function explainSource(
  tools: Tools,
  binding: SecretBinding,
  source: ParsedSource,
  uses: readonly string[],
): Promise<SourceExplanation> {
  const { store, data, providerClass } = source;
  if (providerClass !== undefined) return explainProviderClass(tools, source, providerClass, uses);
  const ref = store?.connection?.ref ?? (await (source.locate ? attempt(source.locate(tools.discovery)) : NO_OBJECT));
  const { kind, name } = source.describe();
  const base = { source: source.name, name, optional: source.policy.optional };
  if (ref instanceof Problem) {
    const unread = { state: "Unreadable" as const, message: ref.message, uses: uses.map((key) => ({ key })) };
    return { ...base, kind, ...unread, ...(store && { store: storeOf(store) }) };
  }
  const { needsGrant = false } = data ?? store?.connection ?? {};
  const [reading, grants] = await Promise.all([
    tools.reader.get(ref, keeping(uses, source, await keyFinder(uses)), "whole"),
    needsGrant ? grantsIn(tools, ref.namespace as string) : undefined,
  ]);
  const kept = reading.state === "Found" ? reading.it : undefined;
  return {
    ...base,
    kind: ref.resource.kind,
    ...(ref.namespace !== undefined && { namespace: ref.namespace }),
    ...seenOf(reading),
    ...(kept && { resourceVersion: kept.resourceVersion }),
    // The store is not asked, so it is unknown which keys exist.
    uses: uses.map((key) => ({ key, ...(kept && store === undefined && { present: kept.has.has(key) }) })),
    ...(store && { store: storeOf(store, kept?.connection) }),
    ...(grants && { grants: await grantsFor(tools, binding, ref, grants, kept?.labels) }),
  };
}

function storeOf(
  { product, reads }: NonNullable<ParsedSource["store"]>,
  { conditions = [], version }: ConnectionStatus = {},
): NonNullable<SourceExplanation["store"]> {
  const ready = conditions.find(({ type }) => type === "Ready");
  return {
    product,
    reads,
    ...(ready && { ready: { status: ready.status, reason: ready.reason, message: ready.message } }),
    ...(version !== undefined && { version }),
  };
}

/** Uses the versions of its objects that pods report, which show that it exists. */
async function explainProviderClass(
  { discovery, reader }: Tools,
  source: ParsedSource,
  { namespace, name }: NonNullable<ParsedSource["providerClass"]>,
  uses: readonly string[],
): Promise<SourceExplanation> {
  const { kind } = source.describe();
  const base = { source: source.name, kind, namespace, name, optional: source.policy.optional };
  const resource = await attempt(statusesOf(discovery));
  if (resource instanceof Problem)
    return { ...base, state: "Unreadable", message: resource.message, uses: uses.map((key) => ({ key })) };
  const reading = await reader.list({ resource, namespace, form: "whole" }, (each) => each);
  if (reading.state !== "Found") return { ...base, ...seenOf(reading), uses: uses.map((key) => ({ key })) };
  const { versions } = finish(versionsOf(name, reading.it));
  const hasKey = await keyFinder(uses);
  const none = { state: "NotFound" as const, message: "no pod that mounts it reports a version" };
  return {
    ...base,
    ...(versions.size === 0 ? none : { state: "Found" }),
    uses: uses.map((key) => ({ key, present: hasKey([...versions.keys()], key) })),
  };
}

type KeyFinder = (keys: readonly string[], use: string) => boolean;

function keeping(
  uses: readonly string[],
  { addressedBy, store }: ParsedSource,
  hasKey: KeyFinder,
): (object: KubeObject) => Kept {
  return (object) => {
    const keys = [object["data"], object["binaryData"]].flatMap((data) => Object.keys(data ?? {}));
    const isThere = (use: string) => (addressedBy === "fieldPath" ? hasField(object, use) : hasKey(keys, use));
    const { resourceVersion, labels = {} } = object.metadata;
    const connection = store && (object as { status?: ConnectionStatus }).status;
    return { resourceVersion, labels, has: new Set(uses.filter(isThere)), connection };
  };
}

/** Returns a function that finds out whether a use has keys. Loads the matcher of regular expressions only if a field has any. */
async function keyFinder(uses: readonly string[]): Promise<KeyFinder> {
  const finds: KeyFinder = (keys, use) => (use === ALL_KEYS ? keys.length > 0 : keys.includes(use));
  const filters = new Map(uses.flatMap((use) => (use === ALL_KEYS ? [] : ([[use, filterIn(use)]] as const))));
  if ([...filters.values()].every((filter) => filter === undefined)) return finds;
  const { keyFilter, newFilterEffort } = await import("../transform/key-filter.ts");
  return (keys, use) => {
    const filter = filters.get(use);
    if (filter === undefined) return finds(keys, use);
    // The binding's condition reports an invalid filter.
    return attemptSync(() => keys.some(keyFilter(filter, "from", newFilterEffort()))) === true;
  };
}

function hasField(object: KubeObject, path: string): boolean {
  const value = path === ALL_KEYS ? undefined : attemptSync(() => FieldPath.parse(path).get(object));
  return value !== undefined && value !== null && !(value instanceof Problem);
}

type Grant = { name: string; spec: SecretGrant["spec"] };

/** The SecretGrants of a namespace. */
export function grantsIn({ reader }: Tools, namespace: string): Promise<Reading<Grant[]>> {
  return reader.list({ resource: SECRET_GRANTS, namespace, form: "whole" }, (object) => ({
    name: object.metadata.name,
    spec: (object as unknown as SecretGrant).spec,
  }));
}

/** The grants that allow a binding. Compositions are not evaluated here, so the message says if the answer relies on the label. */
export function byLabelAtMost(
  label: string | undefined,
  allowing: (composition: ProducedBy) => string[],
): SourceExplanation["grants"] {
  const names = allowing("none");
  if (names.length > 0) return { state: "Found", names };
  const byLabel = label === undefined ? [] : allowing({ by: label });
  if (byLabel.length === 0) return undefined;
  const message = `if BindingComposition ${label} creates this binding, as its label ${COMPOSITION_LABEL} says`;
  return { state: "Found", message, names: byLabel };
}

async function grantsFor(
  { reader }: Tools,
  { metadata, spec }: SecretBinding,
  asked: ObjectRef,
  grants: Reading<Grant[]>,
  object: Labels | undefined,
): Promise<NonNullable<SourceExplanation["grants"]>> {
  if (grants.state === "Unreadable") return { ...seenOf(grants), names: [] };
  const own = metadata.namespace as string;
  const all = foundOr(grants, []);
  const isByNamespace = all.some(({ spec }) => dependsOnNamespace(spec));
  const home = isByNamespace ? await reader.get({ resource: NAMESPACES, name: own }, homeOf) : undefined;
  const known = { namespace: home?.state === "Found" ? home.it : undefined, object };
  const allowing = (composition: ProducedBy) => {
    const asker = { namespace: own, account: spec.serviceAccountName, composition };
    return all.flatMap(({ name, spec }) => (allows(spec, asker, asked, known) ? [name] : []));
  };
  const found = byLabelAtMost(metadata.labels?.[COMPOSITION_LABEL], allowing);
  if (found !== undefined) return found;
  const isSure = (home === undefined || home.state === "Found") && object !== undefined;
  const message = `no SecretGrant there permits this binding to ${verbFor(asked.resource)} it, as far as you may read labels`;
  return isSure ? { state: "NotFound", names: [] } : { state: "Unreadable", message, names: [] };
}
