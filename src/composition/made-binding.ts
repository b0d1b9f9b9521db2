/** The metadata of a binding that a composition makes for a claim: labels, annotations and owner. Pure. */
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

/** What an owner reference says of a claim, and where the claim is. */
export type ClaimOwner = Pick<Claim, "apiVersion" | "kind" | "namespace" | "name" | "uid">;

/** A binding for a claim. */
export interface MadeBinding {
  readonly namespace: string;
  readonly name: string;
  readonly template: string;
  /** The claim's own key. */
  readonly claim: string;
  readonly owner: ClaimOwner;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: SecretBinding["spec"];
}

type Metadata = SecretBinding["metadata"];

/** What a claim is to its bindings. */
export interface MadeFor {
  readonly composition: string;
  readonly claim: string;
  readonly owner: ClaimOwner;
}

/** The key of the binding that is to be made. */
export const madeKey = ({ namespace, name }: Pick<MadeBinding, "namespace" | "name">): string => `${namespace}/${name}`;

export function madeBinding(composed: ComposedBinding, { composition, claim, owner }: MadeFor): MadeBinding {
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

/** An owner reference reaches from a namespace into the same one, or into the cluster. */
export const ownersOf = ({ owner, namespace }: MadeBinding) => {
  const { apiVersion, kind, name, uid } = owner;
  return owner.namespace === undefined || owner.namespace === namespace ? [{ apiVersion, kind, name, uid }] : [];
};

/** The metadata as it has to be, beside what others say there. */
export function metadataOf(made: MadeBinding, present: Partial<Metadata> = {}): Partial<Metadata> {
  const owners = ownersOf(made);
  const others = (present.ownerReferences ?? []).filter(({ uid }) => uid !== made.owner.uid);
  const all = [...owners, ...others];
  return {
    labels: { ...present.labels, ...made.labels },
    annotations: { ...present.annotations, ...made.annotations },
    ...(all.length > 0 && { ownerReferences: all }),
  };
}
