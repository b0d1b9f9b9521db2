/** Decides whether a SecretGrant allows a binding to read an object of its namespace, and what to report where none does. Pure. */
import type { SecretGrant } from "../api/secret-grant.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import { type LabelSelector, matchesLabels } from "../apimachinery/label-selector.ts";
import { apiVersionOf, describeObject, type KubeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { type MissingPolicy, MissingValue, Problem } from "../apimachinery/problem.ts";
import { SECRET_GRANTS, VAULT_CONNECTIONS } from "../apimachinery/resources.ts";
import { describeIdentity, serviceAccountIdentity } from "../kube/identity.ts";

type Spec = SecretGrant["spec"];
type Selector = LabelSelector & { names?: string[]; exceptNames?: string[] };
type Labels = Readonly<Record<string, string>>;

/**
 * The composition that makes a binding at the moment, as it is computed from the claims. Nothing that a binding says of itself counts.
 * `claimNamespace`: that of the claim, if it has one. `pending`: unknown, and about to be computed, as after a start.
 */
export type ProducedBy = { readonly by: string; readonly claimNamespace?: string } | "none" | "unknown" | "pending";

/** A binding, as a grant sees it. */
export interface Asker {
  namespace: string;
  account: string;
  composition: ProducedBy;
}

/** The namespace of a binding, as it is at a moment. */
export interface HomeNamespace {
  uid: string;
  labels: Labels;
}

export const homeOf = ({ metadata: { uid, labels = {} } }: KubeObject): HomeNamespace => ({ uid, labels });

/** What decides beside names. What is not known matches nothing. */
interface Known {
  namespace: HomeNamespace | undefined;
  /** Labels. */
  object: Labels | undefined;
}

/** What counts as true of a composition that is not known: `"any"` asks whether the answer may come to be yes. */
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

/** Whether `from` admits the binding to an object of that place, whatever the grant is for. */
export function admits(
  spec: Spec,
  asker: Asker,
  asked: ObjectRef,
  home: HomeNamespace | undefined,
  unknown: Assumed = "none",
): boolean {
  const hasUID = (uid: string) => uid === home?.uid;
  return isFrom(spec, asker, asked, { holds: by(home?.labels), hasUID, isMadeBy: madeBy(asker, unknown) });
}

/** Whether the grant lets anybody read the object. */
export function coversObject(spec: Spec, asked: ObjectRef, object: Labels | undefined): boolean {
  return isTo(spec, asked, by(object));
}

const by = (known: Labels | undefined) => (selector: LabelSelector) =>
  known === undefined ? !looksAtLabels(selector) : matchesLabels(selector, known);

/** Whether it may, as far as names tell. */
export function mayAllow(spec: Spec, asker: Asker, asked: ObjectRef): boolean {
  const isTrue = () => true;
  const matches = { holds: isTrue, hasUID: isTrue, isMadeBy: madeBy(asker, "any") };
  return isFrom(spec, asker, asked, matches) && isTo(spec, asked, isTrue);
}

/** Whether the composition that makes a binding has a say in it. */
export const looksAtComposition = ({ from }: Spec): boolean =>
  from.some(({ composition }) => composition !== undefined);

const madeBy =
  ({ composition }: Asker, unknown: Assumed) =>
  (name: string): boolean =>
    typeof composition === "object" ? composition.by === name : composition !== "none" && unknown === "any";

/** Whether more than the name of the binding's namespace has a say in it: its labels or its uid. */
export function looksAtNamespace({ from }: Spec): boolean {
  return from.some(
    ({ namespaceSelector, namespaceUID }) =>
      namespaceUID !== undefined || (namespaceSelector !== undefined && looksAtLabels(namespaceSelector)),
  );
}

const looksAtLabels = ({ matchLabels, matchExpressions }: LabelSelector) =>
  (matchLabels ?? matchExpressions) !== undefined;

/** How an entry of `from` compares with more than names. */
interface Matches {
  holds(selector: LabelSelector): boolean;
  hasUID(uid: string): boolean;
  isMadeBy(composition: string): boolean;
}

function isFrom({ from }: Spec, { namespace, account }: Asker, asked: ObjectRef, matches: Matches): boolean {
  return from.some((each) => {
    if (each.serviceAccountName !== undefined && each.serviceAccountName !== account) return false;
    if (each.namespaceUID !== undefined && !matches.hasUID(each.namespaceUID)) return false;
    if (each.composition !== undefined) return matches.isMadeBy(each.composition);
    if (each.namespaceSelector === undefined) return each.namespace === namespace;
    // Selectors say which other namespaces may read. The authors of the grant's own namespace are none of these.
    return namespace !== asked.namespace && selects(each.namespaceSelector, namespace, matches.holds);
  });
}

function isTo({ to }: Spec, { resource, name }: ObjectRef, holds: (selector: LabelSelector) => boolean): boolean {
  return to.some(
    (each) => each.kind === resource.kind && (each.selector ? selects(each.selector, name, holds) : each.name === name),
  );
}

const selects = (selector: Selector, name: string, holds: (selector: LabelSelector) => boolean) =>
  nameMatcher(selector.names, selector.exceptNames)(name) && holds(selector);

/** What needs a grant and has none counts as missing: the source says what becomes of its fields. */
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
  const how = `who may make grants there allows it with: echo '${JSON.stringify(grant)}' | kubectl apply -f -`;
  const message = `no SecretGrant in namespace ${namespace} lets ${reader} ${verb} ${what}; ${how}`;
  return new MissingValue("NotGranted", message, policy);
}

/** What a SecretGrant lets a binding do with an object. */
export const verbFor = ({ kind }: Pick<ObjectRef["resource"], "kind">): "read" | "use" =>
  kind === VAULT_CONNECTIONS.kind ? "use" : "read";

/** Whom a grant has to name for a binding. */
function readerOf({ namespace, account, composition }: Asker) {
  if (typeof composition === "object") {
    const { by: name } = composition;
    return { reader: `BindingComposition ${name}`, called: name, from: { composition: name } };
  }
  const reader = describeIdentity(serviceAccountIdentity(namespace, account));
  return { reader, called: `${namespace}-${account}`, from: { namespace, serviceAccountName: account } };
}

/** Nothing is read and nothing is removed until it is known: only then does it show whether a grant allows it. */
export function compositionUnknown({ resource, namespace = "", name }: ObjectRef): Problem {
  const what = describeObject(resource.kind, namespace, name);
  const message = `a SecretGrant in namespace ${namespace} lets a BindingComposition ${verbFor(resource)} ${what}, and Inlay can't tell at the moment whether it makes this binding; see its condition Accepted with: kubectl get bindingcompositions`;
  return new Problem("Unavailable", message);
}

/** With a namespace goes what it allowed. */
export function goneWith({ namespace = "" }: ObjectRef, policy: MissingPolicy): MissingValue {
  const message = `namespace ${namespace} is gone or being deleted, and its SecretGrants with it; take its sources out of the binding`;
  return new MissingValue("NotGranted", message, policy);
}
