/** Converts annotations that copy Secrets and ConfigMaps, for the tools that have such annotations. Pure. */
import { fieldsAt } from "../apimachinery/fields.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import type { Grants } from "./grants.ts";
import type { Input, Output } from "./migration.ts";
import { compact, exceptNames, sourceField } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

export type Kind = "Secret" | "ConfigMap";

export const isSecretOrConfigMap = ({ apiVersion, kind }: JsonObject): boolean =>
  apiVersion === "v1" && (kind === "Secret" || kind === "ConfigMap");

/** The annotations of a tool, by their names after its prefix. */
export function annotationsOf(prefix: string, object: JsonObject): JsonObject {
  const annotations = Object.entries(fieldsAt(object, "metadata", "annotations"));
  return Object.fromEntries(
    annotations.flatMap(([key, value]) => (key.startsWith(prefix) ? [[key.slice(prefix.length), value]] : [])),
  );
}

/** Finds an annotation of a tool by its name after the prefix. */
export const annotationWith =
  (prefix: string) =>
  ({ root }: Input, name: string): Tracked =>
    root.field("metadata", "annotations", `${prefix}${name}`);

/** Handles everything but the annotations. No value is read: the copies get theirs from the cluster. */
export function ignoreContents({ root, kind }: Input): void {
  for (const field of ["data", "binaryData", "stringData", "immutable"]) root.field(field).ignore();
  if (kind === "ConfigMap") return;
  root.field("type").ignore();
}

const NAME = /^\^?((?:[a-z0-9-]|\.[*+]?)+)\$?$/;

/** A regular expression of names as a pattern of Inlay, or undefined if there is none with the same matches. */
export function patternOf(expression: string): string | undefined {
  const [, body] = NAME.exec(expression.trim()) ?? [];
  return body?.replaceAll(".*", "*").replaceAll(".+", "?*").replaceAll(".", "?");
}

/** The patterns of a list with commas. Reports the others, and returns undefined if none is left. */
export function patternsOf(list: Tracked): string[] | undefined {
  const entries = (list.text() ?? "").split(",").filter((entry) => entry.trim() !== "");
  const patterns = entries.map(patternOf);
  for (const [at, pattern] of patterns.entries())
    if (pattern === undefined)
      list.lose(
        `entry ${at + 1} is a regular expression that Inlay has no pattern for; write names, with * for any characters and ? for one`,
      );
  const known = patterns.filter((pattern) => pattern !== undefined);
  return known.length > 0 ? known : undefined;
}

const LABELS =
  /^\s*(?:[A-Za-z0-9._/-]+\s*(?:==?|!=)\s*[A-Za-z0-9._-]*|!?[A-Za-z0-9._/-]+|[A-Za-z0-9._/-]+\s+(?:in|notin)\s*\([^()]*\))\s*$/;
/** A comma that is not inside of parentheses. */
const COMMA = /,(?![^()]*\))/;

/** A label selector in the notation of kubectl as the fields of a selector. Reports another text. */
export function labelsOf(selector: Tracked): JsonObject | undefined {
  const requirements = (selector.text() ?? "").split(COMMA).filter((each) => each.trim() !== "");
  if (requirements.length === 0 || !requirements.every((each) => LABELS.test(each))) {
    selector.lose("not a label selector, such as team=web; write namespaceSelector by hand");
    return undefined;
  }
  return { matchExpressions: requirements.map((each) => requirementOf(each.trim())) };
}

function requirementOf(text: string): JsonObject {
  const [, key = "", operator, values = ""] = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/.exec(text) ?? [];
  if (operator !== undefined)
    return {
      key,
      operator: operator === "in" ? "In" : "NotIn",
      values: values.split(",").map((value) => value.trim()),
    };
  const [, left = "", mark, right = ""] = /^([^\s=!]+)\s*(==?|!=)\s*(\S*)$/.exec(text) ?? [];
  if (mark !== undefined) return { key: left, operator: mark === "!=" ? "NotIn" : "In", values: [right] };
  return text.startsWith("!")
    ? { key: text.slice(1).trim(), operator: "DoesNotExist" }
    : { key: text, operator: "Exists" };
}

export interface CopyOptions {
  readonly name?: string;
  readonly labels?: JsonObject | undefined;
  readonly isOnce?: boolean;
  readonly notes?: readonly string[];
}

/** A binding in the namespace of an object that copies it into other namespaces. */
export function pushCopies(
  input: Input,
  selector: JsonObject,
  output: Output,
  { name, labels, isOnce = false, notes = [] }: CopyOptions,
): void {
  const type = input.kind === "Secret" ? input.root.field("type").text() : undefined;
  const manifest = compact({ type, metadata: labels === undefined ? undefined : { labels } });
  const target = compact({
    apiVersion: "v1",
    kind: input.kind,
    name: input.name,
    namespaceSelector: exceptNames(selector, [input.namespace]),
    mode: isOnce ? "Once" : undefined,
    create: { adopt: "Equal", manifest },
    fields: [{ path: "data", from: { source: "source" } }],
  });
  const spec = {
    acknowledge: ["ReadableCopies"],
    sources: [{ name: "source", [sourceField(input.kind)]: { name: input.name } }],
    targets: [target],
  };
  output.add("SecretBinding", { name: name ?? input.name, namespace: input.namespace }, spec, [input], notes);
}

/** A binding in the namespace of a copy that names its source. */
export function pullCopy(input: Input, from: Tracked, grants: Grants, output: Output, isOnce = false): void {
  const [namespace = "", name = "", ...more] = (from.text() ?? "").trim().split("/");
  if (namespace === "" || name === "" || more.length > 0) {
    from.lose("must be namespace/name; correct it");
    return;
  }
  const kind = input.kind as Kind;
  const spec = {
    acknowledge: ["ReadableCopies"],
    sources: [
      {
        name: "source",
        [sourceField(kind)]: compact({
          name,
          namespace: namespace === input.namespace ? undefined : namespace,
        }),
      },
    ],
    targets: [
      compact({
        apiVersion: "v1",
        kind,
        name: input.name,
        mode: isOnce ? "Once" : undefined,
        onConflict: "Force",
        fields: [{ path: "data", from: { source: "source" } }],
      }),
    ],
  };
  output.add("SecretBinding", { name: input.name, namespace: input.namespace }, spec, [input]);
  const granted = { kind, namespace, name } as const;
  if (!grants.has(granted)) grants.add(granted, { namespace: input.namespace }, input);
}
