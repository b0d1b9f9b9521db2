/** Converts the annotations of emberstack's Reflector to bindings and grants. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import {
  annotationsOf,
  annotationWith,
  ignoreContents,
  isSecretOrConfigMap,
  type Kind,
  labelsOf,
  patternsOf,
  pullCopy,
  pushCopies,
} from "./copies.ts";
import { Grants } from "./grants.ts";
import type { Input, Tool } from "./migration.ts";

const PREFIX = "reflector.v1.k8s.emberstack.com/";
/** What Reflector notes on copies. */
const NOTES = ["reflected-version", "reflected-at", "auto-reflects"];

const annotation = annotationWith(PREFIX);

export const REFLECTOR: Tool = {
  title: "Reflector",
  objects: `Secrets and ConfigMaps with annotations ${PREFIX}…`,
  owns: (object) => {
    const annotations = annotationsOf(PREFIX, object);
    // Reflector creates the copies with auto-reflects by itself.
    return !isTrue(annotations["auto-reflects"]) && Object.keys(annotations).some((name) => !NOTES.includes(name));
  },
  convert(inputs, output) {
    const grants = new Grants();
    const known = inputs.filter(({ root, apiVersion, kind }) => {
      const isKnown = isSecretOrConfigMap({ apiVersion, kind });
      if (!isKnown) root.refuse("convert the Secret that this object creates, with its annotations, instead");
      return isKnown;
    });
    const selections = new Map(known.map((input) => [input, selectionsOf(input)]));
    for (const [input, { allowed }] of selections)
      if (allowed !== undefined)
        grants.add(
          { kind: input.kind as Kind, namespace: input.namespace, name: input.name },
          { namespaceSelector: allowed },
          input,
        );
    for (const [input, { pushed }] of selections) {
      if (pushed !== undefined) pushCopies(input, pushed, output, {});
      const reflects = annotation(input, "reflects");
      if (reflects.exists) pullCopy(input, reflects, grants, output);
    }
    grants.write(output);
  },
};

const isTrue = (value: unknown) => /^true$/i.test(String(value));

const ALL: JsonObject = { names: ["*"] };

/** The namespaces that may copy an object that they name, and those into which it is copied. */
function selectionsOf(input: Input): { allowed?: JsonObject | undefined; pushed?: JsonObject | undefined } {
  ignoreContents(input);
  for (const name of NOTES) annotation(input, name).ignore();
  input.root.field("metadata", "labels").ignore();
  for (const [key, value] of input.root.field("metadata", "annotations").entries())
    if (!key.startsWith(PREFIX)) value.ignore();
  const isAllowed = isTrue(annotation(input, "reflection-allowed").text());
  const isPushed = isTrue(annotation(input, "reflection-auto-enabled").text());
  const allowed = namespacesOf(input, "reflection-allowed-namespaces");
  const pushed = namespacesOf(input, "reflection-auto-namespaces");
  if (!isAllowed) return {};
  if (!isPushed) return { allowed: allowed === "unknown" ? undefined : (allowed ?? ALL) };
  const both = allowed === "unknown" || pushed === "unknown" ? undefined : bothOf(allowed, pushed);
  if (both === "unknown")
    annotation(input, "reflection-auto-namespaces").lose(
      "a namespace must match both lists, which one selector can't express; write the names that match both",
    );
  return { pushed: both === "unknown" ? undefined : both };
}

/** The selector of a list and of label selectors; undefined for all namespaces. */
function namespacesOf(input: Input, name: string): JsonObject | undefined | "unknown" {
  const [list, labels] = [annotation(input, name), annotation(input, `${name}-selector`)];
  const hasList = (list.text() ?? "").trim() !== "";
  const names = hasList ? patternsOf(list) : undefined;
  const selector = labels.exists ? labelsOf(labels) : undefined;
  if ((hasList && names === undefined) || (labels.exists && selector === undefined)) return "unknown";
  if (names !== undefined && names.length > 16) list.lose("more than 16 entries; move the others to a second target");
  const all = { ...(names !== undefined && { names: names.slice(0, 16) }), ...selector };
  return Object.keys(all).length === 0 || (selector === undefined && names?.includes("*")) ? undefined : all;
}

/** Selects the namespaces that match both. Undefined in the arguments selects all. */
function bothOf(a: JsonObject | undefined, b: JsonObject | undefined): JsonObject | "unknown" {
  if (a === undefined || b === undefined || JSON.stringify(a) === JSON.stringify(b)) return b ?? a ?? ALL;
  const [first, second] = [a["names"], b["names"]] as [string[] | undefined, string[] | undefined];
  const expressions = [a, b].flatMap((each) => (each["matchExpressions"] as JsonObject[] | undefined) ?? []);
  const rest = expressions.length > 0 ? { matchExpressions: expressions } : {};
  if (first === undefined || second === undefined)
    return { ...((first ?? second) ? { names: (first ?? second) as string[] } : {}), ...rest };
  if ([...first, ...second].some((name) => /[*?]/.test(name))) return "unknown";
  const names = first.filter((name) => second.includes(name));
  return names.length > 0 ? { names, ...rest } : "unknown";
}
