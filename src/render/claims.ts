/** Composes the bindings of all compositions for the claims in the files, with the reason for each binding that is not created. Pure. */
import { bindingKey, type SecretBinding } from "../api/binding.ts";
import { composedFrom } from "../api/composed.ts";
import type { BindingComposition } from "../api/composition.ts";
import type { Installation } from "../api/installation.ts";
import { describeObject, idOfObject, isSameKind, type JsonObject } from "../apimachinery/objects.ts";
import { allIn, attemptSync, Problem, type ProblemParts } from "../apimachinery/problem.ts";
import { BINDING_COMPOSITIONS, NAMESPACES, SECRET_BINDINGS } from "../apimachinery/resources.ts";
import { objectKey } from "../cache/reflector.ts";
import { type Claim, namespaceOfClaim } from "../composition/claim.ts";
import { claimMatcher, namespaceMatcher } from "../composition/claim-selection.ts";
import { type CompiledBinding, type CompiledComposition, compileComposition } from "../composition/compile.ts";
import { composeBinding } from "../composition/compose.ts";
import { type DesiredBinding, decideBindings, desiredKey, metadataOf } from "../composition/made-binding.ts";
import type { CompiledPatch } from "../composition/patches/compile.ts";
import type { ProducedBy } from "../sources/grant-rules.ts";
import type { Mistake, MistakeReason } from "./documents.ts";
import { type InputObject, type Inputs, mistakeAt } from "./inputs.ts";
import { brokenRulesOf, OWN_VERSION, ownResource } from "./own-kinds.ts";
import { type Step, stepsOf } from "./place.ts";

/** A binding to show, and where to report its mistakes. */
export interface BindingToRender {
  readonly binding: SecretBinding;
  readonly from?: { readonly composition: string; readonly claim: string; readonly entry: string };
  /** The same, as grants and stores ask for it. */
  readonly producedBy: ProducedBy;
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
  readonly accepted: BindingComposition[];
  /** The compositions without claims. */
  readonly unclaimed: InputObject[];
  readonly bindings: BindingToRender[];
  readonly notMade: NotMade[];
  readonly notes: string[];
  readonly mistakes: Mistake[];
  /** Why claims get no binding. They are among the mistakes too. */
  readonly claimMistakes: Mistake[];
}

export const isBinding = ({ object }: InputObject): boolean => ownResource(object) === SECRET_BINDINGS;

type LiveBinding = Pick<SecretBinding, "metadata">;

/** What is composed so far, and from what. */
interface Composing extends Composed {
  readonly inputs: Inputs;
  readonly installation: Installation;
  /** The keys of the SecretBindings in the files, and of those composed so far. */
  readonly names: Set<string>;
  /** The bindings of the cluster by their keys, and by composition and claim. */
  readonly live: ReadonlyMap<string, LiveBinding>;
  readonly own: ReadonlyMap<string, readonly LiveBinding[]>;
}

/**
 * A composed binding can't have the name of a SecretBinding in the files, of another composed binding, or of another binding of the cluster.
 * `live` are the bindings of the cluster, of which those of a claim keep their names.
 */
export function composeBindings(
  inputs: Inputs,
  installation: Installation,
  live: readonly LiveBinding[] = [],
): Composed {
  const inFiles = inputs.objects.filter(isBinding).map(({ object }) => bindingKey(object as unknown as SecretBinding));
  const composing: Composing = {
    inputs,
    installation,
    names: new Set(inFiles),
    live: new Map(live.map((each) => [bindingKey(each), each])),
    own: Map.groupBy(live, (each) => ownKey(composedFrom(each))),
    accepted: [],
    unclaimed: [],
    bindings: [],
    notMade: [],
    notes: [],
    mistakes: [],
    claimMistakes: [],
  };
  for (const each of inputs.objects)
    if (ownResource(each.object) === BINDING_COMPOSITIONS) composeClaims(each, composing);
  return composing;
}

const ownKey = (from: { composition: string; claim: string } | undefined): string =>
  from === undefined ? "" : `${from.composition}|${from.claim}`;

function composeClaims(input: InputObject, composing: Composing): void {
  const { document } = input;
  const composition = input.object as unknown as BindingComposition;
  const { metadata, spec } = composition;
  const { group, kind, namespaced } = composing.inputs.kinds.resourceOf(spec.for.apiVersion, spec.for.kind);
  const compiled = attemptSync(() => compileComposition(spec, { group, kind, namespaced }));
  if (compiled instanceof Problem)
    composing.mistakes.push(...allIn(compiled).map((each) => mistakeAt(document, each.reason, each, ["spec"])));
  if (compiled instanceof Problem || input.isBroken) return;
  const notes = new Set<string>();
  const note = (text: string) => notes.add(`BindingComposition ${metadata.name}${text}`);
  if (spec.suspend === true) note(" is suspended, so Inlay creates no bindings until spec.suspend is false");
  const claims = claimsOf(spec, composing, (text) => note(`: ${text}`));
  if (claims.length === 0) {
    note(`: no ${kind} is a claim of it, so it creates no bindings`);
    composing.unclaimed.push(input);
  }
  composing.accepted.push(composition);
  composing.notes.push(...notes);
  for (const claim of claims) composeClaim(compiled, claim, input, composing);
}

/** The matching objects of the kind. For a namespace that is not in the files, only the name is compared. */
function claimsOf(
  { for: { apiVersion, kind, selector, namespaceSelector } }: BindingComposition["spec"],
  { inputs: { objects }, installation }: Composing,
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

function composeClaim(
  compiled: CompiledComposition,
  input: InputObject,
  composition: InputObject,
  { names, live, own: ownBindings, bindings, notMade, mistakes, claimMistakes }: Composing,
): void {
  const claim = claimOf(input);
  const made = { composition: composition.object.metadata.name, claim: describe(claim) };
  const origin = { composition: made.composition, claim: objectKey(claim.namespace, claim.name), owner: claim };
  const own = ownBindings.get(ownKey(origin)) ?? [];
  const isTaken = (each: DesiredBinding) => {
    const present = live.get(desiredKey(each));
    return names.has(desiredKey(each)) || (present !== undefined && !own.includes(present));
  };
  const entries = compiled.bindings.map((entry) => composeBinding(compiled, entry, claim));
  for (const { entry, desired, missing, problems } of decideBindings(entries, origin, { own, last: [], isTaken })) {
    const from = { ...made, entry: entry.name };
    const wrong = problems
      .filter(({ reason }) => reason !== "FieldNotFound")
      .map((each) => mistakeOf(each, entry, input, composition));
    notMade.push(...problems.map((problem) => ({ ...from, problem })));
    mistakes.push(...wrong);
    claimMistakes.push(...wrong);
    if (desired === undefined) continue;
    names.add(desiredKey(desired));
    const metadata = { name: desired.name, namespace: desired.namespace, ...metadataOf(desired) };
    const binding = { apiVersion: OWN_VERSION, kind: "SecretBinding", metadata, spec: desired.spec } as SecretBinding;
    const claimNamespace = namespaceOfClaim(claim, compiled.kind);
    const within: Step[] = ["spec", "bindings", entry.name, "base"];
    const called = `binding ${desired.namespace}/${desired.name} for ${from.claim}`;
    const wrongAt: BindingToRender["mistakeAt"] = (reason, parts, at) => {
      const mistake = mistakeAt(composition.document, reason, parts, within, at);
      return { ...mistake, message: `${called}: ${mistake.message}` };
    };
    bindings.push({
      binding,
      from,
      producedBy: { by: from.composition, ...(claimNamespace !== undefined && { claimNamespace }) },
      claim: {
        id: idOfObject(input.object),
        patches: entry.patches.filter(({ direction }) => direction === "FromComposite"),
      },
      notes: missing
        .filter(({ isRemoved }) => !isRemoved)
        .map(({ place, path }) => `${place}: the claim has no ${path}, so the patch is skipped`),
      isBroken: false,
      mistakeAt: wrongAt,
    });
    const rules = brokenRulesOf("SecretBinding", binding as unknown as JsonObject);
    mistakes.push(...rules.map((rule) => wrongAt("Invalid", rule)));
  }
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
  const path = read.segments.flatMap((segment) => stepAt(segment) ?? []);
  return { file: claim.document.file, ...claim.document.positionOf(path), reason: problem.reason, message };
}

const stepAt = (segment: CompiledPatch["writes"]["segments"][number]): Step | undefined =>
  segment.kind === "key" ? segment.key : segment.kind === "index" ? segment.index : undefined;

/** The last patch that writes at, below or above a place of the binding. */
function writerOf(steps: readonly Step[], patches: readonly CompiledPatch[]): CompiledPatch | undefined {
  if (steps.length === 0) return undefined;
  return patches.findLast(({ direction, writes }) => {
    const written = writes.segments.map(stepAt);
    const length = Math.min(written.length, steps.length);
    return direction === "FromComposite" && written.slice(0, length).every((step, at) => step === steps[at]);
  });
}
