/** Which compositions are refused before any claim is read, and which fields of claims they need. */
import assert from "node:assert/strict";
import type { Patch } from "../../../src/api/composition.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { BASE, CLUSTERS, compiled, NAMESPACES, SECRETS, SHOPS, specOf } from "./compositions.ts";

/** Throws unless it is refused at that place. */
const refuses = (act: () => unknown, place: string) =>
  assert.throws(act, (error) => {
    assert.ok(error instanceof Problem, String(error));
    assert.equal(error.reason, "InvalidComposition");
    assert.ok(error.message.startsWith(`${place}: `), error.message);
    return true;
  });
const from = (toFieldPath: string, fromFieldPath = "spec.a"): Patch => ({ fromFieldPath, toFieldPath });
const to = (toFieldPath: string): Patch => ({ type: "ToCompositeFieldPath", fromFieldPath: "status.a", toFieldPath });

describe("a composition is not accepted", () => {
  for (const path of [
    "spec.serviceAccountName",
    "spec.acknowledge",
    "spec.acknowledge[0]",
    "spec.sources[0].protect",
    "spec.sources[0].protect.writers[0].name",
    "spec.sources[*].providerClass.name",
    "spec.targets[0].kind",
    "spec.targets[*].apiVersion",
    "spec.targets[0].create.adopt",
    "spec.targets[0].create.exact",
    "spec.targets[0].create.onImmutable",
    "spec.rollout.targets[0].kind",
    "spec.rollout.steps[0].targets[0].apiVersion",
    // They contain one of those.
    "spec",
    "spec.sources",
    "spec.sources[0]",
    "spec.sources[0].providerClass",
    "spec.targets",
    "spec.targets[0]",
    "spec.targets[0].create",
    "spec.rollout",
    "metadata",
    "metadata.namespace",
    "metadata.ownerReferences",
    "metadata.finalizers[0]",
    "status.synced",
    "kind",
  ])
    it(`with a patch that writes ${path} of a binding`, () =>
      refuses(() => compiled(specOf([from("spec.suspend"), from(path)])), "bindings[s3].patches[1].toFieldPath"));

  for (const path of ["spec.a", "status", "metadata.name", "metadata.labels", "metadata.finalizers[0]", "data.a"])
    it(`with a patch that writes ${path} of a claim`, () =>
      refuses(() => compiled(specOf([to(path)])), "bindings[s3].patches[0].toFieldPath"));

  it("with a patch that reads the data of claims that are Secrets, or writes their status", () => {
    refuses(
      () => compiled(specOf([from("metadata.name", "data.key")]), SECRETS),
      "bindings[s3].patches[0].fromFieldPath",
    );
    refuses(() => compiled(specOf([to("status.ready")]), SECRETS), "bindings[s3].patches[0].toFieldPath");
    compiled(specOf([from("metadata.name", "metadata.labels[a]"), to("metadata.labels[b]")]), SECRETS);
  });

  it("with a wildcard in a path that no binding has", () => {
    for (const path of ["spec.sorces[*].secret.name", "spec.sources[*].secrets.name", "spec.suspend[*]"])
      refuses(() => compiled(specOf([from(path)])), "bindings[s3].patches[0].toFieldPath");
    for (const path of ["spec.sources[*].secret.name", "spec.targets[*].create.manifest.spec.list[*].name"])
      compiled(specOf([from(path)]));
  });

  it("with fields of Crossplane that have another place in Inlay", () => {
    const [binding] = specOf().bindings;
    for (const key of ["connectionDetails", "readinessChecks", "writeConnectionSecretToRef", "environment"])
      refuses(() => compiled(specOf([], { bindings: [{ ...binding, [key]: [] }] })), `bindings[s3].${key}`);
  });

  it("with a base that is not a SecretBinding, or has unknown fields", () => {
    refuses(() => compiled(specOf([], {}, { kind: "Secret" })), "bindings[s3].base");
    refuses(() => compiled(specOf([], {}, { status: {} })), "bindings[s3].base.status");
    refuses(() => compiled(specOf([], {}, { metadata: { finalizers: [] } })), "bindings[s3].base.metadata.finalizers");
    refuses(() => compiled(specOf([], {}, { spec: { sorces: [] } })), "bindings[s3].base");
    refuses(() => compiled(specOf([], {}, { spec: { suspend: "no" } })), "bindings[s3].base");
    const labels = { "inlay.dev/composition": "other" };
    refuses(
      () => compiled(specOf([], {}, { ...BASE, metadata: { labels } })),
      "bindings[s3].base.metadata.labels[inlay.dev/composition]",
    );
    compiled(specOf([], {}, { ...BASE, metadata: { labels: { "inlay.dev/protects": "true" } } }));
  });

  it("with two bindings or PatchSets of the same name", () => {
    const [binding] = specOf().bindings;
    refuses(() => compiled(specOf([], { bindings: [binding, binding] })), "bindings[s3]");
    const set = { name: "a", patches: [] };
    assert.throws(() => compiled(specOf([], { patchSets: [set, set] })), { reason: "InvalidComposition" });
  });

  it("for a cluster-scoped kind without a namespace for its bindings, or with one for its claims", () => {
    refuses(() => compiled(specOf(), CLUSTERS), "bindings[s3].base.metadata.namespace");
    compiled(specOf([], {}, { ...BASE, metadata: { namespace: "shared" } }), CLUSTERS);
    compiled(specOf(), NAMESPACES);
    const selected = { for: { apiVersion: "v1", kind: "Namespace", namespaceSelector: { names: ["a"] } } };
    refuses(() => compiled(specOf([], selected), NAMESPACES), "for.namespaceSelector");
  });
});

describe("a composition with its bindings in one namespace", () => {
  const shared = { ...BASE, metadata: { namespace: "shared" } };
  const forShops = (namespaceSelector: object) => ({ for: { ...specOf().for, namespaceSelector } });
  const combined = (...paths: string[]) => ({
    type: "CombineFromComposite" as const,
    combine: {
      strategy: "string" as const,
      variables: paths.map((fromFieldPath) => ({ fromFieldPath })),
      string: { fmt: paths.map(() => "%s").join(".") },
    },
    toFieldPath: "metadata.name",
  });

  it("needs a patch of the name by more than the name of the claim, if there are claims in several namespaces", () => {
    const place = "bindings[s3].base.metadata.namespace";
    refuses(() => compiled(specOf([], {}, shared)), place);
    refuses(() => compiled(specOf([combined("metadata.name")], {}, shared)), place);
    for (const selector of [{ names: ["team-*"] }, { names: ["a", "b"] }, { names: ["a"], matchLabels: { a: "b" } }])
      refuses(() => compiled(specOf([], forShops(selector), shared)), place);
  });

  it("is accepted otherwise", () => {
    compiled(specOf([combined("metadata.namespace", "metadata.name")], {}, shared));
    compiled(specOf([], forShops({ names: ["team-a"] }), shared));
  });
});

describe("a composition that is accepted", () => {
  it("needs the fields of a claim that patches read and write", () => {
    const { reads, writes } = compiled(
      specOf([
        from("metadata.name", "spec.list[0].name"),
        from("metadata.labels[a]", "metadata.labels[a]"),
        to("status.ready.s3"),
      ]),
      SHOPS,
    );
    // Conditions of a binding that could not be created use the creation time of the claim.
    assert.deepEqual(reads.map(String), ["metadata.creationTimestamp", "metadata.labels.a", "spec.list"]);
    assert.deepEqual(writes.map(String), ["status.ready.s3"]);
  });
});

describe("a field that only the author decides", () => {
  const listed = [{ type: "map", map: { true: "Any", false: "Equal" } }];
  const write = (toFieldPath: string, transforms: object[]) => () =>
    compiled(specOf([{ fromFieldPath: "spec.a", toFieldPath, transforms } as Patch]));

  it("may be written with values that the composition lists", () => {
    write("spec.targets[0].create.adopt", listed)();
    write("spec.targets[0].create", [{ type: "match", match: { patterns: [], fallbackValue: { adopt: "Any" } } }])();
    write("spec.sources[0].providerClass.name", listed)();
    write("spec.targets[0].kind", [...listed, { type: "string", string: { type: "Format", fmt: "%sKind" } }])();
  });

  it("may not be written with values from a claim", () => {
    const place = "bindings[s3].patches[0].toFieldPath";
    refuses(write("spec.targets[0].create.adopt", [{ type: "match", match: { fallbackTo: "Input" } }]), place);
    refuses(write("spec.targets[0].create.adopt", [{ type: "string", string: { fmt: "%s" } }]), place);
  });

  it("may be written in a list by forEach if the composition lists its values", () => {
    const to = "spec.rollout.targets";
    const elements = (...fields: object[]) => write(to, [{ type: "forEach", forEach: { fields } }]);
    elements({ fromFieldPath: "name" }, { fromFieldPath: "kind", transforms: listed })();
    const place = "bindings[s3].patches[0].toFieldPath";
    refuses(elements({ fromFieldPath: "name" }, { fromFieldPath: "kind" }), place);
    refuses(elements({ fromFieldPath: "name", toFieldPath: "apiVersion" }), place);
    // A step after it may change the list in any way.
    const join = { type: "string", string: { type: "Join", join: { separator: "" } } };
    refuses(write(to, [{ type: "forEach", forEach: { fields: [{ fromFieldPath: "name" }] } }, join]), place);
  });
});

describe("notSupported", () => {
  const rule =
    (more: object, kind = SHOPS) =>
    () =>
      compiled(specOf([], { notSupported: [{ fromFieldPath: "spec.a", message: "leave it out", ...more }] }), kind);

  it("reads its fields of claims", () => assert.deepEqual(rule({})().reads.map(String), ["spec.a"]));

  it("has a field of the claim, and regular expressions", () => {
    refuses(rule({ fromFieldPath: "spec.a[*]" }), "notSupported[0].fromFieldPath");
    refuses(rule({ fromFieldPath: "spec..a" }), "notSupported[0].fromFieldPath");
    refuses(rule({ fromFieldPath: "data.a" }, SECRETS), "notSupported[0].fromFieldPath");
    refuses(rule({ matches: "(" }), "notSupported[0].matches");
    refuses(rule({ unless: "(" }), "notSupported[0].unless");
  });
});
