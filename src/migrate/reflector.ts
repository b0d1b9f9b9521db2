/** Converts the annotations of emberstack's Reflector to bindings and grants. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import { type Annotated, copyTool, firstNames, isListed, labelsOf, patternsOf } from "./copies.ts";
import { describe, type Tool } from "./migration.ts";

export const REFLECTOR: Tool = copyTool({
  title: "Reflector",
  prefix: "reflector.v1.k8s.emberstack.com/",
  notes: ["reflected-version", "reflected-at", "auto-reflects"],
  consent: "reflection-allowed and its lists",
  // Reflector creates the copies with auto-reflects by itself.
  isCreated: (annotations) => isTrue(annotations["auto-reflects"]),
  permits,
  refuse: ({ root }) => root.refuse("convert the Secret that this object creates, with its annotations, instead"),
  convert(annotated, copies) {
    const { output } = copies;
    const selections = annotated.map((source) => ({ source, ...selectionsOf(source) }));
    for (const { source, allowed = [] } of selections)
      for (const { exceptNames: _, ...namespaceSelector } of allowed)
        output.grant(source, { namespaceSelector }, source.input);
    for (const { source, pushed } of selections) {
      const reflects = source.annotation("reflects");
      if (reflects.exists) copies.pull(source, reflects);
      else if (pushed !== undefined) copies.push(source, pushed, { rule: { exact: true } });
      if (reflects.exists && pushed !== undefined)
        output.remark(`${describe(source.input)}: reflection-auto-enabled has no effect beside reflects`);
    }
  },
});

const isTrue = (value: unknown) => /^true$/i.test(String(value).trim());

const isSet = (value: unknown) => String(value ?? "").trim() !== "";

/** Without a list and a selector, a source permits copies everywhere. */
function permits(annotation: (name: string) => unknown, namespace: string): boolean | undefined {
  const list = annotation("reflection-allowed-namespaces");
  const hasLabels = isSet(annotation("reflection-allowed-namespaces-selector"));
  if (!isTrue(annotation("reflection-allowed"))) return false;
  if (!isSet(list)) return hasLabels ? undefined : true;
  return isListed(list, namespace) || (hasLabels ? undefined : isListed(list, namespace));
}

const ALL: JsonObject = { names: ["*"] };

interface Selections {
  /** The namespaces that may copy an object that they name. */
  readonly allowed?: readonly JsonObject[] | undefined;
  /** Those into which it is copied. */
  readonly pushed?: readonly JsonObject[] | undefined;
}

function selectionsOf(source: Annotated): Selections {
  const { annotation } = source;
  const isAllowed = isTrue(annotation("reflection-allowed").text());
  const isPushed = isTrue(annotation("reflection-auto-enabled").text());
  const allowed = namespacesOf(source, "reflection-allowed-namespaces");
  const pushed = namespacesOf(source, "reflection-auto-namespaces");
  if (!isAllowed) return {};
  if (!isPushed) return { allowed: allowed === "unknown" ? undefined : allowed };
  const both = allowed === "unknown" || pushed === "unknown" ? undefined : bothOf(allowed, pushed);
  if (both === "unknown")
    annotation("reflection-auto-namespaces").lose(
      "a namespace must match both lists, which one selector can't express; write the names that match both",
    );
  return { pushed: both === "unknown" ? undefined : both };
}

/** The selectors of a list and of labels: a namespace matches one of them. */
function namespacesOf({ annotation }: Annotated, name: string): readonly JsonObject[] | "unknown" {
  const [list, labels] = [annotation(name), annotation(`${name}-selector`)];
  const [hasList, hasLabels] = [list, labels].map((each) => isSet(each.text()));
  const names = hasList ? patternsOf(list) : undefined;
  const selector = hasLabels ? labelsOf(labels) : undefined;
  if ((hasList && names === undefined) || (hasLabels && selector === undefined)) return "unknown";
  const first = names && firstNames(list, names);
  if (first?.includes("*") || (first === undefined && selector === undefined)) return [ALL];
  return [
    ...(first === undefined ? [] : [{ names: first }]),
    ...(selector === undefined ? [] : [{ ...selector, ...(first !== undefined && { exceptNames: first }) }]),
  ];
}

/** Selects the namespaces that match both. */
function bothOf(a: readonly JsonObject[], b: readonly JsonObject[]): readonly JsonObject[] | "unknown" {
  if (a.includes(ALL) || JSON.stringify(a) === JSON.stringify(b)) return b;
  if (b.includes(ALL)) return a;
  const [[first, ...moreOfFirst], [second, ...moreOfSecond]] = [a, b];
  if (first === undefined || second === undefined || moreOfFirst.length + moreOfSecond.length > 0) return "unknown";
  const [names, others] = [first["names"], second["names"]] as [string[] | undefined, string[] | undefined];
  if (names === undefined || others === undefined) {
    const expressions = [first, second].flatMap((each) => (each["matchExpressions"] as JsonObject[] | undefined) ?? []);
    const chosen = names ?? others;
    return [{ ...(chosen !== undefined && { names: chosen }), matchExpressions: expressions }];
  }
  if ([...names, ...others].some((name) => /[*?]/.test(name))) return "unknown";
  const both = names.filter((name) => others.includes(name));
  return both.length > 0 ? [{ names: both }] : "unknown";
}
