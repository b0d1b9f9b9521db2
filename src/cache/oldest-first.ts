/** The objects of each namespace by age, for a limit of which only the oldest ones count. */
import { insertionPoint } from "../apimachinery/insertion-point.ts";
import { getOrInsert } from "../apimachinery/maps.ts";
import type { ObjectMeta } from "../apimachinery/objects.ts";
import { objectKey } from "./reflector.ts";

type Metadata = Pick<ObjectMeta, "name" | "namespace" | "creationTimestamp">;

export class OldestFirst {
  readonly #limit: number;
  /** For each namespace, the age and name of each object in order. */
  readonly #orders = new Map<string, string[]>();

  /** `limit`: how many count in each namespace. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the key of the object that no longer counts because of it. */
  add(metadata: Metadata): string | undefined {
    const { namespace = "" } = metadata;
    const order = getOrInsert(this.#orders, namespace, () => []);
    const at = positionIn(order, ageOf(metadata));
    if (order[at] === ageOf(metadata)) return undefined;
    order.splice(at, 0, ageOf(metadata));
    return at < this.#limit ? this.#keyAt(namespace, this.#limit) : undefined;
  }

  /** Returns the key of the object that counts from now on. */
  delete(metadata: Metadata): string | undefined {
    const { namespace = "" } = metadata;
    const order = this.#orders.get(namespace) ?? [];
    const at = positionIn(order, ageOf(metadata));
    if (order[at] !== ageOf(metadata)) return undefined;
    order.splice(at, 1);
    const next = at < this.#limit ? this.#keyAt(namespace, this.#limit - 1) : undefined;
    if (order.length === 0) this.#orders.delete(namespace);
    return next;
  }

  /** From 1 for the oldest of the namespace. Undefined for an object that counts. */
  numberBeyond(metadata: Metadata): number | undefined {
    const number = positionIn(this.#orders.get(metadata.namespace ?? "") ?? [], ageOf(metadata)) + 1;
    return number > this.#limit ? number : undefined;
  }

  #keyAt(namespace: string, position: number): string | undefined {
    const name = this.#orders.get(namespace)?.[position]?.split(" ")[1];
    return name === undefined ? undefined : objectKey(namespace, name);
  }
}

/** Time stamps of Kubernetes are in the order of their texts. Those of a second are in the order of the names. */
const ageOf = ({ creationTimestamp = "", name }: Metadata): string => `${creationTimestamp} ${name}`;

/** Where the text is in the order, or would be. */
const positionIn = (order: readonly string[], text: string): number => insertionPoint(order, (each) => each < text);
