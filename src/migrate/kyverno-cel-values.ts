/** Converts Kyverno's MutatingPolicies that write values of Secrets and ConfigMaps into fields to bindings. Pure. */
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { argumentsOf, type Cel, operandsOf, pathOf, pointerOf, textOf } from "./cel-syntax.ts";
import { call, type Expression, NotTranslated, reference } from "./go-expression.ts";
import { translateWith } from "./go-template.ts";
import { dataOf } from "./kyverno-cel.ts";
import type { Identity } from "./kyverno-cel-match.ts";
import { selectedBy, type Targets } from "./kyverno-cel-targets.ts";
import { NOTHING } from "./kyverno-draft.ts";
import type { Results } from "./kyverno-fields.ts";
import { KEEP_RULE, LEFT_OUT } from "./kyverno-match.ts";
import type { DataObject } from "./kyverno-value.ts";
import type { Input } from "./migration.ts";
import { compact, sourceField, sourceName } from "./parts.ts";
import { fieldsOfValue, patchedOf } from "./patch.ts";
import type { Tracked } from "./tracked.ts";

/** The patch writes keys of Secrets into fields of the targets. */
export function addValues(
  input: Input,
  spec: Tracked,
  kind: "Secret" | "ConfigMap",
  trigger: Identity,
  targets: Targets,
  patch: Cel,
  expression: Tracked,
  { drafts, grants, output, kinds }: Results,
): void {
  const { constraints } = targets;
  const [group = "", plural = ""] = [constraints.groups[0], constraints.resources[0]];
  const apiVersion = [group, constraints.versions[0] ?? ""].filter((each) => each !== "").join("/");
  const resource = kinds.byPlural(apiVersion, plural);
  if ([constraints.groups, constraints.versions, constraints.resources].some((each) => each.length !== 1))
    constraints.place.lose("write one group, version and resource, and convert again");
  if (resource === undefined)
    constraints.place.lose(`the kind of ${plural} is unknown; add its CRD to the files, and convert again`);
  if (targets.consumersBy.length > 0)
    constraints.place.lose("conditions on pods are for workloads; write targets by hand");
  if (trigger.namespaces === undefined)
    constraints.place.lose("the Secret has no fixed namespace; add it, and convert again");
  const isWhole = drafts.isUnderstood(input, spec);
  if (resource === undefined) {
    spec.ignore();
    return;
  }
  const namespaces = (trigger.namespaces ?? []).filter((each) => !LEFT_OUT.includes(each));
  for (const namespace of namespaces)
    for (const name of trigger.names) {
      const values = new Values({ kind, namespace, name });
      const fields = fieldsAt(expression, () => values.jsonOf(patch), apiVersion, values);
      const sources = [...values.sources].map(([source, of]) => {
        if (of.namespace !== namespace) grants.add(of, { namespace }, input);
        const other = of.namespace === namespace ? undefined : of.namespace;
        return { name: source, [sourceField(of.kind)]: compact({ name: of.name, namespace: other }) };
      });
      if (fields.length === 0 || sources.length === 0) {
        expression.lose(KEEP_RULE);
        continue;
      }
      const where =
        targets.areBeside || targets.namespaces?.join() === namespace
          ? {}
          : {
              namespaceSelector:
                targets.namespaces === undefined ? { exceptNames: LEFT_OUT } : { names: [...targets.namespaces] },
            };
      const selected = isWhole
        ? selectedBy(constraints).map((each) => ({ ...each, ...(resource.namespaced ? where : {}) }))
        : [{ selector: NOTHING }];
      const spec = { sources, targets: selected.map((each) => ({ apiVersion, kind: resource.kind, ...each, fields })) };
      const notes = isWhole
        ? []
        : ["Writes nothing. Inlay does not know all of what the policy selects: write the targets by hand."];
      output.add("SecretBinding", { name: input.name, namespace }, spec, [input], notes);
    }
  if (!isWhole) drafts.selectNothing(input, [], "");
}

function fieldsAt(place: Tracked, make: () => JsonValue, apiVersion: string, values: Values): JsonObject[] {
  try {
    return fieldsOfValue(place, make(), patchedOf(apiVersion), (text) => values.translate(text));
  } catch (error) {
    if (!(error instanceof NotTranslated)) throw error;
    place.lose(`the expression has ${error.message}; write the binding by hand`);
    return [];
  }
}

/** Reads values of Secrets and ConfigMaps in the value of a patch. */
class Values {
  readonly sources = new Map<string, DataObject>();
  readonly #expressions: Expression[] = [];
  readonly #trigger: DataObject;

  constructor(trigger: DataObject) {
    this.#trigger = trigger;
  }

  /** The patch as JSON, with `{{0}}` for the first expression. */
  jsonOf(tree: Cel): JsonValue {
    if (tree.kind === "map")
      return Object.fromEntries(
        tree.entries.map(([key, value]) => {
          const name = textOf(key);
          if (name === undefined) throw new NotTranslated("a computed key");
          return [name, name === "path" ? (pointerOf(value) ?? this.jsonOf(value)) : this.jsonOf(value)];
        }),
      );
    if (tree.kind === "list") return tree.items.map((each) => this.jsonOf(each));
    if (tree.kind === "value") {
      if (typeof tree.value === "string" && tree.value.includes("{{")) throw new NotTranslated("braces in a text");
      return tree.value;
    }
    return this.#textOf(tree);
  }

  translate(text: string) {
    return translateWith(text, (body) => this.#expressions[Number(body)] ?? { kind: "literal", value: body });
  }

  #textOf(tree: Cel): string {
    const text = textOf(tree);
    if (text !== undefined) return text;
    const sum = operandsOf(tree, "+");
    if (sum !== undefined) return sum.map((each) => this.#textOf(each)).join("");
    this.#expressions.push(this.#expressionOf(tree));
    return `{{${this.#expressions.length - 1}}}`;
  }

  #expressionOf(tree: Cel): Expression {
    if (
      tree.kind === "call" &&
      tree.of === undefined &&
      ["string", "dyn"].includes(tree.name) &&
      tree.args.length === 1
    )
      return this.#expressionOf(tree.args[0] as Cel);
    const [encoded] = argumentsOf(tree, "base64", "decode") ?? [];
    if (encoded !== undefined) return call("base64decode", this.#expressionOf(encoded));
    const [plain] = argumentsOf(tree, "base64", "encode") ?? [];
    if (plain !== undefined) return call("base64", this.#expressionOf(plain));
    const isKey = tree.kind === "field" && tree.of.kind === "field" && tree.of.name === "data";
    if (!isKey || tree.of.kind !== "field") throw new NotTranslated("a value that is no key of a Secret or ConfigMap");
    const object = tree.of.of;
    const read = pathOf(object)?.join(".") === "request.object" ? this.#trigger : dataOf(object);
    if (read?.name === undefined) throw new NotTranslated("a value that is no key of a Secret or ConfigMap");
    const value = reference(this.#sourceOf({ ...read, name: read.name }), [tree.name]);
    // In the API, the values of a Secret are encoded.
    return read.kind === "Secret" ? call("base64", value) : value;
  }

  #sourceOf(of: DataObject): string {
    for (const [name, { kind, namespace, name: ofName }] of this.sources)
      if (kind === of.kind && namespace === of.namespace && ofName === of.name) return name;
    const name = sourceName(of.name, [...this.sources.keys()]);
    this.sources.set(name, of);
    return name;
  }
}
