/** Composes the bindings of all compositions for the claims in the files, with the reason for each binding that is not created. Pure. */
import type { SecretBinding } from "../api/binding.ts";
import type { BindingComposition } from "../api/composition.ts";
import type { Installation } from "../api/installation.ts";
import { describeObject, isSameKind, type JsonObject, objectId } from "../apimachinery/objects.ts";
import { allIn, attemptSync, Problem, type ProblemParts } from "../apimachinery/problem.ts";
import { NAMESPACES } from "../apimachinery/resources.ts";
import { objectKey } from "../cache/reflector.ts";
import { type Claim, namespaceOfClaim } from "../composition/claim.ts";
import { claimMatcher, namespaceMatcher } from "../composition/claim-selection.ts";
import { type CompiledBinding, type CompiledComposition, compileComposition } from "../composition/compile.ts";
import { composeBinding } from "../composition/compose.ts";
import { desiredBinding, desiredKey, metadataOf } from "../composition/made-binding.ts";
import type { CompiledPatch } from "../composition/patches/compile.ts";
import type { Mistake, MistakeReason } from "./documents.ts";
import { type InputObject, type Inputs, mistakeAt } from "./inputs.ts";
import { brokenRulesOf, OWN_VERSION } from "./own-kinds.ts";
import { type Step, stepsOf } from "./place.ts";

/** A binding to show, and where to report its mistakes. */
export interface BindingToRender {
  readonly binding: SecretBinding;
  readonly from?: { readonly composition: string; readonly claim: string; readonly entry: string };
  /** The namespace of its claim, if it has a claim in a namespace. */
  readonly claimNamespace?: string;
  /** The object that it is composed for, and the patches from its fields into the binding. */
  readonly claim?: { readonly id: string; readonly patches: readonly Pick<CompiledPatch, "reads" | "writes">[] };
  readonly notes: readonly string[];
  /** It is not shown, only its mistakes. */
  readonly isBroken: boolean;
  /** `at` are the places of the mistake in the binding. By default, those of the parts. */
  mistakeAt(reason: MistakeReason, parts: string | ProblemParts, at?: readonly string[]): Mistake;
}

/** A binding that a claim does not get, with the reason. */
export interface NotMade {
  readonly composition: string;
  readonly claim: string;
  readonly entry: string;
  readonly problem: Problem;
}

export interface Composed {
  /** The compositions without mistakes. */
  readonly accepted: readonly BindingComposition[];
  /** The compositions without claims. */
  readonly unclaimed: readonly InputObject[];
  readonly bindings: readonly BindingToRender[];
  readonly notMade: readonly NotMade[];
  readonly notes: readonly string[];
  readonly mistakes: readonly Mistake[];
  /** Why claims get no binding. They are among the mistakes too. */
  readonly claimMistakes: readonly Mistake[];
}

const NOTHING: Composed = {
  accepted: [],
  unclaimed: [],
  bindings: [],
  notMade: [],
  notes: [],
  mistakes: [],
  claimMistakes: [],
};

export const isBinding = ({ object }: InputObject): boolean =>
  isSameKind(object, { apiVersion: OWN_VERSION, kind: "SecretBinding" });

/** A composed binding can't have the name of a SecretBinding in the files, or of another composed binding. */
export function composeBindings(inputs: Inputs, installation: Installation): Composed {
  const composed: Composed[] = inputs.objects
    .filter(({ object }) => isSameKind(object, { apiVersion: OWN_VERSION, kind: "BindingComposition" }))
    .map((composition) => composeClaims(composition, inputs, installation));
  const keys = new Set(
    inputs.objects
      .filter(isBinding)
      .map(({ object: { metadata } }) => desiredKey({ namespace: metadata.namespace ?? "", name: metadata.name })),
  );
  const bindings: BindingToRender[] = [];
  const notMade = composed.flatMap((each) => each.notMade);
  const mistakes = composed.flatMap((each) => each.mistakes);
  for (const each of composed.flatMap((one) => one.bindings)) {
    const { namespace = "", name } = each.binding.metadata;
    const key = desiredKey({ namespace, name });
    if (!keys.has(key)) {
      keys.add(key);
      bindings.push(each);
      continue;
    }
    const message = `another SecretBinding in namespace ${namespace} has the name ${name}; set metadata.name by a patch`;
    mistakes.push(each.mistakeAt("NameTaken", message));
    if (each.from !== undefined) notMade.push({ ...each.from, problem: new Problem("NameTaken", message) });
  }
  return {
    accepted: composed.flatMap((each) => each.accepted),
    unclaimed: composed.flatMap((each) => each.unclaimed),
    bindings,
    notMade,
    notes: composed.flatMap((each) => each.notes),
    mistakes,
    claimMistakes: composed.flatMap((each) => each.claimMistakes),
  };
}

function composeClaims(input: InputObject, inputs: Inputs, installation: Installation): Composed {
  const { document } = input;
  const { metadata, spec } = input.object as unknown as BindingComposition;
  const { name: composition } = metadata;
  const { group, kind, namespaced } = inputs.kinds.resourceOf(spec.for.apiVersion, spec.for.kind);
  const compiled = attemptSync(() => compileComposition(spec, { group, kind, namespaced }));
  if (compiled instanceof Problem)
    return { ...NOTHING, mistakes: allIn(compiled).map((each) => mistakeAt(document, each.reason, each, ["spec"])) };
  if (input.isBroken) return NOTHING;
  const notes: string[] = [];
  const called = `BindingComposition ${composition}`;
  if (spec.suspend === true)
    notes.push(`${called} is suspended, so Inlay creates no bindings until spec.suspend is false`);
  const claims = claimsOf(spec, inputs, installation, (note) => notes.push(`${called}: ${note}`));
  if (claims.length === 0) notes.push(`${called}: no ${kind} is a claim of it, so it creates no bindings`);
  const all = claims.flatMap((claim) => compiled.bindings.map((entry) => composeEntry(compiled, entry, claim, input)));
  return {
    accepted: [input.object as unknown as BindingComposition],
    unclaimed: claims.length === 0 ? [input] : [],
    bindings: all.flatMap(({ rendered }) => rendered ?? []),
    notMade: all.flatMap(({ notMade }) => notMade ?? []),
    notes: [...new Set(notes)],
    mistakes: all.flatMap(({ mistakes }) => mistakes),
    claimMistakes: all.filter(({ notMade }) => notMade !== undefined).flatMap(({ mistakes }) => mistakes),
  };
}

/** The matching objects of the kind. For a namespace that is not in the files, only the name is compared. */
function claimsOf(
  { for: { apiVersion, kind, selector, namespaceSelector } }: BindingComposition["spec"],
  { objects }: Inputs,
  installation: Installation,
  note: (text: string) => void,
): InputObject[] {
  const isClaim = claimMatcher(selector);
  const isIn = namespaceMatcher(namespaceSelector);
  const hasLabels = (namespaceSelector?.matchLabels ?? namespaceSelector?.matchExpressions) !== undefined;
  const namespaces = new Map(
    objects
      .filter(({ object }) => isSameKind(object, { apiVersion: "v1", kind: NAMESPACES.kind }))
      .map(({ object }) => [object.metadata.name, object]),
  );
  return objects.filter(({ object }) => {
    if (!isSameKind(object, { apiVersion, kind }) || !isClaim(object.metadata.name, object.metadata)) return false;
    const { namespace } = object.metadata;
    if (namespace === undefined) return true;
    const home = namespaces.get(namespace);
    if (!isIn(namespace, home === undefined ? "unknown" : home.metadata.labels)) return false;
    const closed = installation.closedNamespace(namespace);
    if (closed !== undefined) note(closed.message);
    else if (home === undefined && hasLabels)
      note(`the labels of namespace ${namespace} are unknown and count as matching; add the Namespace to the files`);
    return closed === undefined;
  });
}

interface One {
  rendered?: BindingToRender;
  notMade?: NotMade;
  mistakes: readonly Mistake[];
}

function composeEntry(
  compiled: CompiledComposition,
  entry: CompiledBinding,
  input: InputObject,
  composition: InputObject,
): One {
  const claim = claimOf(input);
  const from = { composition: composition.object.metadata.name, claim: describe(claim), entry: entry.name };
  const composed = attemptSync(() => composeBinding(compiled, entry, claim));
  if (composed instanceof Problem) {
    const wrong = allIn(composed).filter(({ reason }) => reason !== "FieldNotFound");
    const mistakes = wrong.map((each) => mistakeOf(each, entry, input, composition));
    return { notMade: { ...from, problem: composed }, mistakes };
  }
  const gone = composed.missing.find(({ isRequired }) => isRequired);
  if (gone !== undefined) {
    const message = `${gone.place}: the claim has no ${gone.path}, so the binding is not created`;
    return { notMade: { ...from, problem: new Problem("FieldNotFound", message) }, mistakes: [] };
  }
  const key = objectKey(claim.namespace, claim.name);
  const desired = desiredBinding(composed, { composition: from.composition, claim: key, owner: claim });
  const metadata = { name: desired.name, namespace: desired.namespace, ...metadataOf(desired) };
  const binding = { apiVersion: OWN_VERSION, kind: "SecretBinding", metadata, spec: desired.spec } as SecretBinding;
  const notes = composed.missing
    .filter(({ isRemoved }) => !isRemoved)
    .map(({ place, path }) => `${place}: the claim has no ${path}, so the patch is skipped`);
  const claimNamespace = namespaceOfClaim(claim, compiled.kind);
  const within: Step[] = ["spec", "bindings", entry.name, "base"];
  const called = `binding ${desired.namespace}/${desired.name} for ${from.claim}`;
  const wrongAt: BindingToRender["mistakeAt"] = (reason, parts, at) => {
    const mistake = mistakeAt(composition.document, reason, parts, within, at);
    return { ...mistake, message: `${called}: ${mistake.message}` };
  };
  const rules = brokenRulesOf("SecretBinding", binding as unknown as JsonObject);
  return {
    rendered: {
      binding,
      from,
      ...(claimNamespace !== undefined && { claimNamespace }),
      claim: {
        id: objectId({ group: compiled.kind.group, kind: claim.kind }, claim.namespace, claim.name),
        patches: entry.patches.filter(({ direction }) => direction === "FromComposite"),
      },
      notes,
      isBroken: false,
      mistakeAt: wrongAt,
    },
    mistakes: rules.map((rule) => wrongAt("Invalid", rule)),
  };
}

const describe = ({ kind, namespace, name }: Claim): string => describeObject(kind, namespace, name);

function claimOf({ object }: InputObject): Claim {
  const { apiVersion, kind, metadata, ...rest } = object;
  const { name, namespace, uid } = metadata;
  const fields = { ...rest, metadata } as unknown as JsonObject;
  return { apiVersion, kind, name, ...(namespace !== undefined && { namespace }), uid, fields };
}

/** Reports the problem at the claim's field that the patch reads, else at the entry of the composition. */
function mistakeOf(problem: Problem, entry: CompiledBinding, claim: InputObject, composition: InputObject): Mistake {
  const { message } = problem.within(describe(claimOf(claim)));
  const steps = stepsOf(problem.at);
  const patch = entry.patches.find(({ place }) => place === problem.at[0]) ?? writerOf(steps.slice(2), entry.patches);
  const [read] = patch?.reads ?? [];
  if (read === undefined) {
    const place = ["spec", "bindings", entry.name, "base", ...steps.slice(2)];
    const { file } = composition.document;
    return { file, ...composition.document.positionOf(place), reason: problem.reason, message };
  }
  const path = read.segments.flatMap((segment): Step[] =>
    segment.kind === "key" ? [segment.key] : segment.kind === "index" ? [segment.index] : [],
  );
  return { file: claim.document.file, ...claim.document.positionOf(path), reason: problem.reason, message };
}

/** The last patch that writes at, below or above a place of the binding. */
function writerOf(steps: readonly Step[], patches: readonly CompiledPatch[]): CompiledPatch | undefined {
  if (steps.length === 0) return undefined;
  return patches.findLast(({ direction, writes }) => {
    const written = writes.segments.map((segment) =>
      segment.kind === "key" ? segment.key : segment.kind === "index" ? segment.index : undefined,
    );
    const length = Math.min(written.length, steps.length);
    return direction === "FromComposite" && written.slice(0, length).every((step, at) => step === steps[at]);
  });
}
