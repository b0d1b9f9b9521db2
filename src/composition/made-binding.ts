/** The metadata of a composed binding: labels, annotations and owner. Pure. */
import type { SecretBinding } from "../api/binding.ts";
import {
  CLAIM_ANNOTATION,
  CLAIM_UID_LABEL,
  COMPOSITION_LABEL,
  PATCHED_ANNOTATION,
  TEMPLATE_LABEL,
} from "../api/composed.ts";
import type { Claim } from "./claim.ts";
import type { ComposedBinding } from "./compose.ts";

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
export interface BindingOrigin {
  readonly composition: string;
  readonly claim: string;
  readonly owner: ClaimOwner;
}

/** The key of the composed binding. */
export const desiredKey = ({ namespace, name }: Pick<DesiredBinding, "namespace" | "name">): string =>
  `${namespace}/${name}`;

export function desiredBinding(
  composed: ComposedBinding,
  { composition, claim, owner }: BindingOrigin,
): DesiredBinding {
  const { namespace, name, template, spec, patched } = composed;
  return {
    namespace,
    name,
    template,
    claim,
    owner,
    spec: spec as unknown as SecretBinding["spec"],
    labels: {
      ...composed.labels,
      [COMPOSITION_LABEL]: composition,
      [TEMPLATE_LABEL]: template,
      [CLAIM_UID_LABEL]: owner.uid,
    },
    annotations: { ...composed.annotations, [CLAIM_ANNOTATION]: claim, [PATCHED_ANNOTATION]: JSON.stringify(patched) },
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
