/** Which bindings a claim gets beside those that exist, and every reason why it does not get one. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../src/api/binding.ts";
import type { Patch } from "../../../src/api/composition.ts";
import type { JsonObject } from "../../../src/apimachinery/objects.ts";
import { composeBinding } from "../../../src/composition/compose.ts";
import {
  type DecidedEntry,
  decideBindings,
  desiredKey,
  metadataOf,
  type PresentBindings,
} from "../../../src/composition/made-binding.ts";
import { BASE, claimOf, compiled, specOf } from "./compositions.ts";

const NAMED = { fromFieldPath: "spec.name", toFieldPath: "metadata.name" };
const LABEL = { fromFieldPath: "spec.label", toFieldPath: "metadata.labels[a]" };
const TWICE = { bindings: ["a", "b"].map((name) => ({ name, base: BASE, patches: [NAMED] })) };

function decide(
  patches: Patch[],
  fields: JsonObject,
  { own = [], last = [], isTaken = () => false }: Partial<PresentBindings> = {},
  { uid = "uid-1", ...more }: { uid?: string; bindings?: object[] } = {},
): DecidedEntry[] {
  const claim = claimOf({ spec: fields }, { uid });
  const composition = compiled(specOf(patches, more));
  const entries = composition.bindings.map((entry) => composeBinding(composition, entry, claim));
  return decideBindings(entries, { composition: "shops", claim: "team/shop", owner: claim }, { own, last, isTaken });
}
const first = (...given: Parameters<typeof decide>): DecidedEntry => decide(...given)[0] ?? assert.fail();
const messages = ({ problems }: DecidedEntry) => problems.map(({ reason, message }) => `${reason}: ${message}`);

/** The binding as it exists after it was created for these fields. */
function existing(fields: JsonObject, namespace = "team"): SecretBinding {
  const desired = first([NAMED, LABEL], fields).desired ?? assert.fail();
  const metadata = { ...metadataOf(desired), namespace, name: desired.name };
  return { metadata, spec: desired.spec } as SecretBinding;
}

describe("the binding of an entry", () => {
  it("keeps its name, unless it exists in another namespace or for a former claim of that name", () => {
    const old = existing({ name: "old" });
    const nameOf = (own: SecretBinding[], uid = "uid-1") =>
      first([NAMED], { name: "new" }, { own }, { uid }).desired?.name;
    assert.deepEqual(
      [nameOf([]), nameOf([old]), nameOf([old], "uid-2"), nameOf([existing({ name: "old" }, "other")])],
      ["new", "old", "new", "new"],
    );
  });

  it("stays as last composed while a field is missing that it had, or as it is if that is not known", () => {
    const own = [existing({ name: "a", label: "x" })];
    const last = [first([NAMED, LABEL], { name: "a", label: "x" }).desired ?? assert.fail()];
    const unknown = first([NAMED, LABEL], { name: "a" }, { own });
    assert.deepEqual([unknown.desired, unknown.isHeld], [undefined, true]);
    const known = first([NAMED, LABEL], { name: "a" }, { own, last });
    assert.deepEqual([known.desired, known.isHeld], [last[0], false]);
    const message =
      "bindings[s3].patches[1]: the claim has no spec.label, so the binding is not created or changed; add the field to the claim";
    for (const each of [unknown, known]) assert.deepEqual(messages(each), [`FieldNotFound: ${message}`]);
    const removed = first([NAMED, { ...LABEL, policy: { onMissing: "Remove" } }], { name: "a" }, { own });
    assert.deepEqual([removed.desired?.labels["a"], removed.problems], [undefined, []]);
  });

  it("is not created with the name of another binding, also of the same claim", () => {
    const message = (entry: string) =>
      `NameTaken: bindings[${entry}]: metadata.name: another SecretBinding in namespace team has the name x; delete it, or set metadata.name by a patch`;
    const taken = first([NAMED], { name: "x" }, { isTaken: (each) => desiredKey(each) === "team/x" });
    assert.deepEqual([taken.name, taken.desired, messages(taken)], ["team/x", undefined, [message("s3")]]);
    const [one, two = assert.fail()] = decide([], { name: "x" }, {}, TWICE);
    assert.deepEqual([one?.desired?.name, two.desired, messages(two)], ["x", undefined, [message("b")]]);
  });

  it("has all problems: missing fields, wrong values of patches and of the schema, and names, each one once", () => {
    const patches = [
      {
        fromFieldPath: "spec.size",
        toFieldPath: "metadata.labels[size]",
        transforms: [{ type: "map", map: { s: "1" } }],
      },
      { fromFieldPath: "spec.needed", toFieldPath: "metadata.labels[b]", policy: { fromFieldPath: "Required" } },
      { fromFieldPath: "spec.target", toFieldPath: "spec.targets[0].name" },
      { fromFieldPath: "spec.none", toFieldPath: "spec.sources[0].secret" },
      { ...NAMED },
      LABEL,
    ] as Patch[];
    const base = { spec: { ...BASE.spec, sources: [{ name: "bucket" }] } };
    const own = [existing({ name: "a", label: "x" })];
    const bindings = [{ name: "s3", base, patches }];
    const fields = { size: "huge", target: 5, name: "UPPER" };
    const found = messages(first([], fields, { own }, { bindings })).map((each) => each.split(/[,;]/)[0]);
    assert.deepEqual(found, [
      "InvalidValue: bindings[s3].patches[0]: spec.size: transforms[0]: map has no key for the value",
      "FieldNotFound: bindings[s3].patches[1]: the claim has no spec.needed",
      "InvalidValue: bindings[s3]: spec.targets[0].name: the field is a string",
      "FieldNotFound: bindings[s3].patches[3]: the claim has no spec.none",
      "InvalidValue: bindings[s3]: the name of the binding must be a DNS name of at most 253 characters",
      "FieldNotFound: bindings[s3].patches[5]: the claim has no spec.label",
    ]);
  });

  it("has no problem that only follows from a patch that failed", () => {
    const wrong = { fromFieldPath: "spec.secret", toFieldPath: "spec.sources[0].secret.name" };
    const base = { spec: { ...BASE.spec, sources: [{ name: "bucket", secret: {} }] } };
    const patches = [{ ...wrong, transforms: [{ type: "map", map: { a: "b" } }] }];
    const found = first([], { secret: "c" }, {}, { bindings: [{ name: "s3", base, patches }] });
    assert.deepEqual(messages(found), [
      "InvalidValue: bindings[s3].patches[0]: spec.secret: transforms[0]: map has no key for the value",
    ]);
  });
});
