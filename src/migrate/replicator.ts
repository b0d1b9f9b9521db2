/** Converts the annotations of mittwald's kubernetes-replicator to bindings and grants. Pure. */
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
import type { Input, Output, Tool } from "./migration.ts";

const PREFIX = "replicator.v1.mittwald.de/";
/** What the replicator notes on copies. */
const NOTES = [
  "replicated-at",
  "replicated-by",
  "replicated-from-version",
  "replicated-keys",
  "replicate-once-version",
];

const annotation = annotationWith(PREFIX);

export const REPLICATOR: Tool = {
  title: "kubernetes-replicator",
  objects: `Secrets and ConfigMaps with annotations ${PREFIX}…`,
  // Copies have only notes.
  owns: (object) => Object.keys(annotationsOf(PREFIX, object)).some((name) => !NOTES.includes(name)),
  convert(inputs, output) {
    const grants = new Grants();
    for (const input of inputs) {
      if (isSecretOrConfigMap({ apiVersion: input.apiVersion, kind: input.kind })) grant(input, grants);
      else
        input.root.refuse(
          `Inlay copies Secrets and ConfigMaps, and writes no ${input.kind}; create the copies with your deployment tool`,
        );
    }
    for (const input of inputs)
      if (isSecretOrConfigMap({ apiVersion: input.apiVersion, kind: input.kind })) copy(input, grants, output);
    grants.write(output);
  },
};

/** The consent of a source to copies that name it. */
function grant(input: Input, grants: Grants): void {
  const allowed = annotation(input, "replication-allowed");
  const namespaces = annotation(input, "replication-allowed-namespaces");
  if (allowed.text() !== "true") {
    namespaces.refuse('has no effect without replication-allowed: "true"');
    return;
  }
  const names = patternsOf(namespaces);
  const granted = { kind: input.kind as Kind, namespace: input.namespace, name: input.name };
  for (let at = 0; names !== undefined && at < names.length; at += 16)
    grants.add(granted, { namespaceSelector: { names: names.slice(at, at + 16) } }, input);
}

function copy(input: Input, grants: Grants, output: Output): void {
  ignoreContents(input);
  for (const name of NOTES) annotation(input, name).ignore();
  const isOnce = annotation(input, "replicate-once").text() === "true";
  const stripsLabels = annotation(input, "strip-labels").text() === "true";
  const keepsOwners = annotation(input, "keep-owner-references");
  if (keepsOwners.text() === "true")
    keepsOwners.lose(
      "Inlay copies no owner references: Kubernetes deletes an object whose owner is in another namespace",
    );
  const [from, to, matching] = ["replicate-from", "replicate-to", "replicate-to-matching"].map((name) =>
    annotation(input, name),
  ) as [ReturnType<typeof annotation>, ReturnType<typeof annotation>, ReturnType<typeof annotation>];
  const labels = input.root.field("metadata", "labels");
  const copied = labels.map();
  const options = { isOnce, labels: stripsLabels ? undefined : copied };
  const names = to.exists ? patternsOf(to) : undefined;
  if (names !== undefined && names.length > 16) to.lose("more than 16 entries; move the others to a second target");
  if (names !== undefined) pushCopies(input, { names: names.slice(0, 16) }, output, options);
  const selector = matching.exists ? labelsOf(matching) : undefined;
  if (selector !== undefined) pushCopies(input, selector, output, { ...options, name: `${input.name}-matching` });
  if (from.exists) pullCopy(input, from, grants, output, isOnce);
  // Other annotations belong to other programs.
  for (const [key, value] of input.root.field("metadata", "annotations").entries())
    if (!key.startsWith(PREFIX)) value.ignore();
}
