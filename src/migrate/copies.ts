/** Converts annotations that copy Secrets and ConfigMaps, for the tools that have such annotations, and what all copies have. Pure. */
import { fieldsAt } from "../apimachinery/fields.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import type { Granted, Grants } from "./grants.ts";
import type { KnownObjects, ObjectName } from "./known-objects.ts";
import type { Input, Output } from "./migration.ts";
import { compact, exceptNames, sourceField } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

type Kind = "Secret" | "ConfigMap";

/** A Secret or ConfigMap with annotations of a tool: an object in the files, or the Secret of a Certificate of cert-manager. */
export interface Annotated extends ObjectName {
  readonly kind: Kind;
  readonly input: Input;
  /** By its name after the prefix of the tool. */
  annotation(name: string): Tracked;
}

const isCertificate = ({ apiVersion, kind }: JsonObject): boolean =>
  String(apiVersion).startsWith("cert-manager.io/") && kind === "Certificate";

/** The annotations of a tool, by their names after its prefix. Those of a Certificate include the ones that it gives its Secret. */
export function annotationsOf(prefix: string, object: JsonObject): JsonObject {
  const ofSecret = isCertificate(object) ? fieldsAt(object, "spec", "secretTemplate", "annotations") : {};
  const annotations = Object.entries({ ...fieldsAt(object, "metadata", "annotations"), ...ofSecret });
  return Object.fromEntries(
    annotations.flatMap(([key, value]) => (key.startsWith(prefix) ? [[key.slice(prefix.length), value]] : [])),
  );
}

/**
 * The Secrets and ConfigMaps among the inputs. Handles everything but the annotations of the tool. A Certificate whose Secret is among the
 * inputs adds nothing. `others` reports the inputs of other kinds.
 */
export function annotatedOf(prefix: string, inputs: readonly Input[], others: (input: Input) => void): Annotated[] {
  const isData = ({ apiVersion, kind }: Input) => apiVersion === "v1" && (kind === "Secret" || kind === "ConfigMap");
  const objects = inputs.filter(isData).map((input) => annotatedObject(prefix, input));
  const secrets = new Set(
    objects.flatMap(({ kind, namespace, name }) => (kind === "Secret" ? `${namespace}/${name}` : [])),
  );
  const ofCertificates = inputs.flatMap((input) => {
    if (isData(input)) return [];
    if (!isCertificate({ apiVersion: input.apiVersion, kind: input.kind })) {
      others(input);
      return [];
    }
    const secret = secretOf(prefix, input);
    if (!secrets.has(`${secret.namespace}/${secret.name}`)) return [secret];
    input.root.ignore();
    return [];
  });
  return [...objects, ...ofCertificates];
}

/** No value is read: the copies get theirs from the cluster. */
function annotatedObject(prefix: string, input: Input): Annotated {
  const { root, kind, namespace, name } = input;
  for (const field of ["data", "binaryData", "stringData", "immutable", ...(kind === "Secret" ? ["type"] : [])])
    root.field(field).ignore();
  root.field("metadata", "labels").ignore();
  ignoreOthers(root.field("metadata", "annotations"), prefix);
  const annotation = (each: string) => root.field("metadata", "annotations", `${prefix}${each}`);
  return { kind: kind as Kind, namespace, name, input, annotation };
}

/** Older versions of Reflector read annotations of the Certificate itself, with `secret-` before their names. */
function secretOf(prefix: string, input: Input): Annotated {
  const [metadata, spec] = [input.root.field("metadata"), input.root.field("spec")];
  const template = spec.field("secretTemplate");
  for (const [key, field] of spec.entries()) if (key !== "secretTemplate") field.ignore();
  for (const field of [metadata.field("labels"), template.field("labels")]) field.ignore();
  for (const each of [metadata, template]) ignoreOthers(each.field("annotations"), prefix);
  const name = spec.field("secretName").text() ?? "";
  return {
    kind: "Secret",
    namespace: input.namespace,
    name,
    input,
    annotation: (each) => {
      const own = template.field("annotations", `${prefix}${each}`);
      return own.exists ? own : metadata.field("annotations", `${prefix}secret-${each}`);
    },
  };
}

/** Other annotations belong to other programs. */
function ignoreOthers(annotations: Tracked, prefix: string): void {
  for (const [key, value] of annotations.entries()) if (!key.startsWith(prefix)) value.ignore();
}

/** What the copies of a tool have besides the data and the type. */
interface CopyRule {
  readonly labels?: boolean;
  readonly annotations?: boolean;
  /** The tool removes keys that others add. */
  readonly exact?: boolean;
}

/** How a binding creates such copies, and adopts those of the tool. */
export function copyCreate({ labels, annotations, exact }: CopyRule, manifest: JsonObject = {}): JsonObject {
  const copy = compact({
    labels: labels === true ? ["*"] : undefined,
    annotations: annotations === true ? ["*"] : undefined,
  });
  return compact({
    adopt: "Equal",
    exact: exact === true ? true : undefined,
    copy: Object.keys(copy).length > 0 ? copy : undefined,
    manifest,
  });
}

/** The fields that copy all data of the source with this name. */
export const copyFields = (source: string): JsonObject[] => [{ path: "data", from: { source } }];

const NAME = /^\^?((?:[a-z0-9-]|\.[*+]?)+)\$?$/;

/** A regular expression of names as a pattern of Inlay, or undefined if there is none with the same matches. */
function patternOf(expression: string): string | undefined {
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

interface CopyOptions {
  readonly name?: string;
  readonly rule?: CopyRule;
  readonly isOnce?: boolean;
}

/** A binding in the namespace of an object that copies it into other namespaces. No two selectors match the same namespace. */
export function pushCopies(
  { kind, namespace, name, input }: Annotated,
  selectors: readonly JsonObject[],
  output: Output,
  { name: own = name, rule = {}, isOnce = false }: CopyOptions = {},
): void {
  const targets = selectors.map(({ exceptNames: except = [], ...selector }) =>
    compact({
      apiVersion: "v1",
      kind,
      name,
      namespaceSelector: exceptNames(selector, [...(except as string[]), namespace]),
      mode: isOnce ? "Once" : undefined,
      create: copyCreate(rule),
      fields: copyFields("source"),
    }),
  );
  const spec = {
    acknowledge: ["ReadableCopies"],
    sources: [{ name: "source", [sourceField(kind)]: { name } }],
    targets,
  };
  output.add("SecretBinding", { name: own, namespace }, spec, [input]);
}

/** What the copies of a tool that name their sources need. */
export interface Pulls {
  readonly prefix: string;
  /** All objects with annotations of the tool. */
  readonly annotated: readonly Annotated[];
  readonly known: KnownObjects;
  readonly grants: Grants;
  readonly output: Output;
  /** The annotations by which a source permits its copies. */
  readonly consent: string;
  /** Whether a source with these annotations permits a copy in the namespace. Undefined if the files do not say it. */
  permits(annotation: (name: string) => unknown, namespace: string): boolean | undefined;
}

/** Whether one of the expressions matches the name. Undefined if only those could that are no patterns of Inlay. */
export function isListed(list: unknown, name: string): boolean | undefined {
  const entries = String(list ?? "")
    .split(",")
    .filter((entry) => entry.trim() !== "");
  const patterns = entries.map(patternOf);
  if (nameMatcher(patterns.filter((pattern) => pattern !== undefined))(name)) return true;
  return patterns.includes(undefined) ? undefined : false;
}

/** A binding in the namespace of a copy that names its source. The copy exists, so it has its type and labels. */
export function pullCopy(
  { kind, namespace: own, name: copy, input }: Annotated,
  from: Tracked,
  pulls: Pulls,
  isOnce = false,
): void {
  const [namespace = "", name = "", ...more] = (from.text() ?? "").trim().split("/");
  if (namespace === "" || name === "" || more.length > 0) {
    from.lose("must be namespace/name; correct it");
    return;
  }
  const granted = { kind, namespace, name } as const;
  const { grants, output } = pulls;
  const spec = {
    acknowledge: ["ReadableCopies"],
    sources: [
      {
        name: "source",
        [sourceField(kind)]: compact({ name, namespace: namespace === own ? undefined : namespace }),
      },
    ],
    targets: [
      compact({
        apiVersion: "v1",
        kind,
        name: copy,
        mode: isOnce ? "Once" : undefined,
        onConflict: "Force",
        fields: copyFields("source"),
      }),
    ],
  };
  output.add("SecretBinding", { name: copy, namespace: own }, spec, [input]);
  if (isPermitted(granted, own, from, pulls) && !grants.has(granted)) grants.add(granted, { namespace: own }, input);
}

/** Whether the source permits a copy in the namespace `own`. Reports on `from` if not, or if that is not known. */
function isPermitted(
  granted: ObjectName,
  own: string,
  from: Tracked,
  { prefix, annotated, known, grants, consent, permits }: Pulls,
): boolean {
  const { kind, namespace, name } = granted;
  const input = annotated.find((each) => each.kind === kind && each.namespace === namespace && each.name === name);
  const object = input === undefined ? known.find(granted) : undefined;
  const named = `${kind} ${namespace}/${name}`;
  const grant = namespace === own ? "" : `, and write a SecretGrant in ${namespace} for ${own}`;
  if (input === undefined && object === undefined) {
    from.lose(
      `${named} is not in these files, so it is not known whether it permits this copy; add it to the files, or set --cluster. Or ask its owner${grant}`,
    );
    return false;
  }
  const annotations = object === undefined ? {} : annotationsOf(prefix, object);
  const verdict = permits((each) => (input === undefined ? annotations[each] : input.annotation(each).peek()), own);
  // If labels decide, the grant of the source has them.
  if (verdict === true || (verdict === undefined && grants.has(granted as Granted))) return true;
  from.lose(
    verdict === false
      ? `${named} does not permit copies in ${own} by ${consent}, so there is none; remove this annotation. Or ask its owner${grant}`
      : `it is not known whether ${named} permits copies in ${own} by ${consent}; ask its owner${grant}`,
  );
  return false;
}
