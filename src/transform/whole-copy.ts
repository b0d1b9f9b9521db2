/**
 * What an object that a binding creates takes from its source besides the data, if a field copies all data of one source: the type of a
 * Secret, and labels and annotations. Pure.
 */
import { copiesAll, fieldsOfTarget, manifestOf, type Target } from "../api/binding.ts";
import { FieldPath, keySegment } from "../apimachinery/field-path.ts";
import { fieldsAt } from "../apimachinery/fields.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import type { LiveSource } from "./live-source.ts";
import type { Plan, PlannedField } from "./plan-types.ts";
import type { DataSource } from "./read.ts";

/** By these, Kubernetes or a tool finds, owns or configures its objects. A test compares them with docs/reference/writing.md. */
export const FOREIGN_KEYS: readonly string[] = [
  "inlay.dev/*",
  // Kubernetes. Other keys of app.kubernetes.io only describe an object.
  "kubernetes.io/*",
  "kubectl.kubernetes.io/*",
  "applyset.kubernetes.io/*",
  "config.kubernetes.io/*",
  "app.kubernetes.io/instance",
  "app.kubernetes.io/managed-by",
  // Deployment tools.
  "argocd.argoproj.io/*",
  "argocd-*.argoproj.io/*",
  "*.toolkit.fluxcd.io/*",
  "helm.sh/*",
  "meta.helm.sh/*",
  "*.k14s.io/*",
  "*.cattle.io/*",
  "cli-utils.sigs.k8s.io/*",
  "config.k8s.io/*",
  "crossplane.io/*",
  "olm.*",
  "operators.coreos.com/*",
  "pulumi.com/*",
  // Tools that make, copy or read Secrets.
  "cert-manager.io/*",
  "*.cert-manager.io/*",
  "*.kyverno.io/*",
  "kyverno.io/*",
  "reflector.v1.k8s.emberstack.com/*",
  "replicator.v1.mittwald.de/*",
  "*.external-secrets.io/*",
  "secrets.hashicorp.com/*",
  "sealedsecrets.bitnami.com/*",
  "velero.io/*",
];

export const isForeign = nameMatcher(FOREIGN_KEYS);

export const TYPE = FieldPath.parse("type");
export const OPAQUE = "Opaque";
const MAPS = ["labels", "annotations"] as const;
/** How many labels, and how many annotations, a copy takes: each is a path in the status. */
const MAX_COPIED = 32;
/** Kubernetes makes and deletes Secrets of these types by itself. */
const KUBERNETES_OWN = ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"];

/** The plan with what the object takes from its source. Throws Problem("InvalidValue") for too many labels or annotations. */
export function withInherited(plan: Plan, target: Target, sources: ReadonlyMap<string, LiveSource | Problem>): Plan {
  const { create } = target;
  const whole = fieldsOfTarget(target).find((field) => field.path === "data" && copiesAll(field))?.from;
  if (create === undefined || whole?.source === undefined) return plan;
  const source = sources.get(whole.source);
  if (source === undefined || source instanceof Problem || source.kind !== "data") return plan;
  const isFiltered = whole.include !== undefined || whole.exclude !== undefined;
  const type = isFiltered || !isSecret(target) ? {} : typeOf(source, target);
  const copied = MAPS.flatMap((map) => copiedOf(source, target, map));
  const inherited = [...(type.field ? [type.field] : []), ...copied];
  if (inherited.length === 0 && type.warning === undefined) return plan;
  return {
    ...plan,
    fields: [...plan.fields, ...inherited],
    ...(type.warning && { warnings: [...(plan.warnings ?? []), type.warning] }),
  };
}

/** The parts of metadata that a target copies from its source. */
export const copiedMetadata = ({ create }: Target): FieldPath[] =>
  MAPS.filter((map) => create?.copy?.[map] !== undefined).map((map) => FieldPath.parse(`metadata.${map}`));

/** The field with the type that the object has from its source. */
export const inheritedType = (target: Target, fields: readonly PlannedField[]): PlannedField | undefined =>
  isSecret(target) && !namesType(target) ? fields.find(({ path }) => path.equals(TYPE)) : undefined;

export const namesType = (target: Target): boolean =>
  manifestOf(target)["type"] !== undefined || fieldsOfTarget(target).some(({ path }) => path === "type");

export const isSecret = ({ apiVersion, kind }: Target) => apiVersion === "v1" && kind === "Secret";

function typeOf({ description, isSecret, type = OPAQUE }: DataSource, target: Target) {
  if (!isSecret || namesType(target) || type === OPAQUE) return {};
  if (!KUBERNETES_OWN.includes(type))
    return { field: { path: TYPE, value: new SecretValue(type), fromSecret: false } satisfies PlannedField };
  const message = `the copy of ${description} has the type ${OPAQUE}, because Kubernetes itself makes and deletes Secrets of type ${type}; to confirm that, set create.manifest.type: ${OPAQUE}`;
  return { warning: new Problem("InvalidValue", message) };
}

function copiedOf(source: DataSource, target: Target, map: (typeof MAPS)[number]): PlannedField[] {
  const patterns = target.create?.copy?.[map];
  if (patterns === undefined) return [];
  const matches = nameMatcher(patterns);
  const own = fieldsAt(manifestOf(target), "metadata", map);
  const written = new Set(fieldsOfTarget(target).map(({ path }) => String(FieldPath.parse(path))));
  const copied = Object.entries(source[map].reveal()).flatMap(([key, value]): PlannedField[] => {
    if (!matches(key) || isForeign(key) || Object.hasOwn(own, key)) return [];
    const path = new FieldPath(["metadata", map, key].map(keySegment));
    if (written.has(String(path))) return [];
    return [{ path, value: new SecretValue(value), fromSecret: source.isSecret }];
  });
  if (copied.length <= MAX_COPIED) return copied;
  const message = `create.copy.${map} matches ${copied.length} ${map} of ${source.description}, and Inlay copies at most ${MAX_COPIED}; write narrower patterns`;
  throw new Problem("InvalidValue", message);
}
