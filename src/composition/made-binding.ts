/**
 * Decides which bindings a claim gets, for the controller and for files: their names, their labels, annotations and owner, and every
 * reason why one is not created or changed. Pure.
 */
import type { SecretBinding } from "../api/binding.ts";
import {
  CLAIM_ANNOTATION,
  CLAIM_UID_LABEL,
  COMPOSITION_LABEL,
  composedFrom,
  PATCHED_ANNOTATION,
  patchedFields,
  TEMPLATE_LABEL,
} from "../api/composed.ts";
import { distinct, Problem } from "../apimachinery/problem.ts";
import type { Claim } from "./claim.ts";
import { type ComposedBinding, type ComposedEntry, fieldNotFound } from "./compose.ts";

/** The claim in an owner reference, and the claim's namespace. */
export type ClaimOwner = Pick<Claim, "apiVersion" | "kind" | "namespace" | "name" | "uid">;

/** A composed binding. */
export interface DesiredBinding {
  readonly namespace: string;
  readonly name: string;
  readonly template: string;
  /** The key of the claim. */
  readonly claim: string;
  readonly owner: ClaimOwner;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: SecretBinding["spec"];
}

type Metadata = SecretBinding["metadata"];

/** The relation of a binding to its claim. */
interface BindingOrigin {
  readonly composition: string;
  readonly claim: string;
  readonly owner: ClaimOwner;
}

/** The key of the composed binding. */
export const desiredKey = ({ namespace, name }: Pick<DesiredBinding, "namespace" | "name">): string =>
  `${namespace}/${name}`;

/** The bindings that exist when those of a claim are decided. */
export interface PresentBindings {
  /** The existing bindings of the claim. */
  readonly own: readonly Pick<SecretBinding, "metadata">[];
  /** The bindings that the claim was last to have. */
  readonly last: readonly DesiredBinding[];
  /** Whether a binding that is not of the claim has the name. */
  isTaken(binding: DesiredBinding): boolean;
}

/** What becomes of an entry of a composition for a claim. */
export interface DecidedEntry extends ComposedEntry {
  /** The key of its binding, if it could be composed. */
  readonly name: string | undefined;
  /** As composed. If there are problems, as last composed, if that is known. */
  readonly desired: DesiredBinding | undefined;
  /** The existing binding stays as it is, because its wanted state is not known. */
  readonly isHeld: boolean;
  /** Each one once. */
  readonly problems: readonly Problem[];
}

/** Decides on all entries of a composition for a claim. */
export function decideBindings(
  entries: readonly ComposedEntry[],
  origin: BindingOrigin,
  { own, last, isTaken }: PresentBindings,
): DecidedEntry[] {
  const keys = new Set<string>();
  return entries.map((each) => {
    const { entry, namespace, composed, missing } = each;
    const existing = own.filter((binding) => {
      const from = composedFrom(binding);
      return from?.template === entry.name && from.claimUID === origin.owner.uid;
    });
    // An existing binding keeps its name. A binding in another namespace does not count, whatever its labels say.
    const there = existing.filter(({ metadata }) => metadata.namespace === namespace);
    const kept = there.find(({ metadata }) => metadata.name === composed?.name) ?? there[0];
    const name = kept?.metadata.name ?? composed?.name ?? "";
    const made = composed && desiredBinding({ ...composed, name }, entry.name, namespace, origin);
    const isNameTaken = made !== undefined && (keys.has(desiredKey(made)) || isTaken(made));
    const patched = new Set(kept && patchedFields(kept));
    const gone = missing.filter(({ toFieldPath, isRemoved }) => !isRemoved && patched.has(toFieldPath));
    const problems = distinct([
      ...each.problems,
      ...gone.map(fieldNotFound),
      ...(isNameTaken ? [nameTaken(made)] : []),
    ]);
    const before = isNameTaken ? undefined : last.find(({ template }) => template === entry.name);
    const desired = problems.length === 0 ? made : before;
    if (desired !== undefined) keys.add(desiredKey(desired));
    const isHeld = desired === undefined && !isNameTaken && existing.length > 0;
    return { ...each, name: made && desiredKey(made), desired, isHeld, problems };
  });
}

const nameTaken = ({ template, namespace, name }: DesiredBinding): Problem =>
  new Problem("NameTaken", {
    at: [`bindings[${template}]`, "metadata.name"],
    what: `another SecretBinding in namespace ${namespace} has the name ${name}`,
    fix: "delete it, or set metadata.name by a patch",
  });

function desiredBinding(
  { name, labels, annotations, spec, patched }: ComposedBinding,
  template: string,
  namespace: string,
  { composition, claim, owner }: BindingOrigin,
): DesiredBinding {
  return {
    namespace,
    name,
    template,
    claim,
    owner,
    spec: spec as unknown as SecretBinding["spec"],
    labels: { ...labels, [COMPOSITION_LABEL]: composition, [TEMPLATE_LABEL]: template, [CLAIM_UID_LABEL]: owner.uid },
    annotations: { ...annotations, [CLAIM_ANNOTATION]: claim, [PATCHED_ANNOTATION]: JSON.stringify(patched) },
  };
}

/** An owner reference is valid within a namespace, or to a cluster-scoped owner. */
export const ownersOf = ({ owner, namespace }: DesiredBinding) => {
  const { apiVersion, kind, name, uid } = owner;
  return owner.namespace === undefined || owner.namespace === namespace ? [{ apiVersion, kind, name, uid }] : [];
};

/** The required metadata, merged with the metadata of other writers. */
export function metadataOf(desired: DesiredBinding, present: Partial<Metadata> = {}): Partial<Metadata> {
  const owners = ownersOf(desired);
  const others = (present.ownerReferences ?? []).filter(({ uid }) => uid !== desired.owner.uid);
  const all = [...owners, ...others];
  return {
    labels: { ...present.labels, ...desired.labels },
    annotations: { ...present.annotations, ...desired.annotations },
    ...(all.length > 0 && { ownerReferences: all }),
  };
}
