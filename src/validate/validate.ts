/** Validates the objects of Inlay in files: their schema and rules, the fields of targets, loops, and names that nothing has. */
import type { Installation } from "../api/installation.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { type Analysis, analyse, inOrder, type ReadObjects } from "../render/analysis.ts";
import { type Mistake, readDocuments, type TextFile } from "../render/documents.ts";
import { isOurs, type Surroundings } from "../render/inputs.ts";
import { isCrd } from "../render/kinds.ts";
import type { ClusterFacts } from "./cluster-facts.ts";
import { loops } from "./feeds.ts";
import { type Finding, finding, type Validation } from "./findings.ts";
import { missingThings, uncheckedKinds } from "./missing.ts";
import { renamedThings } from "./renamed.ts";
import { earlyBindings } from "./sync-waves.ts";

export interface FilesToValidate {
  readonly files: readonly TextFile[];
  /** Files with further CRDs. */
  readonly crds: readonly TextFile[];
  /** Of objects that name none. */
  readonly namespace: string;
  /** By default, one without a configuration file. */
  readonly installation?: Installation;
}

/** Problems of a claim, which is no object of Inlay: the composition works as it should. */
const OF_CLAIMS = new Set(["NotSupported"]);

/** `lookUp` asks the cluster about the objects. */
export async function validate(
  { files, crds, namespace, installation }: FilesToValidate,
  lookUp?: (
    objects: readonly JsonObject[],
    analysisIn: (known: Surroundings) => Promise<Analysis>,
  ) => Promise<ClusterFacts>,
): Promise<Validation> {
  const read = readableObjects(files);
  const definitions = readDocuments(crds);
  const known: Surroundings = {
    ownOnly: true,
    ...(installation && { installation }),
    crds: definitions.documents.map(({ object }) => object).filter(isCrd),
  };
  const own = read.documents.filter(({ object }) => isOurs(object));
  const analysisIn = (more: Surroundings) => analyse(files, namespace, [], { ...known, ...more }, read);
  const facts = await lookUp?.(
    own.map(({ object }) => object),
    analysisIn,
  );
  const analysis = await analysisIn(facts === undefined ? {} : { cluster: facts.surroundings });
  const warnings = [
    ...analysis.bindings.flatMap((each) => each.warnings),
    ...earlyBindings(analysis),
    ...renamedThings(analysis),
    ...missingThings(analysis, facts?.emptyInCluster ?? (() => true)),
  ];
  const errors = [...definitions.mistakes, ...analysis.mistakes, ...loops(analysis.bindings)];
  const severityOf = ({ reason }: Mistake): Finding["severity"] => (OF_CLAIMS.has(reason) ? "warning" : "error");
  const found = inOrder(
    [...errors.map((each) => finding(severityOf(each), each)), ...warnings.map((each) => finding("warning", each))],
    [...files, ...crds],
  );
  const kinds = uncheckedKinds(analysis);
  const advice = facts === undefined ? "; add their CRDs with --crds, or check with --cluster" : "";
  return {
    errors: unique(found),
    notes: [
      ...(facts?.notes ?? []),
      ...(kinds.length === 0
        ? []
        : [`the schemas of these kinds are unknown, so their fields are not checked: ${kinds.join(", ")}${advice}`]),
    ],
    checked: { files: files.length, objects: own.length },
  };
}

/** A file of a folder that contains no object, such as a JSON Patch, is none of Inlay's. */
function readableObjects(files: readonly TextFile[]): ReadObjects {
  const { documents, mistakes, others } = readDocuments(files);
  const found = new Set(files.filter(({ isFound }) => isFound).map(({ name }) => name));
  return { documents, mistakes: mistakes.filter((each) => !others.has(each) || !found.has(each.file)) };
}

const unique = (findings: readonly Finding[]): Finding[] => [
  ...new Map(findings.map((each) => [JSON.stringify(each), each])).values(),
];
