/** Converts Kyverno rules that clone Secrets and ConfigMaps into Namespaces to the copies of bindings. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import { copyCreate, copyFields } from "./copies.ts";
import type { DataObject } from "./known-objects.ts";
import { compositionOf, NOTHING } from "./kyverno-draft.ts";
import type { Results } from "./kyverno-fields.ts";
import {
  isExact,
  KEEP_RULE,
  kindOf,
  LEFT_OUT,
  matchesOf,
  namespaceSelectorsOf,
  operationsOf,
} from "./kyverno-match.ts";
import type { Input } from "./migration.ts";
import { compact, isData, labelSelectorOf, objectName } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

const OF_NAMESPACE = /^\{\{\s*request\.object\.metadata\.name\s*\}\}$/;

/** Kyverno clones the whole object. */
const WHOLE = { labels: true, annotations: true };

const NEW_OBJECT = "Inlay copies values from objects; create an object with these values, and a binding that copies it";

export function addClone(input: Input, rule: Tracked, results: Results): void {
  const { drafts } = results;
  const generate = rule.field("generate");
  const isList = generate.field("cloneList").exists;
  const kind = generate.field("kind").peek();
  const matches = matchesOf(rule.field("match"));
  const isKnown = isList || (generate.field("clone").exists && isData("v1", kind));
  if (!isKnown || generate.field("foreach").exists || matches.some(({ kinds }) => kinds.join() !== "Namespace")) {
    const isNew = generate.field("data").exists && isData("v1", kind);
    rule.refuse(isNew ? NEW_OBJECT : KEEP_RULE);
    return;
  }
  rule.ignore("name");
  generate.field("apiVersion").text();
  for (const match of matches)
    if (!operationsOf(match, rule.field("preconditions")).includes("CREATE"))
      match.block.lose("Inlay copies when a namespace appears, and this rule does not; keep Kyverno for it");
  const existing = [
    generate.field("generateExisting"),
    input.root.field("spec", "generateExisting"),
    input.root.field("spec", "generateExistingOnPolicyUpdate"),
  ];
  const settings: CopySettings = {
    isExisting: existing.map((each) => each.flag()).includes(true),
    isKept: generate.field("synchronize").flag() === true,
    isOrphaned: generate.field("orphanDownstreamOnPolicyDelete").flag() === true,
  };
  const namespace = generate.field("namespace");
  if (!OF_NAMESPACE.test(namespace.text() ?? ""))
    namespace.lose("Inlay copies into each matching namespace; write the namespace of the target by hand");
  if (isList) {
    cloneList(input, rule, settings, results);
    return;
  }
  const source = generate.field("clone");
  const [from = "", of = ""] = source.textsOf("namespace", "name");
  const [name = ""] = generate.textsOf("name", "kind");
  if (![from, of, name].every(isExact)) {
    rule.lose("the Secret or its copy has no fixed name; write the binding by hand");
    return;
  }
  const selectors = namespaceSelectorsOf(rule, name === of ? [from] : []);
  const isWhole = drafts.isUnderstood(input, rule);
  copy(
    input,
    { kind: kind === "ConfigMap" ? kind : "Secret", namespace: from, name: of },
    name,
    isWhole ? selectors : [],
    settings,
    results,
  );
}

export interface CopySettings {
  /** Whether Kyverno also copies into namespaces that exist. */
  readonly isExisting: boolean;
  readonly isKept: boolean;
  readonly isOrphaned: boolean;
}

/** Copies an object into the selected namespaces. Without a selector, what the rule selects is not understood. */
export function copy(
  input: Input,
  of: DataObject,
  name: string,
  selectors: readonly JsonObject[],
  settings: CopySettings,
  { drafts, known }: Pick<Results, "drafts" | "known">,
): void {
  const draft = drafts.of(of.kind, of.namespace, of.name, input);
  for (const note of notesOf(settings, selectors)) draft.notes.add(note);
  const manifest = known.find(of)?.["immutable"] === true ? { immutable: true } : {};
  for (const target of targetsOf(of.kind, name, selectors, settings, manifest))
    draft.targets.push({ ...target, fields: copyFields(of.name) });
  if (selectors.length === 0) drafts.selectNothing(input, [draft], "Copies nothing.");
}

const notesOf = ({ isExisting }: CopySettings, selectors: readonly JsonObject[]): string[] => [
  ...(isExisting ? [] : ["Inlay also copies into the namespaces that exist already."]),
  ...(selectors.some(({ exceptNames }) => exceptNames !== undefined) ? [DEFAULT_NOTE] : []),
];

const DEFAULT_NOTE = `By default, Kyverno leaves out ${LEFT_OUT.join(", ")}. If yours does not, remove them from exceptNames.`;

const targetsOf = (
  kind: string,
  name: string,
  selectors: readonly JsonObject[],
  { isKept, isOrphaned }: CopySettings,
  manifest: JsonObject = {},
): JsonObject[] =>
  (selectors.length > 0 ? selectors : [NOTHING]).map((selector) =>
    compact({
      apiVersion: "v1",
      kind,
      name: name === "" ? undefined : name,
      namespaceSelector: selector,
      mode: isKept ? undefined : "Once",
      onRelease: isKept && !isOrphaned ? undefined : "Retain",
      create: copyCreate({ ...WHOLE, exact: isKept }, manifest),
    }),
  );

/** A composition creates a binding for each object of the list. */
function cloneList(input: Input, rule: Tracked, settings: CopySettings, results: Results): void {
  const list = rule.field("generate", "cloneList");
  const name = `${input.name}-${rule.field("name").text() ?? "rule"}`;
  const namespace = list.field("namespace").text() ?? "";
  const selector = labelSelectorOf(list.field("selector"));
  const selectors = namespaceSelectorsOf(rule, [namespace]);
  const kinds = list
    .field("kinds")
    .list()
    .map((each) => ({ each, kind: kindOf(each.text() ?? "") }));
  const isWhole = results.drafts.isUnderstood(input, rule);
  for (const { each, kind } of kinds)
    if (!isData("v1", kind)) each.lose("Inlay clones Secrets and ConfigMaps; keep Kyverno for this kind");
    else copyAll(input, name, { kind, namespace, selector }, isWhole ? selectors : [], settings, results);
}

/** Copies all matching objects of a namespace. Without a selector of namespaces, what the rule selects is not understood. */
export function copyAll(
  input: Input,
  name: string,
  { kind, namespace, selector }: Omit<DataObject, "name"> & { readonly selector: JsonObject | undefined },
  selectors: readonly JsonObject[],
  settings: CopySettings,
  { drafts, output }: Pick<Results, "drafts" | "output">,
): void {
  const targets = targetsOf(kind, "", selectors, settings).map((target) => ({ ...target, fields: copyFields() }));
  const spec = compositionOf(
    "clone",
    { kind, selector, namespaceSelector: { names: [namespace] } },
    { acknowledge: ["ReadableCopies"], targets },
    "Cluster",
  );
  const metadata = { name: `${objectName(name)}-${kind.toLowerCase()}`.slice(0, 63) };
  output.add("BindingComposition", metadata, spec, [input], notesOf(settings, selectors));
  if (selectors.length === 0) drafts.selectNothing(input, [], "");
}
