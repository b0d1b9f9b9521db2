/** Collects the SecretGrants that the converted bindings need to read objects of other namespaces. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import type { Input, Output } from "./migration.ts";

export interface Granted {
  readonly kind: "Secret" | "ConfigMap" | "VaultConnection";
  readonly namespace: string;
  readonly name: string;
}

interface Grant extends Granted {
  /** By their JSON, with the objects that need them. */
  readonly from: Map<string, { readonly entry: JsonObject; readonly inputs: Set<Input> }>;
}

const MAX_FROM = 64;

export class Grants {
  readonly #grants = new Map<string, Grant>();

  /** Permits the bindings that `from` matches. A binding needs no grant for an object of its own namespace. */
  add(granted: Granted, from: JsonObject, input: Input): void {
    if (from["namespace"] === granted.namespace) return;
    const key = `${granted.kind} ${granted.namespace}/${granted.name}`;
    const grant = this.#grants.get(key) ?? { ...granted, from: new Map() };
    this.#grants.set(key, grant);
    const text = JSON.stringify(from);
    const known = grant.from.get(text) ?? { entry: from, inputs: new Set() };
    grant.from.set(text, known);
    known.inputs.add(input);
  }

  /** Whether one of the grants names the object. */
  has({ kind, namespace, name }: Granted): boolean {
    return this.#grants.has(`${kind} ${namespace}/${name}`);
  }

  write(output: Output): void {
    for (const { kind, namespace, name, from } of this.#grants.values()) {
      const all = [...from.values()];
      for (let at = 0; at < all.length; at += MAX_FROM) {
        const some = all.slice(at, at + MAX_FROM);
        const inputs = new Set(some.flatMap((each) => [...each.inputs]));
        const spec = { from: some.map(({ entry }) => entry), to: [{ kind, name }] };
        output.add("SecretGrant", { name, namespace }, spec, [...inputs]);
      }
    }
  }
}
