/**
 * Keeps Secrets and ConfigMaps as the watch of an account has shown their last change, until a binding of that account reads
 * them. So many changes at once need no request each. Objects are kept for a moment, up to a total size.
 */
import { idOf, type JsonValue, type KubeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { allowedNames } from "../kube/access-rules.ts";
import type { Identity } from "../kube/identity.ts";
import { sizeOf } from "../transform/budget.ts";
import type { AccountRules } from "./account-rules.ts";

/** How long an object waits for its bindings, which may wait for their turn. */
const KEPT_MS = 10_000;
/** The most characters of all objects, and of each. A larger object is read by a request. */
const MAX_KEPT = 4 * 1024 ** 2;
const MAX_KEPT_EACH = 64 * 1024;
/** The memory of a value besides its characters. */
const PER_VALUE = 16;
/** The most milliseconds since the API server was asked what the account may read. It must have been asked after the change. */
export const CONFIRMED_MS = 500;
/** If fewer other objects wait, a request for the object costs less than a review. */
const MIN_WAITING = 8;

interface Kept {
  object: SecretValue<KubeObject>;
  version: string;
  size: number;
  since: number;
  timer: NodeJS.Timeout;
}

export class ChangedObjects {
  readonly #rules: Pick<AccountRules, "of">;
  /** The last version of each object, by account. The oldest change is first. */
  readonly #kept = new Map<string, Kept>();
  #size = 0;

  constructor(rules: Pick<AccountRules, "of">) {
    this.#rules = rules;
  }

  /** Keeps an object as a watch of `identity` has shown it. */
  offer(identity: Identity, ref: ObjectRef, { metadata, ...object }: KubeObject): void {
    const key = keyOf(identity, ref);
    this.#drop(key);
    // Half of a small object is managedFields.
    const { managedFields: _, ...rest } = metadata;
    const kept: KubeObject = { ...object, metadata: rest };
    const { characters, elements } = sizeOf(kept as unknown as JsonValue);
    const size = characters + elements * PER_VALUE;
    if (size > MAX_KEPT_EACH) return;
    const timer = setTimeout(() => this.#drop(key), KEPT_MS).unref();
    const { resourceVersion: version } = rest;
    this.#kept.set(key, { object: new SecretValue(kept), version, size, since: Date.now(), timer });
    this.#size += size;
    for (const oldest of this.#kept.keys()) {
      if (this.#size <= MAX_KEPT) break;
      this.#drop(oldest);
    }
  }

  /**
   * Removes and returns the object of that version, if it is kept, others wait too, and the API server says after the change that the
   * account may read it.
   */
  async take(identity: Identity, ref: ObjectRef, version: string): Promise<KubeObject | undefined> {
    const key = keyOf(identity, ref);
    const kept = this.#kept.get(key);
    if (kept?.version !== version) return undefined;
    this.#drop(key);
    if (this.#kept.size < MIN_WAITING) return undefined;
    const place = { identity, namespace: ref.namespace ?? "" };
    try {
      // An authorizer that can't list its rules may also forbid.
      if ((await this.#rules.of(place)).incomplete) return undefined;
      const confirmed = await this.#rules.of(place, Math.min(CONFIRMED_MS, Date.now() - kept.since));
      const names = allowedNames(confirmed, ["get"], ref.resource);
      return names === "all" || names.has(ref.name) ? kept.object.reveal() : undefined;
    } catch {
      return undefined;
    }
  }

  #drop(key: string): void {
    const kept = this.#kept.get(key);
    if (kept === undefined) return;
    clearTimeout(kept.timer);
    this.#size -= kept.size;
    this.#kept.delete(key);
  }
}

const keyOf = (identity: Identity, ref: ObjectRef) => `${identity}|${idOf(ref)}`;
