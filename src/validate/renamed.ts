/**
 * Warns of names that no object in the files has, although kustomize has renamed an object of that name: by a prefix, a suffix, or the hash of
 * a generator. An object may also be elsewhere, so a name that nothing resembles is right. Pure.
 */
import { type Field, fieldsOfTarget, sourcesIn } from "../api/binding.ts";
import { listAt, at as valueIn } from "../apimachinery/fields.ts";
import { describeObject, type JsonObject, type ObjectMeta, type ObjectRef } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import {
  CONFIG_MAPS,
  ROLE_BINDINGS,
  ROLES,
  SECRET_GRANTS,
  SECRETS,
  SERVICE_ACCOUNTS,
} from "../apimachinery/resources.ts";
import type { AnalysedBinding, Analysis } from "../render/analysis.ts";
import type { Mistake } from "../render/documents.ts";
import { type InputObject, type Inputs, mistakeAt } from "../render/inputs.ts";
import { isOwn } from "../render/own-kinds.ts";
import { connectionKindOf, connectionKinds } from "../sources/registry.ts";
import { isSelection, watchedSource } from "../targets/references.ts";
import { compileTemplate } from "../transform/template.ts";
import { groupKindOf } from "../workloads/group-kinds.ts";
import { namedWorkloads } from "./named-workloads.ts";

const CLASS = "secrets-store.csi.x-k8s.io/v1";
/** The letters of kustomize's hashes. */
const HASH = /-[bcdfghkmt2456789]{10}$/;
const GENERATED: readonly string[] = [SECRETS.kind, CONFIG_MAPS.kind];
const COMPONENT = "kustomize has probably renamed it: use the component deploy/kustomize";
const ADD_KIND = `${COMPONENT}, and add the kind to your own nameReference if the component does not have it`;
const KEEP_ACCOUNT =
  "kustomize has probably renamed it, and Inlay impersonates the account of the old name: keep ServiceAccounts out of the kustomization that has namePrefix or nameSuffix";

/** The page on kustomize keeps them out of a kustomization that renames objects. */
const KEPT: readonly string[] = [SERVICE_ACCOUNTS.kind, ROLES.kind, ROLE_BINDINGS.kind];

/** Finds the new name of an object that is not in the files. `owner` is the object that refers to it. */
type FindRenamed = (ref: ObjectRef, owner: Pick<ObjectMeta, "namespace" | "name">) => string | undefined;

export function renamedThings({ inputs, bindings }: Analysis): Mistake[] {
  const find = finderIn(inputs);
  return [
    ...bindings.flatMap((each) => [...inBinding(each, inputs, find), ...namesOfSources(each)]),
    ...inputs.objects.flatMap((each) => inObject(each, find)),
  ];
}

function finderIn({ objects }: Inputs): FindRenamed {
  const alike = Map.groupBy(objects, ({ object }) => `${groupKindOf(object)}/${object.metadata.namespace ?? ""}`);
  const movable = objects.filter(
    ({ object }) => object.metadata.namespace !== undefined && !KEPT.includes(object.kind),
  );
  const beside = Map.groupBy(movable, ({ object }) => object.metadata.namespace);
  return ({ resource: { group, kind }, namespace = "", name: old }, owner) => {
    const known = (alike.get(`${group}/${kind}/${namespace}`) ?? []).map(({ object }) => object.metadata.name);
    if (known.includes(old)) return undefined;
    const others = (beside.get(owner.namespace) ?? []).map(({ object }) => bareName(object.metadata.name, object.kind));
    return known.find((name) => isRenamed(name, old, [owner.name, ...others], kind));
  };
}

const bareName = (name: string, kind: string): string => (GENERATED.includes(kind) ? name.replace(HASH, "") : name);

/** Whether `name` is `old` with a hash, or with a prefix and a suffix that all objects beside it have too: two names may be alike by chance. */
function isRenamed(name: string, old: string, others: readonly string[], kind: string): boolean {
  const bare = bareName(name, kind);
  if (bare === old) return name !== old;
  for (let at = bare.indexOf(old); at >= 0; at = bare.indexOf(old, at + 1)) {
    const [prefix, suffix] = [bare.slice(0, at), bare.slice(at + old.length)];
    const hasBoth = (each: string) =>
      each.length > prefix.length + suffix.length && each.startsWith(prefix) && each.endsWith(suffix);
    if (others.every(hasBoth)) return true;
  }
  return false;
}

function inBinding({ each, references }: AnalysedBinding, { kinds }: Inputs, find: FindRenamed): Mistake[] {
  const { binding, mistakeAt } = each;
  const owner = binding.metadata;
  const { namespace = "" } = owner;
  const { serviceAccountName, sources, targets } = binding.spec;
  const check = (reason: Mistake["reason"], place: string, ref: ObjectRef, advice = COMPONENT): Mistake[] => {
    const now = find(ref, owner);
    return now === undefined ? [] : [mistakeAt(reason, { at: [place], what: `${renamed(ref, now)}; ${advice}` })];
  };
  // A connection that is missing is reported in any case.
  const ofSources = references.parsedSources.flatMap(({ name, data, providerClass }, at) => {
    const ref =
      providerClass === undefined
        ? watchedSource(references, name)
        : { resource: kinds.resourceOf(CLASS, "SecretProviderClass"), ...providerClass };
    if (ref === undefined) return [];
    const kind = data?.kind === "Secret" ? "secret" : data ? "configMap" : providerClass ? "providerClass" : "object";
    const advice = sources[at]?.name === undefined ? `${COMPONENT}, and add name: ${name} to the source` : COMPONENT;
    return check("SourceNotFound", `spec.sources[${at}].${kind}.name`, ref, advice);
  });
  const ofTargets = references.targets.flatMap(({ at: ref }, at) =>
    ref instanceof Problem || isSelection(ref) || targets[at]?.create !== undefined
      ? []
      : check("TargetNotFound", `spec.targets[${at}].name`, ref, ADD_KIND),
  );
  const ofRollout = namedWorkloads(binding, kinds).flatMap(({ ref, place }) =>
    check("WorkloadNotFound", `${place}.name`, ref, ADD_KIND),
  );
  const account = { resource: SERVICE_ACCOUNTS, namespace, name: serviceAccountName };
  return [
    ...ofSources,
    ...ofTargets,
    ...ofRollout,
    ...check("ServiceAccountNotFound", "spec.serviceAccountName", account, KEEP_ACCOUNT),
  ];
}

function renamed({ resource: { kind }, namespace, name }: ObjectRef, now: string): string {
  return `${describeObject(kind, namespace, name)} is not in the files, but ${describeObject(kind, namespace, now)} is`;
}

/** A source without a name has that of its Secret or ConfigMap, which kustomize changes; the fields still use the old one. */
function namesOfSources({ each, references }: AnalysedBinding): Mistake[] {
  const { binding, mistakeAt } = each;
  const { sources, targets, rollout } = binding.spec;
  const known = new Set(references.parsedSources.map(({ name }) => name));
  const used = [
    ...targets.flatMap((target) => fieldsOfTarget(target).flatMap(namesIn)),
    ...(rollout?.consumersOf ?? []),
    ...(rollout?.steps ?? []).flatMap(({ consumersOf = [] }) => consumersOf),
  ];
  const unknown = [...new Set(used)].filter((name) => !known.has(name));
  return references.parsedSources.flatMap(({ name, data }, at) => {
    if (data === undefined || sources[at]?.name !== undefined) return [];
    const isOf = (old: string) =>
      isRenamed(name, old, [binding.metadata.name], data.kind) ||
      (HASH.test(name) && name.replace(HASH, "").includes(old));
    const old = unknown.find(isOf);
    if (old === undefined) return [];
    const what = `the source has no name of its own, so its name is that of its ${data.kind}, ${name}, which kustomize has changed; the binding uses ${old}, so add name: ${old} to the source`;
    return [mistakeAt("InvalidBinding", { at: [`spec.sources[${at}]`], what })];
  });
}

function namesIn({ from, template }: Field): readonly string[] {
  if (template === undefined) return from === undefined ? [] : sourcesIn(from);
  const compiled = attemptSync(() => compileTemplate(template));
  return compiled instanceof Problem ? [] : compiled.references.map(({ source }) => source);
}

/** What SecretGrants and connections name in their own namespace. */
function inObject({ document, object }: InputObject, find: FindRenamed): Mistake[] {
  const { metadata } = object;
  const { namespace = "" } = metadata;
  return namedIn(object, namespace).flatMap(({ place, ref }) => {
    const now = find(ref, metadata);
    return now === undefined
      ? []
      : [mistakeAt(document, "SourceNotFound", { at: [place], what: `${renamed(ref, now)}; ${COMPONENT}` })];
  });
}

function namedIn(object: InputObject["object"], namespace: string): readonly { place: string; ref: ObjectRef }[] {
  const { kind, spec = {} } = object;
  if (isOwn(object) && kind === SECRET_GRANTS.kind) {
    const granted = [SECRETS, CONFIG_MAPS, ...connectionKinds().map(({ resource }) => resource)];
    return listAt(spec as JsonObject, "to").flatMap((each, at) => {
      const resource = granted.find((one) => one.kind === valueIn(each, "kind"));
      const name = valueIn(each, "name");
      if (resource === undefined || typeof name !== "string") return [];
      return [{ place: `spec.to[${at}].name`, ref: { resource, namespace, name } }];
    });
  }
  return connectionKindOf(object)?.namedBy(object) ?? [];
}
