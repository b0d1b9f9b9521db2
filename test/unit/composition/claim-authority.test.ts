/** What the author of a claim may not decide, even if a patch copies it. A composition and a claim give a binding or a reason. */
import assert from "node:assert/strict";
import type { CompositionSpec } from "../../../src/api/composition.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { compileComposition } from "../../../src/composition/compile.ts";
import { composeBinding } from "../../../src/composition/compose.ts";

const KIND = { group: "example.com", kind: "Claim", namespaced: true };
const SECRETS = [{ secret: { name: "first" } }, { name: "second", secret: { name: "second" } }];
const claimed = (toFieldPath: string, more: object = {}) => ({ fromFieldPath: "spec.value", toFieldPath, ...more });

function made(value: unknown, patches: object[], spec: object = {}) {
  const base = { spec: { sources: SECRETS, targets: [configMap()], ...spec } };
  const composition = { for: { apiVersion: "example.com/v1", kind: "Claim" }, reach: "ClaimNamespace" };
  const all = { ...composition, bindings: [{ name: "b", base, patches }] } as unknown as CompositionSpec;
  const compiled = compileComposition(all, KIND);
  const claim = { apiVersion: "example.com/v1", kind: "Claim", namespace: "shop", name: "c", uid: "1" };
  const [binding] = compiled.bindings;
  assert.ok(binding);
  const { composed, problems } = composeBinding(compiled, binding, { ...claim, fields: { spec: { value } } as never });
  return composed ?? problems[0] ?? assert.fail();
}
const configMap = (...templates: string[]) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  name: "c",
  fields: [...templates, "text"].map((template, number) => ({ path: `data.key${number}`, template })),
});
const reasonOf = (outcome: unknown) => (outcome instanceof Problem ? outcome.reason : "made");

function grantedIn(outcome: ReturnType<typeof made>): unknown[] {
  assert.ok(!(outcome instanceof Problem), String(outcome));
  const sources = outcome.spec["sources"] as { secret: { granted?: boolean } }[];
  return sources.map(({ secret }) => secret.granted ?? false);
}

describe("the author of a claim", () => {
  for (const path of [
    "spec.sources[1].secret.name",
    "spec.sources[name=second].secret.name",
    "spec['sources'][1]['secret']['name']",
  ])
    it(`needs a grant for a Secret that ${path} names`, () => {
      assert.deepEqual(grantedIn(made("any", [claimed(path)])), [false, true]);
    });

  it("needs a grant even if the whole reference is copied, or the source gets another name later", () => {
    assert.deepEqual(grantedIn(made({ name: "any" }, [claimed("spec.sources[1].secret")])), [false, true]);
    const patches = [claimed("spec.sources[name=second].secret.name"), claimed("spec.sources[1].name")];
    assert.deepEqual(grantedIn(made("any", patches)), [false, true]);
    assert.deepEqual(grantedIn(made("any", [claimed("spec.sources[*].secret.name")])), [true, true]);
  });

  it("needs no grant for a Secret that the composition names", () => {
    assert.deepEqual(grantedIn(made("any", [claimed("spec.targets[0].name")])), [false, false]);
  });

  const [first, second] = ["spec.targets[0].fields[0].template", "spec.targets[0].fields[1].template"];
  const targets = [configMap("{{second.a}}")];
  for (const [what, value, to, fmt, reason] of [
    ["repeats an expression of the same template", "{{second.a}}", first, "%s-{{second.a}}", "made"],
    ["repeats an expression of another template", "{{second.a}}", second, "%s", "InvalidValue"],
    ["gives an expression of its own", "{{second.b}}", first, "%s-{{second.a}}", "InvalidValue"],
    ["completes braces of the composition", "{second.b}}", first, "{%s", "InvalidValue"],
    ["opens braces alone", "{{", second, "%s", "InvalidValue"],
    ["gives a text", "a } b", first, "%s-{{second.a}}", "made"],
  ] as const)
    it(`who ${what} for a template: ${reason}`, () => {
      const transforms = [{ type: "string", string: { type: "Format", fmt } }];
      assert.equal(reasonOf(made(value, [claimed(to, { transforms })], { targets })), reason);
    });

  const namespaces = { apiVersion: "v1", kind: "Namespace", fields: [{ path: "metadata.labels.a", template: "a" }] };
  for (const [to, value, spec] of [
    ["spec.sources[name=second].secret.namespace", "other", {}],
    ["spec.targets[0].namespace", "other", {}],
    ["spec.targets[0].name", "other", { targets: [{ ...namespaces, name: "shop" }] }],
    ["spec.targets[0].selector.names", ["*"], { targets: [{ ...namespaces, selector: { names: ["shop"] } }] }],
    ["spec.targets[0].namespaceSelector", { names: ["*"] }, {}],
  ] as const)
    it(`can't name other namespaces in ${to}`, () => {
      assert.equal(reasonOf(made(value, [claimed(to)], spec)), "OutOfReach");
    });
});
