/** Checks and prepares the patches of a composition: paths, policies, formats and transforms. */
import type { Patch, PatchSet } from "../../api/composition.ts";
import { allOf, attemptSync, eachOf, Problem } from "../../apimachinery/problem.ts";
import { suggestNames } from "../../apimachinery/suggest-names.ts";
import { compileFormat } from "./go-format.ts";
import type { MergePolicy } from "./merge.ts";
import { mistake, Options } from "./options.ts";
import { type CompositePath, type ConcretePath, isConcrete } from "./path.ts";
import type { CompiledTransforms } from "./string-transforms.ts";
import { assertWritable, compileTransforms, concrete, pathIn } from "./transforms.ts";

export interface CompiledPatch {
  /** Its place in the composition, such as `bindings[s3].patches[2]`. */
  readonly place: string;
  readonly direction: "FromComposite" | "ToComposite";
  /** Fields of the claim for FromComposite, of the binding for ToComposite. */
  readonly reads: readonly ConcretePath[];
  /** A field of the other object. */
  readonly writes: CompositePath;
  /** Whether the policy requires the fields to exist. */
  readonly isRequired: boolean;
  /** Whether a missing field of the claim removes the field of the binding. */
  readonly isRemoved: boolean;
  /** The most elements that the written field may have, if it is a list of a binding. */
  readonly maxItems?: number | undefined;
  /** How the value is merged into the existing value; by default, it replaces that. */
  readonly merge: MergePolicy | undefined;
  /** Combines all values to one text, for patches of the type Combine. */
  readonly combine: ReturnType<typeof compileFormat> | undefined;
  readonly transforms: CompiledTransforms;
  /** All texts in the composition itself: those of the transforms, and the format of combine. */
  readonly constants: readonly string[];
}

/** What patches may read and write. Each throws Problem("InvalidComposition"). */
export interface PatchRules {
  reads(patch: Pick<CompiledPatch, "direction" | "place">, path: ConcretePath): void;
  writes(
    patch: Pick<CompiledPatch, "direction" | "place" | "writes"> & {
      transforms: Pick<CompiledTransforms, "isListed" | "elements">;
    },
  ): void;
}

const ANY: PatchRules = { reads: () => {}, writes: () => {} };

const DIRECTIONS = {
  FromCompositeFieldPath: "FromComposite",
  ToCompositeFieldPath: "ToComposite",
  CombineFromComposite: "FromComposite",
  CombineToComposite: "ToComposite",
} as const;

type CopyType = keyof typeof DIRECTIONS;
type PatchType = CopyType | "PatchSet";

const COPY = ["type", "fromFieldPath", "toFieldPath", "policy", "transforms"];
const COMBINE = ["type", "combine", "toFieldPath", "policy", "transforms"];
const FIELDS: Readonly<Record<PatchType, readonly string[]>> = {
  FromCompositeFieldPath: COPY,
  ToCompositeFieldPath: COPY,
  CombineFromComposite: COMBINE,
  CombineToComposite: COMBINE,
  PatchSet: ["type", "patchSetName"],
};
const TYPES = Object.keys(FIELDS) as PatchType[];
const ALL_FIELDS = [...new Set(Object.values(FIELDS).flat())];
const ENVIRONMENT_TYPE = /^(?:Combine)?(?:From|To)Environment(?:FieldPath)?$/;

const FORCED: MergePolicy = { overwrites: true, appends: false };
const FORCED_APPENDING: MergePolicy = { overwrites: true, appends: true };
const KEEPING: MergePolicy = { overwrites: false, appends: false };
const MERGE_POLICIES = {
  Replace: undefined,
  MergeObjects: KEEPING,
  MergeObjectsAppendArrays: { overwrites: false, appends: true },
  ForceMergeObjects: FORCED,
  ForceMergeObjectsAppendArrays: FORCED_APPENDING,
  // Names from older releases of Crossplane.
  MergeObject: KEEPING,
  AppendArray: FORCED_APPENDING,
} as const satisfies Record<string, MergePolicy | undefined>;
const POLICY_NAMES = Object.keys(MERGE_POLICIES) as (keyof typeof MERGE_POLICIES)[];

/**
 * Compiles the patches of one binding, in order, with the patches of PatchSets in place of the patches that use them. `place` is the
 * binding's, such as `bindings[s3]`. Throws Problem("InvalidComposition") with the first mistake, and what to write.
 */
export function compilePatches(
  patches: readonly Patch[] | undefined,
  patchSets: readonly PatchSet[] | undefined,
  place: string,
  rules = ANY,
): CompiledPatch[] {
  const ofSet = (options: Options) => compileSet(setOf(options, patchSets ?? []), `${options.place}.`, rules);
  return compileEach(patches ?? [], place, rules, ofSet);
}

/** `ofSet` compiles a patch of the type PatchSet. */
function compileEach(
  patches: readonly Patch[],
  place: string,
  rules: PatchRules,
  ofSet: (options: Options) => CompiledPatch[],
): CompiledPatch[] {
  const compile = (patch: Patch, index: number) => {
    const options = new Options(patch, `${place}.patches[${index}]`);
    const type = typeOf(options);
    return type === "PatchSet" ? ofSet(options) : [compilePatch(type, options, rules)];
  };
  return eachOf(patches, compile).flat();
}

/** Checks every PatchSet, even one that no binding uses. Throws Problem("InvalidComposition"). */
export function checkPatchSets(patchSets: readonly PatchSet[] | undefined): void {
  const names = new Set<string>();
  const check = (set: PatchSet, index: number) => {
    if (names.has(set.name))
      throw mistake(`patchSets[${index}].name`, `another PatchSet has the name ${set.name} too; rename one of them`);
    names.add(set.name);
    compileSet(set, "", ANY);
  };
  eachOf(patchSets ?? [], check);
}

function compileSet({ name, patches }: PatchSet, prefix: string, rules: PatchRules): CompiledPatch[] {
  return compileEach(patches, `${prefix}patchSets[${name}]`, rules, (options) => {
    throw options.wrong("type", "must not be PatchSet in a PatchSet; copy the patches of the other one");
  });
}

function setOf(options: Options, patchSets: readonly PatchSet[]): PatchSet {
  const wanted = options.text("patchSetName", "the name of an entry of spec.patchSets");
  const found = patchSets.find(({ name }) => name === wanted);
  if (found !== undefined) return found;
  const names = patchSets.map(({ name }) => name);
  const hint = names.length === 0 ? "spec.patchSets is empty" : suggestNames("spec.patchSets", wanted, names);
  throw options.wrong("patchSetName", `is ${wanted}, but no PatchSet has this name; ${hint}`);
}

/** The type, after a check that the patch has only fields of that type. */
function typeOf(options: Options): PatchType {
  const given = options.get("type");
  if (typeof given === "string" && ENVIRONMENT_TYPE.test(given)) {
    const advice = "add a ConfigMap as a source in the base of the binding instead";
    throw options.wrong("type", `is ${given}, but Inlay has no environment; ${advice}`);
  }
  const type = options.choice("type", TYPES, "FromCompositeFieldPath");
  options.only(FIELDS[type], ALL_FIELDS);
  return type;
}

function compilePatch(type: CopyType, options: Options, rules: PatchRules): CompiledPatch {
  const named = { place: options.place, direction: DIRECTIONS[type] };
  const isCombined = type === "CombineFromComposite" || type === "CombineToComposite";
  const compiled = attemptSync(() => compileTransforms(options.get("transforms"), options.place));
  const [{ reads, combine, constants }, transforms, writes, policy] = allOf(
    () => {
      const input = isCombined
        ? compileCombine(options)
        : { reads: [compileSource(options)], combine: undefined, constants: [] };
      eachOf(input.reads, (path) => rules.reads(named, path));
      return input;
    },
    () => {
      if (compiled instanceof Problem) throw compiled;
      return compiled;
    },
    () => {
      const path = compileTarget(options, isCombined);
      // With a mistake in the transforms, it is not known which values they list.
      const known = compiled instanceof Problem ? { isListed: true, elements: undefined } : compiled;
      rules.writes({ ...named, writes: path, transforms: known });
      return path;
    },
    () => compilePolicy(options, named.direction),
  );
  return {
    ...named,
    reads,
    writes,
    ...policy,
    combine,
    transforms,
    constants: [...constants, ...transforms.constants],
  };
}

function compileCombine(patch: Options): Pick<CompiledPatch, "reads" | "combine" | "constants"> {
  const options = patch.below("combine", "variables, strategy and string below it");
  options.only(["variables", "strategy", "string"]);
  options.choice("strategy", ["string"]);
  const string = options.below("string", 'fmt: "%s-%s" below it, with one verb for each variable').only(["fmt"]);
  const fmt = string.text("fmt", '"%s-%s", with one verb for each variable');
  const variables = options.list("variables");
  if (variables.length === 0)
    throw options.missing("variables", "the fields to combine, as in [{fromFieldPath: spec.host}]");
  const reads = variables.map((variable, index) => {
    return compileSource(new Options(variable, `${options.place}.variables[${index}]`).only(["fromFieldPath"]));
  });
  return { reads, combine: compileFormat(fmt, reads.length, `${string.place}.fmt`), constants: [fmt] };
}

function compileSource(options: Options): ConcretePath {
  const advice = "which can't be read; name one element, as in [0] or [name=web], or read the whole list";
  return concrete(options, "fromFieldPath", pathFromRoot(options, "fromFieldPath"), advice);
}

function compileTarget(options: Options, isCombined: boolean): CompositePath {
  const isSame = !isCombined && options.get("toFieldPath") === undefined;
  const name = isSame ? "fromFieldPath" : "toFieldPath";
  const path = pathFromRoot(options, name);
  if (isCombined && !isConcrete(path))
    throw options.wrong(name, "has [*], which a patch of this type can't write; write one field");
  assertWritable(options, name, path);
  return path;
}

function pathFromRoot(options: Options, name: string): CompositePath {
  const path = pathIn(options, name, "the path of a field, such as spec.host");
  if (path.segments[0]?.kind === "key") return path;
  throw options.wrong(name, "must begin with a field of the object, such as spec");
}

function compilePolicy(
  patch: Options,
  direction: CompiledPatch["direction"],
): Pick<CompiledPatch, "isRequired" | "isRemoved" | "merge"> {
  const options = new Options(patch.get("policy") ?? {}, `${patch.place}.policy`);
  options.only(["fromFieldPath", "onMissing", "toFieldPath"]);
  const isRequired = options.choice("fromFieldPath", ["Optional", "Required"], "Optional") === "Required";
  const isRemoved = options.choice("onMissing", ["Keep", "Remove"], "Keep") === "Remove";
  if (isRemoved && (isRequired || direction === "ToComposite"))
    throw options.wrong("onMissing", "is Remove, which is only for optional fields of the claim; remove it");
  return {
    isRequired,
    isRemoved,
    merge: MERGE_POLICIES[options.choice("toFieldPath", POLICY_NAMES, "Replace")],
  };
}
