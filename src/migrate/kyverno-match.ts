/** Reads match, exclude and conditions of Kyverno rules, as far as Inlay has the same selection. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import { compact, exceptNames, labelSelectorOf } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

export const KEEP_RULE = "Inlay has nothing for this rule; keep Kyverno for it";

/** Objects that a rule matches: one block of `any` or `all`, or the older form without them. */
export interface Match {
  readonly block: Tracked;
  readonly kinds: readonly string[];
  readonly names: readonly string[];
  readonly operations: readonly string[];
  /** Handles the namespaces: call it only where they count. */
  namespaces(): string[];
  /** Handles the selector: call it only where it counts. */
  selector(): JsonObject | undefined;
}

export function matchesOf(field: Tracked): Match[] {
  const all = field.field("all").list();
  if (all.length > 1) field.field("all").lose("several blocks must match together; write one block, and convert again");
  const blocks = [
    ...field.field("any").list(),
    ...all.slice(0, 1),
    ...(field.field("resources").exists ? [field] : []),
  ];
  return blocks.map((block) => {
    const resources = block.field("resources");
    const name = resources.field("name").text();
    return {
      block,
      kinds: resources.field("kinds").texts().map(kindOf),
      names: [...(name === undefined ? [] : [name]), ...resources.field("names").texts()],
      operations: resources.field("operations").texts(),
      namespaces: () => resources.field("namespaces").texts(),
      selector: () => selectorOf(resources.field("selector")),
    };
  });
}

/** `v1/Secret` and `Secret` are the same kind here. */
export const kindOf = (text: string): string => text.replace(/^\*?\/?v1\//, "");

export const isExact = (name: string): boolean => /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name);

/** Kyverno has wildcards in labels, and Inlay has not. */
function selectorOf(selector: Tracked): JsonObject | undefined {
  if (!selector.exists) return undefined;
  if (/[*?]/.test(JSON.stringify(selector.peek()))) {
    selector.refuse("labels with wildcards can't be selected; write matchExpressions by hand");
    return undefined;
  }
  return labelSelectorOf(selector);
}

/** The selectors of namespaces that a rule about Namespaces matches: one for each block. `except` are further names. */
export function namespaceSelectorsOf(rule: Tracked, except: readonly string[]): JsonObject[] {
  const excluded = matchesOf(rule.field("exclude"));
  const excepted = [...new Set([...excluded.flatMap(({ names }) => names), ...except])];
  const expressions = excluded.flatMap(({ names, block, ...match }) => {
    const selector = match.selector();
    if (selector === undefined) return [];
    const [label, ...more] = Object.entries((selector["matchLabels"] as JsonObject | undefined) ?? {});
    if (names.length === 0 && label !== undefined && more.length === 0 && selector["matchExpressions"] === undefined)
      return [{ key: label[0], operator: "NotIn", values: [label[1]] } as JsonObject];
    block.lose(
      "an exclusion by several labels, or by name and label, can't be selected; write namespaceSelector by hand",
    );
    return [];
  });
  return matchesOf(rule.field("match")).map(({ names, ...match }) => {
    const { matchExpressions, ...labels } = match.selector() ?? {};
    const all = [...((matchExpressions as JsonObject[] | undefined) ?? []), ...expressions];
    const selected = compact({
      names: names.length > 0 && !names.includes("*") ? [...names] : undefined,
      ...labels,
      matchExpressions: all.length > 0 ? all : undefined,
    });
    return exceptNames(selected, excepted);
  });
}

const OPERATION = /^\{\{\s*request\.operation(\s*\|\|\s*'BACKGROUND')?\s*\}\}$/;

/** The operations that conditions such as `{{ request.operation }} AnyIn [UPDATE, DELETE]` require. Other conditions are reported. */
export function operationsIn(conditions: Tracked): string[] {
  const isList = Array.isArray(conditions.peek());
  const all = isList ? conditions.list() : [...conditions.field("all").list(), ...conditions.field("any").list()];
  return all.flatMap((condition) => {
    const [key, operator, value] = ["key", "operator", "value"].map((name) => condition.field(name)) as [
      Tracked,
      Tracked,
      Tracked,
    ];
    const isOperation = OPERATION.test(String(key.peek())) && /^(Equals?|In|AnyIn)$/.test(String(operator.peek()));
    if (!isOperation) {
      condition.refuse("Inlay has no such condition; check whether you need it");
      return [];
    }
    key.ignore();
    operator.ignore();
    return Array.isArray(value.peek()) ? value.texts() : [value.text() ?? ""];
  });
}
