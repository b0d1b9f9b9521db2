/** Converts Kyverno rules that write values of Secrets and ConfigMaps into fields of other objects to bindings. Pure. */
import { isGlob } from "../apimachinery/glob.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import type { DataObject, KnownObjects } from "./known-objects.ts";
import { type Drafts, NOTHING } from "./kyverno-draft.ts";
import {
  excludedBy,
  isAboutData,
  isExact,
  isExcluded,
  KEEP_RULE,
  type Match,
  matchesOf,
  namespaceSelectorIn,
  namespacesOf,
  operationsOf,
  SAME_NAMESPACE,
} from "./kyverno-match.ts";
import { Scope } from "./kyverno-value.ts";
import type { Input, Output } from "./migration.ts";
import { compact, exceptNames, filled, nonEmpty, objectName } from "./parts.ts";
import { fieldsOfJsonPatch, fieldsOfObject, patchedOf } from "./patch.ts";
import type { Tracked } from "./tracked.ts";

/** What the bindings of all rules go to. */
export interface Results {
  readonly drafts: Drafts;
  readonly output: Output;
  readonly known: KnownObjects;
}

export function addFields(input: Input, rule: Tracked, results: Results): void {
  const mutate = rule.field("mutate");
  const matches = matchesOf(rule.field("match"));
  const isOfData = mutate.field("targets").exists && matches.length > 0 && matches.every(isAboutData);
  const isOfTarget = !mutate.field("targets").exists && rule.field("context").exists && matches.length > 0;
  if (mutate.field("foreach").exists || !(isOfData || isOfTarget)) {
    rule.refuse(KEEP_RULE);
    return;
  }
  for (const match of matches) {
    const operations = operationsOf(match, rule.field("preconditions"));
    if (!operations.includes("UPDATE") || (isOfTarget && !operations.includes("CREATE")))
      match.block.lose("Inlay writes the value whenever it changes, and this rule does not; keep Kyverno for it");
  }
  if (isOfData) fromTriggers(input, rule, matches, results);
  else fromContext(input, rule, matches, results);
}

/** The rule is about a Secret, and writes into other objects when it changes. */
function fromTriggers(input: Input, rule: Tracked, matches: readonly Match[], results: Results): void {
  const list = rule.field("mutate", "targets");
  for (const match of matches) {
    const namespaces = namespacesOf(match, input.namespace);
    if (namespaces.length === 0 || !namespaces.every(isExact)) {
      match.block.lose("the Secret has no fixed namespace; add it, and convert again");
      continue;
    }
    for (const kind of match.kinds as DataObject["kind"][])
      for (const namespace of namespaces)
        for (const name of match.names) {
          if (isExcluded(rule, kind, namespace, name)) continue;
          const targets = list.list().map((each) => targetOf(each, namespace, results));
          bind(input, rule, namespace, new Scope(namespace, { kind, namespace, name }), targets, results);
        }
  }
}

/** A target of the binding, without its fields. */
function targetOf(target: Tracked, namespace: string, results: Results): JsonObject {
  const [apiVersion = "", kind = "", name = ""] = target.textsOf("apiVersion", "kind", "name");
  const field = target.field("namespace");
  const text = field.text();
  const isOwn = text === undefined || SAME_NAMESPACE.test(text) || text === namespace;
  if (text === undefined && isNamespaced(results, apiVersion, kind))
    target.lose("has no namespace, so Inlay writes in that of the Secret only; add it, and convert again");
  if (!isOwn && !isExact(text)) field.lose("Inlay has no variables and wildcards here; write the targets by hand");
  if (name.includes("{{")) target.field("name").lose("Inlay has no variables here; write the targets by hand");
  const matchLabels = target.field("selector", "matchLabels").map();
  const isNamed = name !== "" && !isGlob(name) && matchLabels === undefined;
  const selector = compact({
    names: name !== "" || matchLabels === undefined ? [name || "*"] : undefined,
    matchLabels,
  });
  return compact({ apiVersion, kind, ...(isNamed ? { name } : { selector }), namespace: isOwn ? undefined : text });
}

const isNamespaced = ({ known }: Results, apiVersion: string, kind: string): boolean =>
  known.isNamespaced(apiVersion, kind) ?? true;

/** The rule is about the written objects, and reads Secrets when they are admitted. */
function fromContext(input: Input, rule: Tracked, matches: readonly Match[], results: Results): void {
  const targets = matches.flatMap((match) => admitted(match, rule, input, results));
  // Each namespace may have a Secret of its own.
  const isOwn = /request\.(?:namespace|object\.metadata\.namespace)/.test(JSON.stringify(rule.field("context").peek()));
  if (!isOwn) {
    bind(input, rule, undefined, new Scope(undefined), targets, results);
    return;
  }
  const namespaces = matches.flatMap((match) => namespacesOf(match, input.namespace));
  if (namespaces.length === 0 || !namespaces.every(isExact)) {
    rule
      .field("context")
      .lose("each namespace has its own Secret; write a BindingComposition, which creates a binding for each");
    rule.ignore();
    return;
  }
  for (const namespace of new Set(namespaces)) {
    const inIt = targets.map(({ namespaceSelector: _, ...of }) => ({ ...of, namespace }));
    bind(input, rule, namespace, new Scope(namespace), inIt, results);
  }
}

function admitted(match: Match, rule: Tracked, input: Input, results: Results): JsonObject[] {
  const excluded = excludedBy(rule);
  for (const { block, kinds, names, namespaces } of excluded)
    if (kinds.length > 0 || (names.length > 0 && namespaces.length > 0))
      block.field("resources").lose("an exclusion by several criteria can't be selected; write the targets by hand");
  const exceptObjects = excluded.flatMap(({ names }) => names);
  const exceptNamespaces = excluded.flatMap(({ namespaces }) => namespaces);
  const selector = match.selector();
  return match.kinds.flatMap((text): JsonObject[] => {
    const [, apiVersion = "", kind = ""] = /^((?:[a-z0-9.-]+\/)?v[a-z0-9]+)\/([A-Za-z0-9]+)$/.exec(text) ?? [];
    if (kind === "") {
      match.block
        .field("resources", "kinds")
        .lose("write kinds with group and version, as in goharbor.io/v1beta1/HarborCluster");
      return [];
    }
    const isCluster = !isNamespaced(results, apiVersion, kind);
    const [first, ...more] = match.names;
    const isNamed = first !== undefined && more.length === 0 && !isGlob(first) && selector === undefined;
    const named = exceptNames(compact({ names: nonEmpty(match.names), ...selector }), exceptObjects);
    return [
      compact({
        apiVersion,
        kind,
        ...(isNamed && exceptObjects.length === 0 ? { name: first } : { selector: filled(named) ?? { names: ["*"] } }),
        namespaceSelector: isCluster ? undefined : namespaceSelectorIn(match, input.namespace, exceptNamespaces),
      }),
    ];
  });
}

/** Adds the binding that writes the patches of the rule. It is in the namespace of the first Secret, if not in `namespace`. */
function bind(
  input: Input,
  rule: Tracked,
  namespace: string | undefined,
  scope: Scope,
  targets: readonly JsonObject[],
  { drafts, output }: Results,
): void {
  const mutate = rule.field("mutate");
  const [merge, json] = mutate.fields("patchStrategicMerge", "patchesJson6902");
  const ruleName = rule.field("name").text() ?? "rule";
  mutate.ignore("mutateExistingOnPolicyUpdate");
  scope.addContext(rule.field("context"));
  const hasAnchors = anchorsIn(merge.peek() ?? null);
  if (hasAnchors) merge.refuse("Inlay has no anchors for fields of other objects; write the binding by hand");
  const isWhole = drafts.isUnderstood(input, rule, [...(hasAnchors ? [] : [merge]), json]);
  const written = targets.map((of) => {
    const patched = patchedOf(String(of["apiVersion"]));
    const translate = scope.translator(of["apiVersion"] === "v1" && of["kind"] === "Secret");
    const fields = [
      ...(merge.exists && !hasAnchors ? fieldsOfObject(merge, patched, translate) : []),
      ...(json.exists ? fieldsOfJsonPatch(json, translate, patched.isOpen) : []),
    ];
    return { of, fields };
  });
  const { first } = scope.sources;
  const home = namespace ?? first?.namespace;
  if (first === undefined || home === undefined) {
    rule.refuse(KEEP_RULE);
    return;
  }
  const spec = {
    sources: scope.sources.inBinding(home, input, output),
    targets: written
      .filter(({ fields }) => fields.length > 0)
      .map(({ of, fields }) => ({ ...(isWhole ? inNamespace(of, home) : selectingNothing(of)), fields })),
  };
  if (spec.targets.length === 0) return;
  const notes = isWhole
    ? []
    : ["Writes nothing. Inlay does not know all of what the rule selects: write the targets by hand."];
  const metadata = { name: objectName(`${input.name}-${ruleName}`).slice(0, 63), namespace: home };
  output.add("SecretBinding", metadata, spec, [input], notes);
  if (!isWhole) drafts.selectNothing(input, [], "");
}

/** Without the namespace, if it is that of the binding. */
const inNamespace = ({ namespace, ...of }: JsonObject, home: string): JsonObject =>
  compact({ ...of, namespace: namespace === home ? undefined : namespace });

const selectingNothing = ({ apiVersion, kind }: JsonObject): JsonObject =>
  compact({ apiVersion, kind, selector: NOTHING });

function anchorsIn(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.some(anchorsIn);
  return (
    isObject(value) && Object.entries(value).some(([key, each]) => /^[<+=^X]?\(.*\)$/.test(key) || anchorsIn(each))
  );
}
