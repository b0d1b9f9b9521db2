/** Collects the SecretGrants that the converted bindings need to read objects of other namespaces. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import type { Input, Output } from "./migration.ts";

export interface Granted {
  readonly kind: "Secret" | "ConfigMap" | "VaultConnection";
  readonly namespace: string;
  readonly name: string;
}

interface Grant extends Granted {
  readonly from: JsonObject[];
  readonly inputs: Set<Input>;
}

const MAX_FROM = 64;

export class Grants {
  readonly #grants = new Map<string, Grant>();

  /** Permits the bindings that `from` matches. A binding needs no grant for an object of its own namespace. */
  add(granted: Granted, from: JsonObject, input: Input): void {
    if (from["namespace"] === granted.namespace) return;
    const key = `${granted.kind} ${granted.namespace}/${granted.name}`;
    const grant = this.#grants.get(key) ?? { ...granted, from: [], inputs: new Set() };
    this.#grants.set(key, grant);
    grant.inputs.add(input);
    if (!grant.from.some((each) => JSON.stringify(each) === JSON.stringify(from))) grant.from.push(from);
  }

  /** Whether one of the grants names the object. */
  has({ kind, namespace, name }: Granted): boolean {
    return this.#grants.has(`${kind} ${namespace}/${name}`);
  }

  write(output: Output): void {
    for (const { kind, namespace, name, from, inputs } of this.#grants.values())
      for (let at = 0; at < from.length; at += MAX_FROM)
        output.add("SecretGrant", { name, namespace }, { from: from.slice(at, at + MAX_FROM), to: [{ kind, name }] }, [
          ...inputs,
        ]);
  }
}
