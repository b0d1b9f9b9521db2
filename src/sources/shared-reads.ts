/**
 * Reads sources. Bindings of one account share the read of the same object in the same version. Objects are cached for a moment, up to a
 * total size.
 */
import type { JsonValue, KubeObject, ObjectRef } from "../apimachinery/objects.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { type ChangedObjects, CONFIRMED_MS } from "../cache/changed-objects.ts";
import { type Client, pathOf } from "../kube/client.ts";
import type { Identity } from "../kube/identity.ts";
import { sizeOf } from "../transform/budget.ts";

/** How long a read is shared after it was sent, so that a revoked permission takes effect soon. */
const SHARED_MS = 1_000;
/** The size of the cache, in total and for each object, in characters. A larger object is shared until its answer arrives. */
const MAX_KEPT = 4 * 1024 ** 2;
const MAX_KEPT_EACH = 256 * 1024;
/** The memory of a value besides its characters. */
const PER_VALUE = 16;

interface Read {
  answer: Promise<SecretValue<KubeObject>>;
  /** Of the request, or of the review that permits to use an object from the watch. */
  sentAt: number;
  /** 0 until the answer is cached. */
  size: number;
}

export class SharedReads {
  readonly #client: Pick<Client, "get">;
  readonly #changed: Pick<ChangedObjects, "take">;
  readonly #now: () => number;
  /** In the order in which they were sent. */
  readonly #reads = new Map<string, Read>();
  #size = 0;

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
    if (seen === undefined) return this.#client.get<T>(identity, ref);
    const { resource, namespace, name } = ref;
    const key = [identity, pathOf(resource, namespace, name), seen].join("|");
    const known = this.#reads.get(key);
    const isRecent = known !== undefined && this.#now() < known.sentAt + SHARED_MS;
    const { answer } = isRecent ? known : this.#send(key, identity, ref, seen);
    return (await answer).reveal() as T;
  }

  #send(key: string, identity: Identity, ref: ObjectRef, seen: string): Read {
    const sentAt = this.#now();
    const answer = this.#changed.take(identity, ref, seen).then(async (taken) => {
      // The permission for it may have been confirmed earlier.
      if (taken !== undefined) read.sentAt = sentAt - CONFIRMED_MS;
      return new SecretValue(taken ?? (await this.#client.get(identity, ref, seen)));
    });
    const read: Read = { answer, sentAt, size: 0 };
    this.#drop(key);
    this.#reads.set(key, read);
    const drop = () => this.#drop(key, read);
    answer.then((object) => {
      const left = read.sentAt + SHARED_MS - this.#now();
      // A later version is shared only once the watch shows it.
      const isAsSeen = object.reveal().metadata.resourceVersion === seen;
      if (left <= 0 || !isAsSeen || !this.#keep(read, object.reveal())) return drop();
      setTimeout(drop, left).unref();
    }, drop);
    return read;
  }

  /** Returns false for an object that is too large. The oldest objects are evicted for others. */
  #keep(read: Read, object: KubeObject): boolean {
    const { characters, elements } = sizeOf(object as unknown as JsonValue);
    const size = characters + elements * PER_VALUE;
    if (size > MAX_KEPT_EACH) return false;
    read.size = size;
    this.#size += size;
    for (const [key, each] of this.#reads) {
      if (this.#size <= MAX_KEPT) break;
      if (each.size > 0) this.#drop(key);
    }
    return true;
  }

  /** Drops the read of a key; if `only` is given, only that read. */
  #drop(key: string, only?: Read): void {
    const read = this.#reads.get(key);
    if (read === undefined || (only !== undefined && read !== only)) return;
    this.#size -= read.size;
    this.#reads.delete(key);
  }
}
