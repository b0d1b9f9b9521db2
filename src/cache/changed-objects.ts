/**
 * Keeps Secrets and ConfigMaps as the watch of an account has shown their last change, until a binding of that account reads
 * them. So many changes at once need no request each. Objects are kept for a moment, up to a total size.
 */
import { BoundedMap } from "../apimachinery/maps.ts";
import { idOf, type KubeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { allowedNames } from "../kube/access-rules.ts";
import { LARGE_CHARACTERS } from "../kube/answer-text.ts";
import type { Identity } from "../kube/identity.ts";
import { sizeOf } from "../transform/budget.ts";
import type { AccountRules } from "./account-rules.ts";

/** The most characters of all objects together. */
const MAX_SIZE = 4 * 1024 ** 2;
/** The memory of a value besides its characters. */
const PER_VALUE = 16;

interface Kept<T> {
  readonly value: T;
  readonly size: number;
  readonly timer: NodeJS.Timeout;
}

/** `T` holds the object, sealed if it is secret. The oldest objects are dropped for others. */
export class KeptObjects<T> extends BoundedMap<string, Kept<T>> {
  readonly #maxEach: number;

  /** `maxEach` is the most characters of one object. A larger one is not kept. */
  constructor(maxEach: number) {
    super(Number.POSITIVE_INFINITY, MAX_SIZE, ({ size }) => size);
    this.#maxEach = maxEach;
  }

  /** Replaces what is kept for the key, for so many milliseconds. */
  keep(key: string, value: T, object: KubeObject, ms: number): void {
    this.delete(key);
    const { characters, elements } = sizeOf(object);
    const size = characters + elements * PER_VALUE;
    if (size > this.#maxEach) return;
    this.set(key, { value, size, timer: setTimeout(() => this.delete(key), ms).unref() });
  }

  override delete(key: string): boolean {
    clearTimeout(this.get(key)?.timer);
    return super.delete(key);
  }
}

/** How long an object waits for its bindings, which may wait for their turn. */
const KEPT_MS = 10_000;
/** The most milliseconds since the API server was asked what the account may read. It must have been asked after the change. */
export const CONFIRMED_MS = 500;
/** If fewer other objects wait, a request for the object costs less than a review. */
const MIN_WAITING = 8;

interface Changed {
  object: SecretValue<KubeObject>;
  version: string;
  since: number;
}

export class ChangedObjects {
  readonly #rules: Pick<AccountRules, "of">;
  /** The last version of each object, by account. */
  readonly #kept = new KeptObjects<Changed>(LARGE_CHARACTERS);

  constructor(rules: Pick<AccountRules, "of">) {
    this.#rules = rules;
  }

  /** Keeps an object as a watch of `identity` has shown it. */
  offer(identity: Identity, ref: ObjectRef, { metadata, ...object }: KubeObject): void {
    // Half of a small object is managedFields.
    const { managedFields: _, ...rest } = metadata;
    const kept: KubeObject = { ...object, metadata: rest };
    const changed = { object: new SecretValue(kept), version: rest.resourceVersion, since: Date.now() };
    this.#kept.keep(keyOf(identity, ref), changed, kept, KEPT_MS);
  }

  /**
   * Removes and returns the object of that version, if it is kept, others wait too, and the API server says after the change that the
   * account may read it.
   */
  async take(identity: Identity, ref: ObjectRef, version: string): Promise<KubeObject | undefined> {
    const key = keyOf(identity, ref);
    const kept = this.#kept.get(key)?.value;
    if (kept?.version !== version) return undefined;
    this.#kept.delete(key);
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
}

const keyOf = (identity: Identity, ref: ObjectRef) => `${identity}|${idOf(ref)}`;
