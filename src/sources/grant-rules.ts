/** Decides whether a SecretGrant permits a binding to read an object in its namespace, and what to report otherwise. Pure. */
import type { Limits } from "../api/limits.ts";
import type { SecretGrant } from "../api/secret-grant.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import { type LabelSelector, matchesLabels } from "../apimachinery/label-selector.ts";
import { oncePerObject } from "../apimachinery/maps.ts";
import { apiVersionOf, describeObject, describeRef, type KubeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { type MissingPolicy, MissingValue, Problem } from "../apimachinery/problem.ts";
import { CONFIG_MAPS, SECRET_GRANTS, SECRETS } from "../apimachinery/resources.ts";
import { describeIdentity, serviceAccountIdentity } from "../kube/identity.ts";

type Spec = SecretGrant["spec"];
type Selector = LabelSelector & { names?: string[]; exceptNames?: string[] };
type Labels = Readonly<Record<string, string>>;

/**
 * The composition that composes a binding at the moment, as computed from the claims. Labels and other contents of the binding don't count.
 * `claimNamespace`: the namespace of the claim, if it has one. `pending`: not computed yet, such as after a start.
 */
export type ProducedBy = { readonly by: string; readonly claimNamespace?: string } | "none" | "unknown" | "pending";

/** A binding that needs a grant. */
export interface Asker {
  namespace: string;
  account: string;
  composition: ProducedBy;
}

/** The present namespace of a binding. */
export interface HomeNamespace {
  uid: string;
  labels: Labels;
}

export const homeOf = ({ metadata: { uid, labels = {} } }: KubeObject): HomeNamespace => ({ uid, labels });

/** Facts besides names. Unknown facts match nothing. */
export interface Known {
  namespace: HomeNamespace | undefined;
  /** Labels. */
  object: Labels | undefined;
}

/** The assumption about an unknown composition: `"any"` asks whether the grant may apply later. */
type Assumed = "none" | "any";

export function allows(
  spec: Spec,
  asker: Asker,
  asked: ObjectRef,
  { namespace, object }: Known,
  unknown: Assumed = "none",
): boolean {
  return admits(spec, asker, asked, namespace, unknown) && coversObject(spec, asked, object);
}

/** Whether `from` matches the binding, for any object of that place. */
export function admits(
  spec: Spec,
  asker: Asker,
  asked: ObjectRef,
  home: HomeNamespace | undefined,
  unknown: Assumed = "none",
): boolean {
  const hasUID = (uid: string) => uid === home?.uid;
  return isFrom(spec, asker, asked, { holds: by(home?.labels), hasUID, isComposedBy: composedBy(asker, unknown) });
}

/** Whether the grant permits any binding to read the object. */
export function coversObject(spec: Spec, asked: ObjectRef, object: Labels | undefined): boolean {
  return isTo(spec, asked, by(object));
}

const by = (known: Labels | undefined) => (selector: LabelSelector) =>
  known === undefined ? !dependsOnLabels(selector) : matchesLabels(selector, known);

/** Whether the names match, so that the grant may apply. */
export function mayAllow(spec: Spec, asker: Asker, asked: ObjectRef): boolean {
  const isTrue = () => true;
  const matches = { holds: isTrue, hasUID: isTrue, isComposedBy: composedBy(asker, "any") };
  return isFrom(spec, asker, asked, matches) && isTo(spec, asked, isTrue);
}

/** Whether an entry of `from` is about the namespace or the composition of the binding, so that the grant may apply. */
export const namesAsker = ({ from }: Spec, asker: Asker): boolean =>
  from.some(
    ({ namespace, namespaceSelector, composition }) =>
      namespace === asker.namespace ||
      namespaceSelector !== undefined ||
      (composition !== undefined && composedBy(asker, "any")(composition)),
  );

/** Whether a composition in `from` decides. */
export const dependsOnComposition = ({ from }: Spec): boolean =>
  from.some(({ composition }) => composition !== undefined);

const composedBy =
  ({ composition }: Asker, unknown: Assumed) =>
  (name: string): boolean =>
    typeof composition === "object" ? composition.by === name : composition !== "none" && unknown === "any";

/** Whether labels or uid of the binding's namespace decide, besides its name. */
export function dependsOnNamespace({ from }: Spec): boolean {
  return from.some(
    ({ namespaceSelector, namespaceUID }) =>
      namespaceUID !== undefined || (namespaceSelector !== undefined && dependsOnLabels(namespaceSelector)),
  );
}

const dependsOnLabels = ({ matchLabels, matchExpressions }: LabelSelector) =>
  (matchLabels ?? matchExpressions) !== undefined;

/** How an entry of `from` is compared, besides names. */
interface Matches {
  holds(selector: LabelSelector): boolean;
  hasUID(uid: string): boolean;
  isComposedBy(composition: string): boolean;
}

function isFrom({ from }: Spec, { namespace, account }: Asker, asked: ObjectRef, matches: Matches): boolean {
  return from.some((each) => {
    if (each.serviceAccountName !== undefined && each.serviceAccountName !== account) return false;
    if (each.namespaceUID !== undefined && !matches.hasUID(each.namespaceUID)) return false;
    if (each.composition !== undefined) return matches.isComposedBy(each.composition);
    if (each.namespaceSelector === undefined) return each.namespace === namespace;
    // Selectors are for other namespaces only. The grant's own namespace must be listed by name.
    return namespace !== asked.namespace && selects(each.namespaceSelector, namespace, matches.holds);
  });
}

function isTo({ to }: Spec, { resource, name }: ObjectRef, holds: (selector: LabelSelector) => boolean): boolean {
  return to.some(
    (each) => each.kind === resource.kind && (each.selector ? selects(each.selector, name, holds) : each.name === name),
  );
}

const selects = (selector: Selector, name: string, holds: (selector: LabelSelector) => boolean) =>
  matcherOf(selector)(name) && holds(selector);

/** Compiling the patterns takes longer than matching them. */
const matcherOf = oncePerObject(({ names, exceptNames }: Selector) => nameMatcher(names, exceptNames));

/** A source without a required grant counts as missing: its policy decides what happens to its fields. */
export function notGranted(asker: Asker, asked: ObjectRef, policy: MissingPolicy): MissingValue {
  const { resource, namespace = "", name } = asked;
  const { reader, called, from } = readerOf(asker);
  const verb = verbFor(resource);
  const grant = {
    apiVersion: apiVersionOf(SECRET_GRANTS),
    kind: SECRET_GRANTS.kind,
    metadata: { name: `${called}-${verb}s-${resource.plural}-${name}`, namespace },
    spec: { from: [from], to: [{ kind: resource.kind, name }] },
  };
  const what = describeObject(resource.kind, namespace, name);
  const parts = {
    what: `no SecretGrant in namespace ${namespace} permits ${reader} to ${verb} ${what}`,
    fix: "a user who may create SecretGrants there can create it",
    command: `echo '${JSON.stringify(grant)}' | kubectl apply -f -`,
  };
  return new MissingValue("NotGranted", parts, policy);
}

/** The verb for what a SecretGrant permits a binding to do with an object. */
export const verbFor = ({ kind }: Pick<ObjectRef["resource"], "kind">): "read" | "use" =>
  kind === SECRETS.kind || kind === CONFIG_MAPS.kind ? "read" : "use";

/** The reader that a grant must name for a binding. */
function readerOf({ namespace, account, composition }: Asker) {
  if (typeof composition === "object") {
    const { by: name } = composition;
    return { reader: `BindingComposition ${name}`, called: name, from: { composition: name } };
  }
  const reader = describeIdentity(serviceAccountIdentity(namespace, account));
  return { reader, called: `${namespace}-${account}`, from: { namespace, serviceAccountName: account } };
}

/** Until the composition is known, nothing is read and nothing is removed: only then is it clear whether a grant applies. */
export function compositionUnknown(ref: ObjectRef): Problem {
  const { resource, namespace = "" } = ref;
  return new Problem("Unavailable", {
    what: `a SecretGrant in namespace ${namespace} permits a BindingComposition to ${verbFor(resource)} ${describeRef(ref)}, but Inlay does not know at the moment whether it composes this binding`,
    fix: "check its condition Accepted",
    command: "kubectl get bindingcompositions",
  });
}

/**
 * Too many grants, so that it is not known whether one of them permits the read: nothing is read and nothing is removed. `what` names them,
 * such as `1200 SecretGrants`.
 */
export function tooManyGrants(
  { resource, namespace = "", name }: ObjectRef,
  what: string,
  count: number,
  limit: keyof Limits,
): Problem {
  const object = describeObject(resource.kind, namespace, name);
  const message = `namespace ${namespace} has ${what}, and only the oldest ${count} count; none of these permits the binding to ${verbFor(resource)} ${object}; delete those that are not needed, or ask the administrator of Inlay to raise limits.${limit}`;
  return new Problem("LimitExceeded", message);
}

/** Many grants permit the read by the watch, and none of those that were read again does. */
export function grantsBehind({ namespace = "" }: ObjectRef): Problem {
  const message = `many SecretGrants in namespace ${namespace} were changed or deleted a moment ago, and Inlay does not know yet which of them permit the binding; it retries`;
  return new Problem("Unavailable", message);
}

/** The grants of a deleted namespace no longer apply. */
export function namespaceDeleted({ namespace = "" }: ObjectRef, policy: MissingPolicy): MissingValue {
  const message = `namespace ${namespace} is deleted or being deleted, with its SecretGrants; remove its sources from the binding`;
  return new MissingValue("NotGranted", message, policy);
}
