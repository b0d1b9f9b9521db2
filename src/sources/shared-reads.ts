/**
 * Reads sources. Bindings of one account share the read of the same object in the same version. Objects are cached for a moment, up to a
 * total size.
 */
import type { KubeObject, ObjectRef } from "../apimachinery/objects.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { type ChangedObjects, CONFIRMED_MS, KeptObjects } from "../cache/changed-objects.ts";
import { type Client, pathOf } from "../kube/client.ts";
import type { Identity } from "../kube/identity.ts";

/** How long a read is shared after it was sent, so that a revoked permission takes effect soon. */
const SHARED_MS = 1_000;
/** The most characters of a kept object. A larger one is shared until its answer arrives. */
const MAX_KEPT_EACH = 256 * 1024;

interface Read {
  answer: Promise<SecretValue<KubeObject>>;
  /** Of the request, or of the review that permits to use an object from the watch. */
  sentAt: number;
}

export class SharedReads {
  readonly #client: Pick<Client, "get">;
  readonly #changed: Pick<ChangedObjects, "take">;
  readonly #now: () => number;
  readonly #pending = new Map<string, Read>();
  readonly #answered = new KeptObjects<Read>(MAX_KEPT_EACH);

  /** `now` is a monotonic clock in ms. */
  constructor(client: Pick<Client, "get">, changed: Pick<ChangedObjects, "take">, now = () => performance.now()) {
    this.#client = client;
    this.#changed = changed;
    this.#now = now;
  }

  /**
   * Like `Client.get`. `seen` is the version that the caller's watch shows; without it, the read is not shared. The caller must not change
   * the object.
   */
  async get<T = KubeObject>(identity: Identity, ref: ObjectRef, seen?: string): Promise<T> {
    if (seen === undefined) return this.#client.get<T>(identity, ref, undefined, "values");
    const { resource, namespace, name } = ref;
    const key = [identity, pathOf(resource, namespace, name), seen].join("|");
    const known = this.#answered.get(key)?.value ?? this.#pending.get(key);
    const isRecent = known !== undefined && this.#now() < known.sentAt + SHARED_MS;
    const { answer } = isRecent ? known : this.#send(key, identity, ref, seen);
    return (await answer).reveal() as T;
  }

  #send(key: string, identity: Identity, ref: ObjectRef, seen: string): Read {
    const sentAt = this.#now();
    const answer = this.#changed.take(identity, ref, seen).then(async (taken) => {
      // The permission for it may have been confirmed earlier.
      if (taken !== undefined) read.sentAt = sentAt - CONFIRMED_MS;
      return new SecretValue(taken ?? (await this.#client.get(identity, ref, seen, "values")));
    });
    const read: Read = { answer, sentAt };
    this.#answered.delete(key);
    this.#pending.set(key, read);
    const arrived = () => {
      if (this.#pending.get(key) === read) this.#pending.delete(key);
    };
    answer.then((sealed) => {
      arrived();
      const object = sealed.reveal();
      const left = read.sentAt + SHARED_MS - this.#now();
      // A later version is shared only once the watch shows it.
      if (left > 0 && object.metadata.resourceVersion === seen) this.#answered.keep(key, read, object, left);
    }, arrived);
    return read;
  }
}
