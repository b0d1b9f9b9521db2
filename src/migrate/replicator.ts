/** Converts the annotations of mittwald's kubernetes-replicator to bindings and grants. Pure. */
import {
  type Annotated,
  annotatedOf,
  annotationsOf,
  isListed,
  labelsOf,
  type Pulls,
  patternsOf,
  pullCopy,
  pushCopies,
} from "./copies.ts";
import { Grants } from "./grants.ts";
import { describe, type Output, type Tool } from "./migration.ts";

const PREFIX = "replicator.v1.mittwald.de/";
/** What the replicator notes on copies. */
const NOTES = [
  "replicated-at",
  "replicated-by",
  "replicated-from-version",
  "replicated-keys",
  "replicate-once-version",
];

export const REPLICATOR: Tool = {
  title: "kubernetes-replicator",
  objects: `Secrets and ConfigMaps with annotations ${PREFIX}…`,
  // Copies have only notes.
  owns: (object) => Object.keys(annotationsOf(PREFIX, object)).some((name) => !NOTES.includes(name)),
  convert(inputs, output, known) {
    const grants = new Grants();
    const annotated = annotatedOf(PREFIX, inputs, ({ root, kind }) =>
      root.refuse(
        `Inlay copies Secrets and ConfigMaps, and writes no ${kind}; create the copies with your deployment tool`,
      ),
    );
    for (const each of annotated) grant(each, grants);
    const consent = "replication-allowed and replication-allowed-namespaces";
    const pulls = { prefix: PREFIX, annotated, known, grants, output, consent, permits };
    for (const each of annotated) copy(each, pulls, output);
    grants.write(output);
  },
};

/** As Go reads a boolean. */
const isTrue = (value: unknown) => /^(?:1|t|T|true|True|TRUE)$/.test(String(value));

const permits: Pulls["permits"] = (annotation, namespace) =>
  isTrue(annotation("replication-allowed")) && isListed(annotation("replication-allowed-namespaces"), namespace);

/** The consent of a source to copies that name it. */
function grant({ annotation, kind, namespace, name, input }: Annotated, grants: Grants): void {
  const [allowed, namespaces] = [annotation("replication-allowed"), annotation("replication-allowed-namespaces")];
  if (!isTrue(allowed.text())) {
    namespaces.refuse('has no effect without replication-allowed: "true"');
    return;
  }
  const names = patternsOf(namespaces);
  for (let at = 0; names !== undefined && at < names.length; at += 16)
    grants.add({ kind, namespace, name }, { namespaceSelector: { names: names.slice(at, at + 16) } }, input);
}

function copy(source: Annotated, pulls: Pulls, output: Output): void {
  const { annotation, name } = source;
  for (const note of NOTES) annotation(note).ignore();
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
      output.remark(`${describe(source.input)}: ${others.join(" and ")} has no effect beside replicate-from`);
    pullCopy(source, from, pulls, isOnce);
    return;
  }
  const options = { isOnce, rule: { labels: !stripsLabels } };
  const names = to.exists ? patternsOf(to) : undefined;
  if (names !== undefined && names.length > 16) to.lose("more than 16 entries; move the others to a second target");
  if (names !== undefined) pushCopies(source, [{ names: names.slice(0, 16) }], output, options);
  const selector = matching.exists ? labelsOf(matching) : undefined;
  if (selector !== undefined) pushCopies(source, [selector], output, { ...options, name: `${name}-matching` });
}
