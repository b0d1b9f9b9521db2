/** Converts the annotations of mittwald's kubernetes-replicator to bindings and grants. Pure. */
import {
  type Annotated,
  type Copies,
  copyTool,
  firstNames,
  isListed,
  labelsOf,
  MAX_NAMES,
  patternsOf,
} from "./copies.ts";
import { describe, type Output, type Tool } from "./migration.ts";

export const REPLICATOR: Tool = copyTool({
  title: "kubernetes-replicator",
  prefix: "replicator.v1.mittwald.de/",
  notes: ["replicated-at", "replicated-by", "replicated-from-version", "replicated-keys", "replicate-once-version"],
  consent: "replication-allowed and replication-allowed-namespaces",
  permits: (annotation, namespace) =>
    isTrue(annotation("replication-allowed")) && isListed(annotation("replication-allowed-namespaces"), namespace),
  refuse: ({ root, kind }) =>
    root.refuse(
      `Inlay copies Secrets and ConfigMaps, and writes no ${kind}; create the copies with your deployment tool`,
    ),
  convert(annotated, copies) {
    for (const each of annotated) grant(each, copies.output);
    for (const each of annotated) copy(each, copies);
  },
});

/** As Go reads a boolean. */
const isTrue = (value: unknown) => /^(?:1|t|T|true|True|TRUE)$/.test(String(value));

/** The consent of a source to copies that name it. */
function grant(source: Annotated, output: Output): void {
  const [allowed, namespaces] = [
    source.annotation("replication-allowed"),
    source.annotation("replication-allowed-namespaces"),
  ];
  if (!isTrue(allowed.text())) {
    namespaces.refuse('has no effect without replication-allowed: "true"');
    return;
  }
  const names = patternsOf(namespaces) ?? [];
  for (let at = 0; at < names.length; at += MAX_NAMES)
    output.grant(source, { namespaceSelector: { names: names.slice(at, at + MAX_NAMES) } }, source.input);
}

function copy(source: Annotated, copies: Copies): void {
  const { annotation, name, input } = source;
  const isOnce = annotation("replicate-once").text() === "true";
  const stripsLabels = annotation("strip-labels").text() === "true";
  const keepsOwners = annotation("keep-owner-references");
  if (keepsOwners.text() === "true")
    keepsOwners.lose(
      "Inlay copies no owner references: Kubernetes deletes an object whose owner is in another namespace",
    );
  const [from, to, matching] = [
    annotation("replicate-from"),
    annotation("replicate-to"),
    annotation("replicate-to-matching"),
  ];
  if (from.exists) {
    const others = ["replicate-to", "replicate-to-matching"].filter((each) => annotation(each).exists);
    for (const each of others) annotation(each).ignore();
    if (others.length > 0)
      copies.output.remark(`${describe(input)}: ${others.join(" and ")} has no effect beside replicate-from`);
    copies.pull(source, from, isOnce);
    return;
  }
  const options = { isOnce, rule: { labels: !stripsLabels } };
  const names = to.exists ? patternsOf(to) : undefined;
  if (names !== undefined) copies.push(source, [{ names: firstNames(to, names) }], options);
  const selector = matching.exists ? labelsOf(matching) : undefined;
  if (selector !== undefined) copies.push(source, [selector], { ...options, name: `${name}-matching` });
}
