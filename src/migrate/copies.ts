/** Converts annotations that copy Secrets and ConfigMaps, for the tools that have such annotations, and what all copies have. Pure. */
import { fieldsAt } from "../apimachinery/fields.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import type { DataObject, KnownObjects, ObjectName } from "./known-objects.ts";
import type { Input, Output, Tool } from "./migration.ts";
import { compact, dataSource, exceptNames, filled, isData, nonEmpty } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

/** A tool with annotations that copy objects. */
interface CopyTool {
  readonly title: string;
  /** The first part of its annotations. */
  readonly prefix: string;
  /** The annotations, without the prefix, that it notes on copies. */
  readonly notes: readonly string[];
  /** The annotations by which a source permits its copies. */
  readonly consent: string;
  /** Whether the tool has created the object with these annotations. */
  isCreated?(annotations: JsonObject): boolean;
  /** Reports an object that is no Secret and no ConfigMap. */
  refuse(input: Input): void;
  /** Whether a source with these annotations permits a copy in the namespace. Undefined if the files do not say it. */
  permits(annotation: (name: string) => unknown, namespace: string): boolean | undefined;
  convert(annotated: readonly Annotated[], copies: Copies): void;
}

export const copyTool = (tool: CopyTool): Tool => ({
  title: tool.title,
  objects: `Secrets and ConfigMaps with annotations ${tool.prefix}…`,
  owns: (object) => {
    const annotations = annotationsOf(tool.prefix, object);
    return !tool.isCreated?.(annotations) && Object.keys(annotations).some((name) => !tool.notes.includes(name));
  },
  convert: (inputs, output, known) => {
    const annotated = annotatedOf(tool, inputs);
    tool.convert(annotated, new Copies(tool, annotated, known, output));
  },
});

/** A Secret or ConfigMap with annotations of a tool: an object in the files, or the Secret of a Certificate of cert-manager. */
export interface Annotated extends DataObject {
  readonly input: Input;
  /** By its name after the prefix of the tool. */
  annotation(name: string): Tracked;
}

const isCertificate = ({ apiVersion, kind }: { readonly apiVersion?: unknown; readonly kind?: unknown }): boolean =>
  String(apiVersion).startsWith("cert-manager.io/") && kind === "Certificate";

/** The annotations of a tool, by their names after its prefix. Those of a Certificate include the ones that it gives its Secret. */
function annotationsOf(prefix: string, object: JsonObject): JsonObject {
  const ofSecret = isCertificate(object) ? fieldsAt(object, "spec", "secretTemplate", "annotations") : {};
  const annotations = Object.entries({ ...fieldsAt(object, "metadata", "annotations"), ...ofSecret });
  return Object.fromEntries(
    annotations.flatMap(([key, value]) => (key.startsWith(prefix) ? [[key.slice(prefix.length), value]] : [])),
  );
}

/**
 * The Secrets and ConfigMaps among the inputs. Handles everything but the annotations of the tool. A Certificate whose Secret is among the
 * inputs adds nothing.
 */
function annotatedOf({ prefix, notes, refuse }: CopyTool, inputs: readonly Input[]): Annotated[] {
  const objects = inputs.flatMap((input) =>
    isData(input.apiVersion, input.kind) ? annotatedObject(prefix, input, input.kind) : [],
  );
  const ofCertificates = inputs.filter(isCertificate).flatMap((input) => {
    const secret = secretOf(prefix, input);
    const isSame = ({ kind, namespace, name }: Annotated) =>
      kind === "Secret" && namespace === secret.namespace && name === secret.name;
    if (!objects.some(isSame)) return [secret];
    input.root.ignore();
    return [];
  });
  for (const input of inputs) if (!isData(input.apiVersion, input.kind) && !isCertificate(input)) refuse(input);
  const annotated = [...objects, ...ofCertificates];
  for (const { annotation } of annotated) for (const note of notes) annotation(note).ignore();
  return annotated;
}

/** No value is read: the copies get theirs from the cluster. */
function annotatedObject(prefix: string, input: Input, kind: DataObject["kind"]): Annotated {
  const { root, namespace, name } = input;
  root.ignore("data", "binaryData", "stringData", "immutable", ...(kind === "Secret" ? ["type"] : []));
  root.field("metadata").ignore("labels");
  // Other annotations belong to other programs.
  root.field("metadata", "annotations").ignoreUnless((key) => key.startsWith(prefix));
  const annotation = (each: string) => root.field("metadata", "annotations", `${prefix}${each}`);
  return { kind, namespace, name, input, annotation };
}

/** Older versions of Reflector read annotations of the Certificate itself, with `secret-` before their names. */
function secretOf(prefix: string, input: Input): Annotated {
  const [metadata, spec] = input.root.fields("metadata", "spec");
  const template = spec.field("secretTemplate");
  spec.ignoreUnless((key) => key === "secretTemplate");
  for (const each of [metadata, template]) {
    each.ignore("labels");
    each.field("annotations").ignoreUnless((key) => key.startsWith(prefix));
  }
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

/** What the copies of a tool have besides the data and the type. */
interface CopyRule {
  readonly labels?: boolean;
  readonly annotations?: boolean;
  /** The tool removes keys that others add. */
  readonly exact?: boolean;
}

/** How a binding creates such copies, and adopts those of the tool. */
export function copyCreate({ labels, annotations, exact }: CopyRule, manifest: JsonObject = {}): JsonObject {
  const copy = filled({ labels: labels ? ["*"] : undefined, annotations: annotations ? ["*"] : undefined });
  return compact({ adopt: "Equal", exact: exact || undefined, copy, manifest });
}

/** The fields that copy all data of the source with this name. */
export const copyFields = (source = "source"): JsonObject[] => [{ path: "data", from: { source } }];

/** The binding in the namespace `home` that copies an object. */
export const copyBinding = (of: ObjectName, home: string, targets: JsonObject[]): JsonObject => ({
  acknowledge: ["ReadableCopies"],
  sources: [dataSource(of, home)],
  targets,
});

const NAME = /^\^?((?:[a-z0-9-]|\.[*+]?)+)\$?$/;

/** A regular expression of names as a pattern of Inlay, or undefined if there is none with the same matches. */
function patternOf(expression: string): string | undefined {
  const [, body] = NAME.exec(expression.trim()) ?? [];
  return body?.replaceAll(".*", "*").replaceAll(".+", "?*").replaceAll(".", "?");
}

/** The patterns of a list with commas, with undefined for what has no pattern. */
const entriesOf = (list: unknown): (string | undefined)[] =>
  String(list ?? "")
    .split(",")
    .filter((entry) => entry.trim() !== "")
    .map(patternOf);

/** The patterns of a list with commas. Reports the others, and returns undefined if none is left. */
export function patternsOf(list: Tracked): string[] | undefined {
  const patterns = entriesOf(list.text());
  for (const [at, pattern] of patterns.entries())
    if (pattern === undefined)
      list.lose(
        `entry ${at + 1} is a regular expression that Inlay has no pattern for; write names, with * for any characters and ? for one`,
      );
  return nonEmpty(patterns.filter((pattern) => pattern !== undefined));
}

/** The most names of a selector. */
export const MAX_NAMES = 16;

/** As many patterns of a list as a selector can have. Reports the others. */
export function firstNames(list: Tracked, names: readonly string[]): string[] {
  if (names.length > MAX_NAMES) list.lose("more than 16 entries; move the others to a second target");
  return names.slice(0, MAX_NAMES);
}

/** Whether one of the expressions matches the name. Undefined if only those could that are no patterns of Inlay. */
export function isListed(list: unknown, name: string): boolean | undefined {
  const patterns = entriesOf(list);
  if (nameMatcher(patterns.filter((pattern) => pattern !== undefined))(name)) return true;
  return patterns.includes(undefined) ? undefined : false;
}

const REQUIREMENT = /^([\w./-]+)\s*(==?|!=)\s*([\w.-]*)$|^([\w./-]+)\s+(in|notin)\s*\(([^()]*)\)$|^(!?)([\w./-]+)$/;
/** A comma that is not inside of parentheses. */
const COMMA = /,(?![^()]*\))/;

/** A label selector in the notation of kubectl as the fields of a selector. Reports another text. */
export function labelsOf(selector: Tracked): JsonObject | undefined {
  const texts = (selector.text() ?? "").split(COMMA).filter((each) => each.trim() !== "");
  const matchExpressions = texts.map(requirementOf).filter((each) => each !== undefined);
  if (texts.length > 0 && matchExpressions.length === texts.length) return { matchExpressions };
  selector.lose("not a label selector, such as team=web; write namespaceSelector by hand");
  return undefined;
}

function requirementOf(text: string): JsonObject | undefined {
  const [, key, mark, value = "", of, how, values = "", isAbsent, present] = REQUIREMENT.exec(text.trim()) ?? [];
  if (key !== undefined) return { key, operator: mark === "!=" ? "NotIn" : "In", values: [value] };
  if (of !== undefined)
    return { key: of, operator: how === "in" ? "In" : "NotIn", values: values.split(",").map((each) => each.trim()) };
  return present === undefined ? undefined : { key: present, operator: isAbsent ? "DoesNotExist" : "Exists" };
}

interface CopyOptions {
  readonly name?: string;
  readonly rule?: CopyRule;
  readonly isOnce?: boolean;
}

/** Writes the bindings that make the copies of a tool. */
export class Copies {
  readonly output: Output;
  readonly #tool: CopyTool;
  readonly #annotated: readonly Annotated[];
  readonly #known: KnownObjects;

  constructor(tool: CopyTool, annotated: readonly Annotated[], known: KnownObjects, output: Output) {
    this.#tool = tool;
    this.#annotated = annotated;
    this.#known = known;
    this.output = output;
  }

  /** A binding in the namespace of an object that copies it into other namespaces. No two selectors match the same namespace. */
  push(source: Annotated, selectors: readonly JsonObject[], options: CopyOptions = {}): void {
    const { kind, namespace, name, input } = source;
    const targets = selectors.map(({ exceptNames: except = [], ...selector }) =>
      compact({
        apiVersion: "v1",
        kind,
        name,
        namespaceSelector: exceptNames(selector, [...(except as string[]), namespace]),
        mode: options.isOnce ? "Once" : undefined,
        create: copyCreate(options.rule ?? {}),
        fields: copyFields(),
      }),
    );
    const metadata = { name: options.name ?? name, namespace };
    this.output.add("SecretBinding", metadata, copyBinding(source, namespace, targets), [input]);
  }

  /** A binding in the namespace of a copy that names its source. The copy exists, so it has its type and labels. */
  pull({ kind, namespace: own, name: copy, input }: Annotated, from: Tracked, isOnce = false): void {
    const [namespace = "", name = "", ...more] = (from.text() ?? "").trim().split("/");
    if (namespace === "" || name === "" || more.length > 0) {
      from.lose("must be namespace/name; correct it");
      return;
    }
    const source = { kind, namespace, name };
    const target = compact({
      apiVersion: "v1",
      kind,
      name: copy,
      mode: isOnce ? "Once" : undefined,
      onConflict: "Force",
      fields: copyFields(),
    });
    this.output.add("SecretBinding", { name: copy, namespace: own }, copyBinding(source, own, [target]), [input]);
    if (this.#isPermitted(source, own, from) && !this.output.isGranted(source))
      this.output.grant(source, { namespace: own }, input);
  }

  /** Whether the source permits a copy in the namespace `own`. Reports on `from` if not, or if that is not known. */
  #isPermitted(source: DataObject, own: string, from: Tracked): boolean {
    const { prefix, consent, permits } = this.#tool;
    const { kind, namespace, name } = source;
    const input = this.#annotated.find(
      (each) => each.kind === kind && each.namespace === namespace && each.name === name,
    );
    const object = input === undefined ? this.#known.find(source) : undefined;
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
    if (verdict === true || (verdict === undefined && this.output.isGranted(source))) return true;
    from.lose(
      verdict === false
        ? `${named} does not permit copies in ${own} by ${consent}, so there is none; remove this annotation. Or ask its owner${grant}`
        : `it is not known whether ${named} permits copies in ${own} by ${consent}; ask its owner${grant}`,
    );
    return false;
  }
}
