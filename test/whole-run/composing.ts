/**
 * What compositions may ask as their account: every BindingComposition that was stored and every role that is aggregated to the
 * account come in, and whether a request as the account is for bindings, or for claims of a composition, goes out.
 */
import type { AnyObject } from "../controller/api.ts";
import type { AuditedRequest, Written } from "../controller/audit.ts";
import type { ServedKind } from "../controller/named.ts";
import { isBy, type Right } from "../controller/rights.ts";

export const AGGREGATED = "inlay.dev/aggregate-to-compositions";
const BINDINGS = "inlay.dev/secretbindings";
const BINDING_VERBS = ["create", "update", "delete"];
const CLAIM_VERBS = ["list", "watch"];
/** `get`: of a kind with versions that drop fields, before a write. */
const WRITE_BACK_VERBS = ["get", "patch"];
/** Inlay watches the metadata of such claims, and reads none of them as this account. */
const METADATA_ONLY = ["secrets", "configmaps"];
const WRITES_BACK = /"type":"(ToCompositeFieldPath|CombineToComposite)"/;

/** A right, and for how long the account has it. */
export interface RightTerm {
  right: Right;
  from: string;
  until: string;
}

interface ClaimKind {
  since: string;
  group: string;
  kind: string;
  isWrittenBack: boolean;
}

export class Composing {
  readonly #claims: ClaimKind[] = [];
  readonly #kinds: ReadonlyMap<string, readonly ServedKind[]>;
  readonly #shipped: readonly Right[];
  #terms: readonly RightTerm[] = [];

  /** `kinds` are by group and kind, as they were ever served. `shipped` are the rights of the account in its manifest. */
  constructor(kinds: ReadonlyMap<string, readonly ServedKind[]>, shipped: readonly Right[]) {
    this.#kinds = kinds;
    this.#shipped = shipped;
  }

  /** Takes note of more compositions, and of all rights that are aggregated. */
  take(compositions: readonly Written[], terms: readonly RightTerm[]): void {
    this.#terms = terms;
    for (const { at, object } of compositions) this.#claims.push(claimKindOf(at, object));
  }

  /** Whether the account may ask that, and Inlay has a reason to. A refused request needs the reason alone. */
  isFor(request: AuditedRequest): boolean {
    const { at, lacks } = request;
    if (!this.#isForBindings(request) && !this.#isForClaims(request)) return false;
    const asked = { ...request, as: undefined };
    if (lacks !== undefined || this.#shipped.some((right) => isBy(right, asked))) return true;
    return this.#terms.some(({ right, from, until }) => isBy(right, asked) && from <= at && at <= until);
  }

  #isForBindings({ verb, resource }: AuditedRequest): boolean {
    return resource === BINDINGS && BINDING_VERBS.includes(verb);
  }

  #isForClaims({ verb, resource, at }: AuditedRequest): boolean {
    return this.#claims.some(({ since, group, kind, isWrittenBack }) => {
      if (since > at) return false;
      const plurals = (this.#kinds.get(`${group}/${kind}`) ?? []).map(({ plural }) => plural);
      const names = plurals.map((plural) => [group, plural].filter(Boolean).join("/"));
      if (CLAIM_VERBS.includes(verb)) return names.includes(resource);
      if (!isWrittenBack || !WRITE_BACK_VERBS.includes(verb)) return false;
      if (verb === "get") return names.includes(resource) && !METADATA_ONLY.includes(resource);
      return names.includes(resource.replace(/\/status$/, ""));
    });
  }
}

function claimKindOf(since: string, { spec }: AnyObject): ClaimKind {
  const { apiVersion, kind } = spec.for;
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : "";
  return { since, group, kind, isWrittenBack: WRITES_BACK.test(JSON.stringify(spec)) };
}
