/**
 * Decides whether a request as the account for compositions is for bindings, or for claims of a composition. It knows every
 * BindingComposition that was stored, and every role that is aggregated to the account.
 */
import type { AnyObject } from "../controller/api.ts";
import type { AuditedRequest, Written } from "../controller/audit.ts";
import type { ServedKind } from "../controller/named.ts";
import { isBy, type Right } from "../controller/rights.ts";

export const AGGREGATED = "inlay.dev/aggregate-to-compositions";
const BINDINGS = "inlay.dev/secretbindings";
const BINDING_VERBS = ["create", "update", "delete"];
const CLAIM_VERBS = ["list", "watch"];
/** `get`: before a write to a kind whose versions drop fields. */
const WRITE_BACK_VERBS = ["get", "patch"];
/** Inlay watches only the metadata of such claims, and does not read them as this account. */
const METADATA_ONLY = ["secrets", "configmaps"];
const WRITES_BACK = /"type":"(ToCompositeFieldPath|CombineToComposite)"/;

/** A permission, and for how long the account has it. */
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

  /**
   * `kinds` are all kinds that were ever served, by group and kind. `shipped` are the permissions of the account in its manifest.
   */
  constructor(kinds: ReadonlyMap<string, readonly ServedKind[]>, shipped: readonly Right[]) {
    this.#kinds = kinds;
    this.#shipped = shipped;
  }

  /** Records more compositions, and all aggregated permissions. */
  take(compositions: readonly Written[], terms: readonly RightTerm[]): void {
    this.#terms = terms;
    for (const { at, object } of compositions) this.#claims.push(claimKindOf(at, object));
  }

  /** Whether the account has the permission, and Inlay has a reason for the request. A denied request only needs the reason. */
  isFor(request: AuditedRequest): boolean {
    const { at, code } = request;
    if (!this.#isForBindings(request) && !this.#isForClaims(request)) return false;
    const asked = { ...request, as: undefined };
    if (code === 403 || this.#shipped.some((right) => isBy(right, asked))) return true;
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
