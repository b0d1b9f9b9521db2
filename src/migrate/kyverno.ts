/** Converts Kyverno's policies about Secrets and ConfigMaps, which clone, protect them or restart workloads, to bindings. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import { copyFields, copyManifest, sourceOfCopy } from "./copies.ts";
import type { KnownObjects } from "./known-objects.ts";
import { Drafts } from "./kyverno-draft.ts";
import {
  isExact,
  KEEP_RULE,
  kindOf,
  type Match,
  matchesOf,
  namespaceSelectorsOf,
  operationsIn,
} from "./kyverno-match.ts";
import { addRestart } from "./kyverno-restart.ts";
import { type Input, metadataOf, type Output, partOf, type Tool } from "./migration.ts";
import { compact, labelSelectorOf, objectName } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

/** How Kyverno evaluates and reports. */
const IRRELEVANT = [
  "admission background emitWarning failurePolicy mutateExistingOnPolicyUpdate schemaValidation",
  "useServerSideApply webhookConfiguration webhookTimeoutSeconds",
].flatMap((line) => line.split(" "));

export const KYVERNO: Tool = {
  title: "Kyverno",
  objects: "Kyverno policies",
  owns: ({ apiVersion }) => /^(?:[a-z]+\.)?kyverno\.io\//.test(String(apiVersion)),
  convert(inputs, output, known) {
    const drafts = new Drafts();
    const rules = inputs.flatMap((input) => rulesOf(input).map((rule) => ({ input: partOf(input, rule), rule })));
    // Restarts need to know the copies.
    const inOrder = ["generate", "validate", "mutate"].flatMap((type) =>
      rules.filter(({ rule }) => rule.field(type).exists).map((each) => ({ ...each, type })),
    );
    for (const { input, rule, type } of inOrder) {
      rule.field("skipBackgroundRequests").ignore();
      if (type === "generate") clone(input, rule, known, drafts, output);
      else if (type === "validate") protect(input, rule, drafts);
      else addRestart(input, rule, drafts);
    }
    for (const { rule } of rules)
      if (!["generate", "validate", "mutate"].some((type) => rule.field(type).exists)) rule.refuse(KEEP_RULE);
    drafts.write(output);
  },
};

function rulesOf(input: Input): Tracked[] {
  const { root, kind, apiVersion } = input;
  if (!apiVersion.startsWith("kyverno.io/") || !["ClusterPolicy", "Policy"].includes(kind)) {
    root.refuse(
      apiVersion.startsWith("policies.kyverno.io/")
        ? "Inlay can't read the CEL expressions of this policy; write a SecretBinding for the Secret that it copies, or keep Kyverno for it"
        : `Inlay has nothing for a ${kind}; keep Kyverno for it`,
    );
    return [];
  }
  metadataOf(input, () => true);
  for (const field of IRRELEVANT) root.field("spec", field).ignore();
  return root.field("spec", "rules").list();
}

const OF_NAMESPACE = /^\{\{\s*request\.object\.metadata\.name\s*\}\}$/;

/** Kyverno clones the whole object. */
const WHOLE = { labels: true, annotations: true, immutable: true };

function clone(input: Input, rule: Tracked, known: KnownObjects, drafts: Drafts, output: Output): void {
  const generate = rule.field("generate");
  const isList = generate.field("cloneList").exists;
  const kind = generate.field("kind");
  const matches = matchesOf(rule.field("match"));
  const isKnown = isList || (generate.field("clone").exists && ["Secret", "ConfigMap"].includes(String(kind.peek())));
  if (!isKnown || generate.field("foreach").exists || matches.some(({ kinds }) => kinds.join() !== "Namespace")) {
    const data = generate.field("data").exists && ["Secret", "ConfigMap"].includes(String(kind.peek()));
    rule.refuse(
      data
        ? "Inlay copies values from objects; create an object with these values, and a binding that copies it"
        : KEEP_RULE,
    );
    return;
  }
  rule.field("name").ignore();
  generate.field("apiVersion").text();
  const existing = [
    generate.field("generateExisting"),
    input.root.field("spec", "generateExisting"),
    input.root.field("spec", "generateExistingOnPolicyUpdate"),
  ];
  const notes = existing.map((each) => each.flag()).includes(true)
    ? []
    : ["Inlay also copies into the namespaces that exist already."];
  const isKept = generate.field("synchronize").flag() === true;
  const orphans = generate.field("orphanDownstreamOnPolicyDelete").flag() === true;
  const namespace = generate.field("namespace");
  if (!OF_NAMESPACE.test(namespace.text() ?? ""))
    namespace.lose("Inlay copies into each matching namespace; write the namespace of the target by hand");
  const settings = compact({ mode: isKept ? undefined : "Once", onRelease: isKept && !orphans ? undefined : "Retain" });
  const targetsOf = (kind: string, name: string, except: readonly string[], manifest: JsonObject): JsonObject[] =>
    namespaceSelectorsOf(rule, except).map((selector) => ({
      apiVersion: "v1",
      kind,
      ...(name !== "" && { name }),
      namespaceSelector: Object.keys(selector).length > 0 ? selector : { names: ["*"] },
      ...settings,
      create: { adopt: "Equal", manifest },
    }));
  if (isList) {
    cloneList(
      generate.field("cloneList"),
      objectName(`${input.name}-${rule.field("name").text() ?? "rule"}`),
      targetsOf,
      input,
      output,
      notes,
    );
    return;
  }
  const source = generate.field("clone");
  const [from = "", of = ""] = [source.field("namespace").text(), source.field("name").text()];
  const name = generate.field("name").text() ?? "";
  if (![from, of, name].every(isExact)) {
    rule.lose("the Secret or its copy has no fixed name; write the binding by hand");
    return;
  }
  const draft = drafts.of(kind.text() ?? "Secret", from, of, input);
  for (const note of notes) draft.notes.add(note);
  const copied = sourceOfCopy({ kind: draft.kind, namespace: from, name: of }, WHOLE, known, source);
  const fields = copyFields(of, copied, source);
  for (const target of targetsOf(draft.kind, name, name === of ? [from] : [], copyManifest(draft.kind, copied, WHOLE)))
    draft.targets.push({ ...target, fields });
}

/** A composition creates a binding for each object of the list. */
function cloneList(
  list: Tracked,
  name: string,
  targetsOf: (kind: string, name: string, except: readonly string[], manifest: JsonObject) => JsonObject[],
  input: Input,
  output: Output,
  notes: readonly string[],
): void {
  const namespace = list.field("namespace").text() ?? "";
  const selector = labelSelectorOf(list.field("selector"));
  for (const each of list.field("kinds").list()) {
    const kind = kindOf(each.text() ?? "");
    const field = kind === "Secret" ? "secret" : kind === "ConfigMap" ? "configMap" : undefined;
    if (field === undefined) {
      each.lose("Inlay clones Secrets and ConfigMaps; keep Kyverno for this kind");
      continue;
    }
    // Inlay reads only the metadata of what a composition is for.
    if (kind === "Secret")
      each.lose(
        "a composition can't read the type of a Secret; write it to create.manifest, or to the annotation inlay.dev/secret-type of each Secret that is not Opaque",
      );
    const targets = targetsOf(kind, "", [namespace], {});
    const spec = {
      for: compact({
        apiVersion: "v1",
        kind,
        selector,
        namespaceSelector: { names: [namespace] },
      }),
      reach: "Cluster",
      bindings: [
        {
          name: "clone",
          base: {
            spec: {
              acknowledge: ["ReadableCopies"],
              sources: [{ name: "source", [field]: {} }],
              targets: targets.map((target) => ({ ...target, fields: [{ path: "data", from: { source: "source" } }] })),
            },
          },
          patches: [
            { fromFieldPath: "metadata.name", toFieldPath: `spec.sources[0].${field}.name` },
            ...targets.flatMap((_, at) => patchesOf(kind, `spec.targets[${at}]`)),
          ],
        },
      ],
    };
    output.add("BindingComposition", { name: `${name}-${kind.toLowerCase()}`.slice(0, 63) }, spec, [input], notes);
  }
}

/** What the target of a composition gets from the object that is cloned. */
function patchesOf(kind: string, target: string): JsonObject[] {
  const labels = { fromFieldPath: "metadata.labels", toFieldPath: `${target}.create.manifest.metadata.labels` };
  const type = {
    fromFieldPath: "metadata.annotations[inlay.dev/secret-type]",
    toFieldPath: `${target}.create.manifest.type`,
    policy: { onMissing: "Remove" },
  };
  return [
    { fromFieldPath: "metadata.name", toFieldPath: `${target}.name` },
    { ...labels, policy: { onMissing: "Remove" } },
    ...(kind === "Secret" ? [type] : []),
  ];
}

function protect(input: Input, rule: Tracked, drafts: Drafts): void {
  const validate = rule.field("validate");
  const matches = matchesOf(rule.field("match"));
  const isAbout = ({ kinds, names }: Match) =>
    kinds.length > 0 &&
    kinds.every((kind) => ["Secret", "ConfigMap"].includes(kind)) &&
    names.every(isExact) &&
    names.length > 0;
  const namespacesOf = (match: Match) => {
    const namespaces = match.namespaces();
    return namespaces.length === 0 && input.namespace !== "" ? [input.namespace] : namespaces;
  };
  if (
    !validate.field("deny").exists ||
    !matches.every((match) => isAbout(match) && namespacesOf(match).length > 0 && namespacesOf(match).every(isExact))
  ) {
    rule.refuse(KEEP_RULE);
    return;
  }
  rule.field("name").ignore();
  for (const field of ["message", "allowExistingViolations"]) validate.field(field).ignore();
  const conditions = [operationsIn(rule.field("preconditions")), operationsIn(validate.field("deny", "conditions"))];
  const operations = [...matches.map((match) => match.operations), ...conditions].find((each) => each.length > 0) ?? [];
  validate.field("deny").entries();
  if (!["UPDATE", "DELETE"].every((each) => operations.includes(each)) && operations.length > 0)
    rule.lose("protect denies both changes and the deletion; this rule denies only one of them");
  const actions = [validate.field("failureAction"), input.root.field("spec", "validationFailureAction")];
  const action = actions.map((each) => each.text()).find((each) => each !== undefined);
  if (action?.toLowerCase() !== "enforce") {
    rule.lose("this rule only reports; protect would deny. Add protect to a binding of this Secret if you want that");
    return;
  }
  const writers = matchesOf(rule.field("exclude")).flatMap(({ block, names }) => {
    if (names.length > 0)
      block.field("resources").lose("protect has no exceptions by name; write a binding for each protected object");
    return writersOf(block);
  });
  for (const match of matches)
    for (const kind of match.kinds)
      for (const namespace of namespacesOf(match))
        for (const name of match.names) {
          const draft = drafts.of(kind, namespace, name, input);
          draft.writers = [...(draft.writers ?? []), ...writers];
        }
}

function writersOf(block: Tracked): JsonObject[] {
  for (const each of block.field("clusterRoles").list())
    if (each.text() !== "cluster-admin")
      each.lose("writers are users, groups and ServiceAccounts; write those with this ClusterRole");
  return block
    .field("subjects")
    .list()
    .flatMap((subject) => {
      const [kind = "", name = "", namespace] = ["kind", "name", "namespace"].map((field) =>
        subject.field(field).text(),
      );
      subject.field("apiGroup").ignore();
      const [, ofName, inName] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(kind === "User" ? name : "") ?? [];
      const writer =
        ofName !== undefined
          ? { kind: "ServiceAccount", name: inName as string, namespace: ofName }
          : compact({ kind, name, namespace });
      // Kyverno no longer writes the Secret.
      if (
        writer["kind"] === "ServiceAccount" &&
        writer["namespace"] === "kyverno" &&
        /^kyverno/.test(String(writer["name"]))
      )
        return [];
      if (!/[*?]/.test(name)) return [writer];
      subject.lose("a writer has an exact name; write each of them");
      return [];
    });
}
