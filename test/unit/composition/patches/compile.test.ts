/** Which patches are refused when a composition is compiled, where the mistake is, and how valid patches are compiled. */
import assert from "node:assert/strict";
import type { Patch, PatchSet } from "../../../../src/api/composition.ts";
import { attemptSync, Problem } from "../../../../src/apimachinery/problem.ts";
import { claimPaths } from "../../../../src/composition/compile.ts";
import { checkPatchSets, compilePatches } from "../../../../src/composition/patches/compile.ts";

const compile = (patches: Patch[], patchSets?: PatchSet[]) => compilePatches(patches, patchSets, "bindings[s3]");

/** The place of the mistake in the message. */
function placeOf(work: () => unknown): string {
  const problem = attemptSync(work);
  assert.ok(problem instanceof Problem);
  assert.equal(problem.reason, "InvalidComposition");
  return problem.message.slice(0, problem.message.indexOf(": "));
}

const combine = { strategy: "string", variables: [{ fromFieldPath: "spec.a" }], string: { fmt: "x-%s" } };

describe("a patch", () => {
  it("copies a field of the claim to the same path by default", () => {
    const [patch] = compile([{ fromFieldPath: "spec.a" }]);
    assert.equal(patch?.place, "bindings[s3].patches[0]");
    assert.equal(patch?.direction, "FromComposite");
    assert.deepEqual([patch?.reads.map(({ text }) => text), patch?.writes.text], [["spec.a"], "spec.a"]);
    assert.deepEqual([patch?.isRequired, patch?.merge], [false, undefined]);
  });

  it("has a direction and policies", () => {
    const policyOf = (toFieldPath: string) =>
      compile([
        { type: "ToCompositeFieldPath", fromFieldPath: "a", policy: { fromFieldPath: "Required", toFieldPath } },
      ]);
    const [patch] = policyOf("Replace");
    assert.deepEqual([patch?.direction, patch?.isRequired, patch?.merge], ["ToComposite", true, undefined]);
    const merges = ["MergeObjects", "MergeObjectsAppendArrays", "ForceMergeObjects", "ForceMergeObjectsAppendArrays"];
    assert.deepEqual(
      merges.map((policy) => policyOf(policy)[0]?.merge),
      [
        { overwrites: false, appends: false },
        { overwrites: false, appends: true },
        { overwrites: true, appends: false },
        { overwrites: true, appends: true },
      ],
    );
    assert.deepEqual(policyOf("MergeObject")[0]?.merge, policyOf("MergeObjects")[0]?.merge);
    assert.deepEqual(policyOf("AppendArray")[0]?.merge, policyOf("ForceMergeObjectsAppendArrays")[0]?.merge);
  });

  it("lists the texts in the composition itself", () => {
    const [patch] = compile([
      {
        type: "CombineFromComposite",
        combine,
        toFieldPath: "b",
        transforms: [{ type: "string", string: { fmt: "%s-y" } }],
      },
    ]);
    assert.deepEqual(patch?.constants, ["x-%s", "%s-y"]);
  });

  const mistakes: [patch: unknown, place: string][] = [
    [{ type: "FromComposite", fromFieldPath: "a" }, ".type"],
    [{ type: "FromEnvironmentFieldPath", fromFieldPath: "a" }, ".type"],
    [{ type: "CombineToEnvironment", combine, toFieldPath: "a" }, ".type"],
    [{ fromFeildPath: "a" }, ".fromFeildPath"],
    [{ fromFieldPath: "a", combine }, ".combine"],
    [{}, ".fromFieldPath"],
    [{ fromFieldPath: 1 }, ".fromFieldPath"],
    ["spec.a", ""],
    [null, ""],
    [{ toFieldPath: "a" }, ".fromFieldPath"],
    [{ fromFieldPath: "a..b" }, ".fromFieldPath"],
    [{ fromFieldPath: "" }, ".fromFieldPath"],
    [{ fromFieldPath: "a[*]" }, ".fromFieldPath"],
    [{ fromFieldPath: "[0].a" }, ".fromFieldPath"],
    [{ fromFieldPath: "a.__proto__" }, ".fromFieldPath"],
    [{ fromFieldPath: "a", toFieldPath: "b]" }, ".toFieldPath"],
    [{ fromFieldPath: "a", toFieldPath: "[*].b" }, ".toFieldPath"],
    [{ fromFieldPath: "a", toFieldPath: "b[1025]" }, ".toFieldPath"],
    [{ fromFieldPath: "a[1025]" }, ".fromFieldPath"],
    [{ fromFieldPath: "a", policy: { fromFieldPath: "required" } }, ".policy.fromFieldPath"],
    [{ fromFieldPath: "a", policy: { toFieldPath: "Merge" } }, ".policy.toFieldPath"],
    [{ fromFieldPath: "a", policy: { toFieldPath: "toString" } }, ".policy.toFieldPath"],
    [{ fromFieldPath: "a", policy: { fieldPath: "x" } }, ".policy.fieldPath"],
    [{ fromFieldPath: "a", transforms: [{ type: "strin" }] }, ".transforms[0].type"],
    [{ type: "CombineFromComposite", toFieldPath: "a" }, ".combine"],
    [{ type: "CombineFromComposite", combine }, ".toFieldPath"],
    [{ type: "CombineFromComposite", combine, toFieldPath: "a[*]" }, ".toFieldPath"],
    [{ type: "CombineFromComposite", combine, fromFieldPath: "b", toFieldPath: "a" }, ".fromFieldPath"],
    [{ type: "CombineFromComposite", combine, toFieldPath: "a", transforms: [{ type: "x" }] }, ".transforms[0].type"],
    [{ type: "CombineToComposite", combine, toFieldPath: "a", policy: { toFieldPath: "x" } }, ".policy.toFieldPath"],
    ...(
      [
        [{ ...combine, variables: [] }, ".variables"],
        [{ strategy: "string", string: combine.string }, ".variables"],
        [{ variables: combine.variables, string: combine.string }, ".strategy"],
        [{ ...combine, strategy: "json" }, ".strategy"],
        [{ ...combine, string: null }, ".string"],
        [{ ...combine, string: {} }, ".string.fmt"],
        [{ ...combine, string: { fmt: "%s", format: "%s" } }, ".string.format"],
        [{ ...combine, string: { fmt: "%s-%s" } }, ".string.fmt"],
        [{ ...combine, variables: [{}] }, ".variables[0].fromFieldPath"],
        [{ ...combine, variables: [{ fromFieldPath: "a" }, { fromFieldPath: "a[*]" }] }, ".variables[1].fromFieldPath"],
        [{ ...combine, variables: [{ fromFieldPath: "a", name: "b" }] }, ".variables[0].name"],
        [{ ...combine, vars: [] }, ".vars"],
      ] as const
    ).map(([wrong, place]): [unknown, string] => [
      { type: "CombineToComposite", toFieldPath: "b", combine: wrong },
      `.combine${place}`,
    ]),
  ];
  for (const [patch, place] of mistakes)
    it(`is refused at ${place || "its place"}: ${JSON.stringify(patch)}`, () => {
      assert.equal(
        placeOf(() => compile([{ fromFieldPath: "x" }, patch as Patch])),
        `bindings[s3].patches[1]${place}`,
      );
    });

  it("that is misspelled gets a suggestion", () => {
    const suggestion = (patch: unknown) => {
      const { message } = attemptSync(() => compile([patch as Patch])) as Problem;
      return /did you mean (\w+)/.exec(message)?.[1];
    };
    assert.equal(suggestion({ fromFeildPath: "a" }), "fromFieldPath");
    assert.equal(suggestion({ type: "PatchSets" }), "PatchSet");
    assert.equal(suggestion({ fromFieldPath: "a", policy: { toFieldPath: "MergeObjekts" } }), "MergeObjects");
  });
});

describe("a PatchSet", () => {
  const common: PatchSet = { name: "common", patches: [{ fromFieldPath: "a" }, { fromFieldPath: "b" }] };
  const use = (patchSetName: string): Patch => ({ type: "PatchSet", patchSetName });

  it("replaces the patch that uses it", () => {
    const places = compile([{ fromFieldPath: "x" }, use("common"), { fromFieldPath: "y" }], [common]);
    assert.deepEqual(
      places.map(({ place }) => place),
      [
        "bindings[s3].patches[0]",
        "bindings[s3].patches[1].patchSets[common].patches[0]",
        "bindings[s3].patches[1].patchSets[common].patches[1]",
        "bindings[s3].patches[2]",
      ],
    );
  });

  it("is refused if it is unknown, has no name, or gets fields that it would ignore", () => {
    assert.equal(
      placeOf(() => compile([use("comon")], [common])),
      "bindings[s3].patches[0].patchSetName",
    );
    const wrong: [patch: Patch, field: string][] = [
      [{ type: "PatchSet" }, "patchSetName"],
      [{ ...use("common"), transforms: [] }, "transforms"],
    ];
    for (const [patch, field] of wrong)
      assert.equal(
        placeOf(() => compile([patch], [common])),
        `bindings[s3].patches[0].${field}`,
      );
  });

  it("can't use a PatchSet, has a unique name, and is checked even if no binding uses it", () => {
    const nested = { name: "outer", patches: [use("common")] };
    assert.equal(
      placeOf(() => checkPatchSets([common, nested])),
      "patchSets[outer].patches[0].type",
    );
    assert.equal(
      placeOf(() => compile([use("outer")], [nested])),
      "bindings[s3].patches[0].patchSets[outer].patches[0].type",
    );
    assert.equal(
      placeOf(() => checkPatchSets([common, common])),
      "patchSets[1].name",
    );
    assert.equal(
      placeOf(() => checkPatchSets([{ name: "wrong", patches: [{ fromFieldPath: "a]" }] }])),
      "patchSets[wrong].patches[0].fromFieldPath",
    );
    checkPatchSets([common]);
  });
});

describe("the paths of a claim that patches need", () => {
  it("end before lists and wildcards, and none is below another one", () => {
    const patches = compile([
      { fromFieldPath: "spec.hosts[0].name", toFieldPath: "spec.x" },
      { fromFieldPath: "spec.hosts", toFieldPath: "spec.y" },
      { fromFieldPath: "spec.hostsAll.a", toFieldPath: "spec.z" },
      {
        type: "CombineFromComposite",
        combine: { ...combine, variables: [{ fromFieldPath: "metadata.labels[example.com/a]" }] },
        toFieldPath: "spec.v",
      },
      { type: "ToCompositeFieldPath", fromFieldPath: "status.a", toFieldPath: "status.list[*].ready" },
      { type: "ToCompositeFieldPath", fromFieldPath: "status.b", toFieldPath: "status" },
    ]);
    const { reads, writes } = claimPaths(patches);
    const labels = 'metadata.labels["example.com/a"]';
    assert.deepEqual(reads.map(String), ["metadata.creationTimestamp", labels, "spec.hosts", "spec.hostsAll.a"]);
    assert.deepEqual(writes.map(String), ["status"]);
  });
});
