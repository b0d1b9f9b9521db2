/** Decides whether a SecretGrant allows a binding to read an object of its namespace, and what to report where none does. Pure. */
import type { SecretGrant } from "../api/secret-grant.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import { type LabelSelector, matchesLabels } from "../apimachinery/label-selector.ts";
import { apiVersionOf, describeObject, type KubeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { type MissingPolicy, MissingValue } from "../apimachinery/problem.ts";
import { SECRET_GRANTS } from "../apimachinery/resources.ts";
import { describeIdentity, serviceAccountIdentity } from "../kube/identity.ts";

type Spec = SecretGrant["spec"];
type Selector = LabelSelector & { names?: string[] };
type Labels = Readonly<Record<string, string>>;

/** A binding, as a grant sees it. */
export interface Asker {
  namespace: string;
  account: string;
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

export function allows(spec: Spec, asker: Asker, asked: ObjectRef, { namespace, object }: Known): boolean {
  return admits(spec, asker, namespace) && coversObject(spec, asked, object);
}

/** Whether `from` lets the binding in, whatever the grant is for. */
export function admits(spec: Spec, asker: Asker, namespace: HomeNamespace | undefined): boolean {
  return isFrom(spec, asker, by(namespace?.labels), (uid) => uid === namespace?.uid);
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
  return isFrom(spec, asker, isTrue, isTrue) && isTo(spec, asked, isTrue);
}

/** Whether more than the name of the binding's namespace has a say in it: its labels or its uid. */
export function looksAtNamespace({ from }: Spec): boolean {
  return from.some(
    ({ namespaceSelector, namespaceUID }) =>
      namespaceUID !== undefined || (namespaceSelector !== undefined && looksAtLabels(namespaceSelector)),
  );
}

const looksAtLabels = ({ matchLabels, matchExpressions }: LabelSelector) =>
  (matchLabels ?? matchExpressions) !== undefined;

function isFrom(
  { from }: Spec,
  { namespace, account }: Asker,
  holds: (selector: LabelSelector) => boolean,
  hasUID: (uid: string) => boolean,
): boolean {
  return from.some(
    (each) =>
      (each.serviceAccountName === undefined || each.serviceAccountName === account) &&
      (each.namespaceUID === undefined || hasUID(each.namespaceUID)) &&
      (each.namespaceSelector ? selects(each.namespaceSelector, namespace, holds) : each.namespace === namespace),
  );
}

function isTo({ to }: Spec, { resource, name }: ObjectRef, holds: (selector: LabelSelector) => boolean): boolean {
  return to.some(
    (each) => each.kind === resource.kind && (each.selector ? selects(each.selector, name, holds) : each.name === name),
  );
}

const selects = (selector: Selector, name: string, holds: (selector: LabelSelector) => boolean) =>
  nameMatcher(selector.names)(name) && holds(selector);

/** What is read of another namespace and not granted there counts as missing: the source says what becomes of its fields. */
export function notGranted(asker: Asker, asked: ObjectRef, policy: MissingPolicy): MissingValue {
  const { resource, namespace = "", name } = asked;
  const account = describeIdentity(serviceAccountIdentity(asker.namespace, asker.account));
  const grant = {
    apiVersion: apiVersionOf(SECRET_GRANTS),
    kind: SECRET_GRANTS.kind,
    metadata: { name: `${asker.namespace}-${asker.account}-reads-${resource.plural}-${name}`, namespace },
    spec: {
      from: [{ namespace: asker.namespace, serviceAccountName: asker.account }],
      to: [{ kind: resource.kind, name }],
    },
  };
  const what = describeObject(resource.kind, namespace, name);
  const how = `who may make grants there allows it with: echo '${JSON.stringify(grant)}' | kubectl apply -f -`;
  const message = `no SecretGrant in namespace ${namespace} lets ${account} read ${what}; ${how}`;
  return new MissingValue("NotGranted", message, policy);
}

/** With a namespace goes what it allowed. */
export function goneWith({ namespace = "" }: ObjectRef, policy: MissingPolicy): MissingValue {
  const message = `namespace ${namespace} is gone or being deleted, and its SecretGrants with it; take its sources out of the binding`;
  return new MissingValue("NotGranted", message, policy);
}
