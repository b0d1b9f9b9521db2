/** Which reads a SecretGrant permits. Unknown labels permit nothing. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { SecretGrant } from "../../../src/api/secret-grant.ts";
import {
  type Asker,
  allows,
  dependsOnComposition,
  dependsOnNamespace,
  mayAllow,
  notGranted,
} from "../../../src/sources/grant-rules.ts";
import { SECRETS } from "../resources.ts";

type Spec = SecretGrant["spec"];
type From = Spec["from"][number];
type To = Spec["to"][number];

const asker: Asker = { namespace: "registry", account: "inlay", composition: "none" };
const made: Asker = { ...asker, composition: { by: "harbors" } };
const unsure: Asker = { ...asker, composition: "unknown" };
const bucket = { resource: SECRETS, namespace: "storage", name: "bucket" };
const unlabelled = { namespace: { uid: "a1", labels: {} }, object: {} };
const unknown = { namespace: undefined, object: undefined };
const here: From = { namespace: "registry" };
const theBucket: To = { kind: "Secret", name: "bucket" };
const absent = [{ key: "env", operator: "DoesNotExist" as const }];

describe("a SecretGrant", () => {
  it("permits any combination of an entry of from and an entry of to, and nothing else", () => {
    const spec: Spec = { from: [{ namespace: "other" }, here], to: [{ kind: "ConfigMap", name: "ca" }, theBucket] };
    assert.equal(allows(spec, asker, bucket, unlabelled), true);
    assert.equal(allows(spec, { ...asker, namespace: "third" }, bucket, unlabelled), false);
    assert.equal(allows(spec, asker, { ...bucket, name: "ca" }, unlabelled), false);
  });

  it("excludes names by exceptNames, whatever else the selector contains, without a need for labels", () => {
    const by = (from: object, to: object = { names: ["*"] }): Spec => ({
      from: [{ namespaceSelector: from }],
      to: [{ kind: "Secret", selector: to }],
    });
    const is = (spec: Spec) => [mayAllow(spec, asker, bucket), allows(spec, asker, bucket, unknown)];
    assert.deepEqual(is(by({ exceptNames: ["registr", "registry-*", "Registry"] })), [true, true]);
    assert.deepEqual(is(by({ exceptNames: ["reg*"] })), [false, false]);
    assert.deepEqual(is(by({ names: ["registry"], exceptNames: ["*"] })), [false, false]);
    assert.deepEqual(is(by({ names: ["*"] }, { exceptNames: ["bucket-*"] })), [true, true]);
    assert.deepEqual(is(by({ names: ["*"] }, { names: ["b*"], exceptNames: ["bucket"] })), [false, false]);
    assert.equal(dependsOnNamespace(by({ exceptNames: ["x"] })), false);
  });

  it("does not match unknown labels, whatever the selector is", () => {
    const byPlace: Spec = { from: [{ namespaceSelector: { matchExpressions: absent } }], to: [theBucket] };
    const byObject: Spec = { from: [here], to: [{ kind: "Secret", selector: { matchExpressions: absent } }] };
    for (const spec of [byPlace, byObject]) {
      assert.deepEqual(
        [mayAllow(spec, asker, bucket), allows(spec, asker, bucket, unlabelled), allows(spec, asker, bucket, unknown)],
        [true, true, false],
      );
    }
  });

  it("reports whether labels or uid of a namespace decide", () => {
    const selector = (namespaceSelector: object) =>
      dependsOnNamespace({ from: [here, { namespaceSelector }], to: [theBucket] } as Spec);
    assert.equal(dependsOnNamespace({ from: [here], to: [theBucket] }), false);
    assert.equal(dependsOnNamespace({ from: [{ ...here, namespaceUID: "a1" }], to: [theBucket] }), true);
    assert.equal(selector({ names: ["*"] }), false);
    assert.equal(selector({ matchLabels: { env: "prod" } }), true);
    assert.equal(selector({ names: ["x"], matchExpressions: absent }), true);
  });

  it("permits by uid only that namespace, not another one of the same name or with an unknown uid", () => {
    const spec: Spec = { from: [{ ...here, namespaceUID: "a1" }], to: [theBucket] };
    const is = (uid?: string) =>
      allows(spec, asker, bucket, { namespace: uid === undefined ? undefined : { uid, labels: {} }, object: {} });
    assert.deepEqual([is("a1"), is("b2"), is()], [true, false, false]);
    assert.equal(allows({ ...spec, from: [...spec.from, here] }, asker, bucket, unknown), true);
  });

  it("permits bindings of its own namespace by name or by composition, never by a selector", () => {
    const own = { ...bucket, namespace: asker.namespace };
    const selectors = [{ names: ["*"] }, { names: ["registry"] }, { matchLabels: { env: "prod" } }];
    const prod = { namespace: { uid: "a1", labels: { env: "prod" } }, object: {} };
    const is = (from: From, asked = own, as = made) => allows({ from: [from], to: [theBucket] }, as, asked, prod);
    for (const namespaceSelector of selectors)
      assert.deepEqual([is({ namespaceSelector }, bucket), is({ namespaceSelector })], [true, false]);
    assert.deepEqual([is(here), is({ namespace: "storage" }), is({ composition: "harbors" })], [true, false, true]);
    assert.equal(is({ composition: "harbors" }, own, asker), false);
  });

  it("permits a composition's bindings, with the account that the grant names", () => {
    const by = (composition: string, more: object = {}): Spec => ({
      from: [{ composition, ...more }],
      to: [theBucket],
    });
    const is = (spec: Spec, as: Asker) => [mayAllow(spec, as, bucket), allows(spec, as, bucket, unlabelled)];
    assert.deepEqual(is(by("harbors"), made), [true, true]);
    assert.deepEqual(is(by("harbors", { serviceAccountName: "inlay" }), made), [true, true]);
    assert.deepEqual(is(by("harbors", { serviceAccountName: "other" }), made), [false, false]);
    assert.deepEqual(is(by("harbor"), made), [false, false]);
    assert.deepEqual(is(by("harbors"), asker), [false, false]);
    assert.deepEqual(is(by("harbors"), unsure), [true, false]);
    assert.equal(allows(by("harbors"), unsure, bucket, unlabelled, "any"), true);
    assert.deepEqual([by("harbors"), { ...by("x"), from: [here] }].map(dependsOnComposition), [true, false]);
  });

  it("never permits a read that its names alone exclude", () => {
    const name = fc.constantFrom("registry", "bucket", "other", "re*", "*t", "?ther");
    const selector = fc.record(
      {
        names: fc.array(name, { minLength: 1, maxLength: 2 }),
        exceptNames: fc.array(name, { minLength: 1, maxLength: 2 }),
        matchLabels: fc.constantFrom({ env: "prod" }, { env: "test" }),
      },
      { requiredKeys: [] },
    );
    const uid = fc.constantFrom("a1", "b2");
    const account = fc.record({ serviceAccountName: fc.constantFrom("inlay", "other") }, { requiredKeys: [] });
    const from = fc
      .tuple(
        account,
        fc.oneof(
          fc.record({ namespace: name, namespaceUID: uid }, { requiredKeys: ["namespace"] }),
          fc.record({ namespaceSelector: selector }),
          fc.record({ composition: fc.constantFrom("harbors", "others") }),
        ),
      )
      .map(([who, where]) => ({ ...who, ...where }) as From);
    const to = fc
      .tuple(fc.constantFrom("Secret", "ConfigMap"), fc.oneof(fc.record({ name }), fc.record({ selector })))
      .map(([kind, what]) => ({ kind, ...what }) as To);
    const labels = fc.constantFrom(unlabelled, unknown, {
      namespace: { uid: "b2", labels: { env: "prod" } },
      object: { env: "test" },
    });
    const places = fc.constantFrom(bucket, { ...bucket, namespace: asker.namespace });
    const spec = fc.record({ from: fc.array(from, { maxLength: 3 }), to: fc.array(to, { maxLength: 3 }) });
    fc.assert(
      fc.property(spec, labels, fc.constantFrom(asker, made, unsure), places, (said, known, as, asked) => {
        if (allows(said, as, asked, known, "any")) assert.ok(mayAllow(said, as, asked));
        if (allows(said, as, asked, known)) assert.ok(allows(said, as, asked, known, "any"));
        if (allows(said, as, asked, unknown)) assert.ok(allows(said, as, asked, known));
      }),
    );
  });

  it("is printed as a complete object if it is missing", () => {
    const problem = notGranted(asker, bucket, { onMissing: "Wait", optional: false });
    const [, said = ""] = /echo '(.*)' \| kubectl apply -f -$/.exec(problem.message) ?? [];
    const grant = JSON.parse(said) as SecretGrant;
    assert.deepEqual([problem.reason, grant.metadata.namespace], ["NotGranted", "storage"]);
    assert.equal(allows(grant.spec, asker, bucket, unknown), true);
    assert.equal(allows(grant.spec, { ...asker, account: "other" }, bucket, unknown), false);
  });

  it("is printed for the composition if it is missing for a composed binding", () => {
    const { message } = notGranted(made, bucket, { onMissing: "Wait", optional: false });
    const [, said = ""] = /echo '(.*)' \| kubectl apply -f -$/.exec(message) ?? [];
    const { spec } = JSON.parse(said) as SecretGrant;
    assert.deepEqual(spec.from, [{ composition: "harbors" }]);
    assert.deepEqual(
      [made, asker].map((as) => allows(spec, as, bucket, unknown)),
      [true, false],
    );
  });
});
