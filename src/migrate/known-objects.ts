/** The Secrets and ConfigMaps that are known at the conversion: those in the files, and those that were read from a cluster. Pure. */
import { fieldsAt } from "../apimachinery/fields.ts";
import { type JsonObject, parseApiVersion } from "../apimachinery/objects.ts";
import { isCrd, type Kinds, kindsOf } from "../render/kinds.ts";

export interface ObjectName {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** A Secret or ConfigMap. */
export interface DataObject extends ObjectName {
  readonly kind: "Secret" | "ConfigMap";
}

export const keyOf = ({ kind, namespace, name }: ObjectName): string => `${kind} ${namespace}/${name}`;

export class KnownObjects {
  /** The objects of all kinds in the files. */
  readonly all: readonly JsonObject[];
  /** The namespace of objects that name none. */
  readonly namespace: string;
  #kinds: Kinds | undefined;
  readonly #data = new Map<string, JsonObject>();
  readonly #found = new Set<JsonObject>();
  readonly #missing = new Map<string, ObjectName>();

  /** Of `live`, the objects in the cluster, no values are needed. */
  constructor(all: readonly JsonObject[], namespace: string, live: readonly JsonObject[] = []) {
    this.all = all;
    this.namespace = namespace;
    for (const object of [...live, ...all]) {
      const { name, namespace: own = namespace } = fieldsAt(object, "metadata");
      const kind = object["kind"] as string;
      if (object["apiVersion"] === "v1" && typeof name === "string" && typeof own === "string")
        this.#data.set(keyOf({ kind, namespace: own, name }), object);
    }
  }

  /** The kinds of the objects in the files. */
  get kinds(): Kinds {
    this.#kinds ??= kindsOf(this.all);
    return this.#kinds;
  }

  /** Whether objects of the kind have a namespace. Undefined for a group that is not of Kubernetes, if no file has a CRD of it. */
  isNamespaced(apiVersion: string, kind: string): boolean | undefined {
    const { group } = parseApiVersion(apiVersion);
    const isKnown =
      !group.includes(".") ||
      group.endsWith(".k8s.io") ||
      this.all.some((each) => isCrd(each) && fieldsAt(each, "spec")["group"] === group);
    return isKnown ? this.kinds.resourceOf(apiVersion, kind).namespaced : undefined;
  }

  /** Undefined if it is not known. Then it is one of `missing`. */
  find(object: ObjectName): JsonObject | undefined {
    const found = this.#data.get(keyOf(object));
    if (found === undefined) this.#missing.set(keyOf(object), object);
    else this.#found.add(found);
    return found;
  }

  /** Whether a converter asked for this object. */
  isUsed(object: JsonObject): boolean {
    return this.#found.has(object);
  }

  /** The objects that the converters asked for, and that are not known. */
  get missing(): ObjectName[] {
    return [...this.#missing.values()];
  }
}
