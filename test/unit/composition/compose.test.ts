/** The bindings of a claim, and the problems of a claim that prevent a binding. */
import assert from "node:assert/strict";
import type { Patch } from "../../../src/api/composition.ts";
import { at } from "../../../src/apimachinery/fields.ts";
import type { JsonObject, JsonValue } from "../../../src/apimachinery/objects.ts";
import { attemptSync, Problem, type Reason } from "../../../src/apimachinery/problem.ts";
import { writeBack } from "../../../src/composition/write-back.ts";
import { BASE, claimOf, compiled, composed, entryOf, NAMESPACES, SECRETS, specOf } from "./compositions.ts";

const refuses = (act: () => unknown, reason: Reason, place: string, secret = "hush") =>
  assert.throws(act, (error) => {
    assert.ok(error instanceof Problem, String(error));
    assert.equal(error.reason, reason, error.message);
    assert.ok(error.message.startsWith(`${place}: `), error.message);
    assert.ok(!error.message.includes(secret), error.message);
    return true;
  });
const from = (fromFieldPath: string, toFieldPath: string, more: object = {}) => ({
  fromFieldPath,
  toFieldPath,
  ...more,
});

describe("the binding of a claim", () => {
  it("is complete: the base with the patches, in the namespace of the claim", () => {
    const patches = [from("spec.name", "spec.targets[0].name")];
    const { namespace, missing, composed } = entryOf(specOf(patches), claimOf({ spec: { name: "other" } }));
    assert.deepEqual([namespace, composed?.name, missing], ["team", "shop-s3", []]);
    assert.deepEqual(composed?.spec, {
      serviceAccountName: "inlay",
      defaults: { onMissing: "Wait", onConflict: "Fail", mode: "Continuous" },
      ...BASE.spec,
      targets: [{ ...BASE.spec.targets[0], name: "other" }],
    });
  });

  it("does not change the base for the next claim", () => {
    const spec = specOf([from("spec.name", "spec.targets[0].name")]);
    composed(spec, claimOf({ spec: { name: "first" } }));
    assert.deepEqual(composed(spec).spec["targets"], BASE.spec.targets);
  });

  it("is in the claimed Namespace itself", () => {
    const claim = { ...claimOf(), kind: "Namespace", namespace: "" };
    const { namespace, composed } = entryOf(specOf(), claim, NAMESPACES);
    assert.deepEqual([namespace, composed?.name], ["shop", "shop-s3"]);
  });

  it("copies a list only if the binding takes so many elements, and says so before it converts them", () => {
    const forEach = [{ type: "forEach" as const, forEach: { fields: [{ fromFieldPath: "name" }] } }];
    const patches = [from("spec.list", "spec.rollout.targets", { transforms: forEach })];
    const many = claimOf({ spec: { list: Array.from({ length: 20_000 }, () => 1) } });
    refuses(() => composed(specOf(patches), many), "InvalidValue", "bindings[s3].patches[0]: can't read spec.list");
    // Within a value, the lists are checked too.
    const values = Array.from({ length: 200 }, (_, n) => `v${n}`);
    const selector = { matchExpressions: [{ key: "app", operator: "In", values }] };
    const within = () =>
      composed(specOf([from("spec.selector", "spec.targets[0].selector")]), claimOf({ spec: { selector } }));
    refuses(within, "InvalidValue", "bindings[s3]: spec.targets[0].selector.matchExpressions[0].values");
  });

  it("is refused if its patches need too much work: values, text, or regular expressions over all patches", () => {
    const object = Object.fromEntries(Array.from({ length: 6_000 }, (_, n) => [`k${n}`, "v"]));
    const copied = (path: string) => from(path, "spec.targets[0].create.manifest.data");
    const large = claimOf({ spec: { object, text: "x".repeat(600_000), json: `[${"0,".repeat(20_000)}0]` } });
    refuses(
      () => composed(specOf([copied("spec.object")]), large),
      "TooLarge",
      "bindings[s3].patches[0]: can't write spec.targets[0].create.manifest.data",
    );
    refuses(() => composed(specOf([copied("spec.text")]), large), "TooLarge", "bindings[s3]");
    const json = { transforms: [{ type: "convert" as const, convert: { toType: "array", format: "json" } }] };
    refuses(
      () => composed(specOf([{ ...copied("spec.json"), ...json }]), large),
      "TooLarge",
      "bindings[s3].patches[0]: spec.json: transforms[0]",
    );
    const regexp = { match: "(x{1,20}y|z)$" };
    const search = { transforms: [{ type: "string" as const, string: { type: "Regexp", regexp } }] };
    const searches = Array.from({ length: 50 }, (_, n) => from("spec.text", `metadata.annotations[a${n}]`, search));
    const text = claimOf({ spec: { text: `${"x".repeat(3_000)}z` } });
    assert.doesNotThrow(() => composed(specOf(searches.slice(0, 1)), text));
    assert.throws(() => composed(specOf(searches), text), /too long to match/);
  });

  it("has nothing of the data that kubectl, kapp, Rancher and others keep in annotations of a Secret", () => {
    const annotations = {
      "kubectl.kubernetes.io/last-applied-configuration": '{"data": "hush"}',
      "kapp.k14s.io/original": '{"data": "hush"}',
      "kapp.k14s.io/original-diff": "hush",
      "kapp.k14s.io/original-diff-full": "hush",
      "kapp.k14s.io/original-diff-md5": "hush",
      "objectset.rio.cattle.io/applied": "hush",
      "banzaicloud.com/last-applied": "hush",
      "example.com/for": "shop",
    };
    const patches = [
      from("metadata.annotations", "metadata.annotations"),
      from("metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]", "metadata.labels[data]"),
    ];
    const secret = claimOf({ metadata: { annotations } }, { apiVersion: "v1", kind: "Secret" });
    const made = composed(specOf(patches), secret, SECRETS);
    assert.deepEqual([made.annotations, made.labels], [{ "example.com/for": "shop" }, {}]);
    const shop = composed(specOf(patches.slice(0, 1)), claimOf({ metadata: { annotations } }));
    assert.deepEqual(shop.annotations, annotations);
  });

  it("lists which fields of the claim were found and which are missing", () => {
    const patches = [from("spec.a", "metadata.labels[a]"), from("spec.b", "metadata.labels[b]")];
    const { composed, missing } = entryOf(specOf(patches), claimOf({ spec: { a: "1" } }));
    assert.deepEqual([composed?.patched, composed?.labels], [["metadata.labels[a]"], { a: "1" }]);
    const [first] = missing;
    assert.deepEqual(
      [first?.place, first?.path, first?.toFieldPath],
      ["bindings[s3].patches[1]", "spec.b", "metadata.labels[b]"],
    );
  });

  it("copies no label or annotation of Inlay from a claim", () => {
    const labels = { "inlay.dev/protects": "true", "inlay.dev/composition": "hush", app: "shop" };
    const spec = specOf([from("metadata.labels", "metadata.labels"), from("metadata.labels", "metadata.annotations")]);
    const made = composed(spec, claimOf({ metadata: { labels } }));
    assert.deepEqual([made.labels, made.annotations], [{ app: "shop" }, { app: "shop" }]);
  });

  it("is refused if a value does not match the schema of a SecretBinding", () => {
    const spec = specOf([from("spec.name", "spec.targets[0].name")]);
    for (const name of [5, "hush/hush", { hush: 1 }])
      refuses(() => composed(spec, claimOf({ spec: { name } })), "InvalidValue", "bindings[s3]");
    const nameless = { ...BASE.spec, sources: [{ secret: {} }] };
    refuses(() => composed(specOf([], {}, { spec: nameless })), "InvalidValue", "bindings[s3]");
    const named = specOf([from("spec.name", "metadata.name")]);
    assert.equal(composed(named, claimOf({ spec: { name: "other" } })).name, "other");
    refuses(() => composed(named, claimOf({ spec: { name: "HUSH" } })), "InvalidValue", "bindings[s3]", "HUSH");
    const labelled = specOf([from("spec.name", "metadata.labels[a]")]);
    refuses(() => composed(labelled, claimOf({ spec: { name: 5 } })), "InvalidValue", "bindings[s3]");
  });
});

describe("a source whose name a claim gives", () => {
  const named = specOf([from("spec.secret", "spec.sources[0].secret.name")]);
  const sourceOf = (spec: object) => (spec as { sources: { secret: object }[] }).sources[0]?.secret;

  it("needs a grant, unlike a source that the base names", () => {
    const claim = claimOf({ spec: { secret: "own" } });
    assert.deepEqual(sourceOf(composed(named, claim).spec), { name: "own", granted: true });
    assert.deepEqual(sourceOf(composed(specOf(), claim).spec), { name: "bucket" });
  });

  it("needs a grant with any patch, unless it is the claim itself", () => {
    const whole = specOf([from("spec.secret", "spec.sources[0].secret")]);
    const claim = claimOf({ spec: { secret: { name: "own" } } });
    assert.deepEqual(sourceOf(composed(whole, claim).spec), { name: "own", granted: true });
    const itself = specOf([from("metadata.name", "spec.sources[0].secret.name")]);
    const secret = claimOf({}, { apiVersion: "v1", kind: "Secret" });
    assert.deepEqual(sourceOf(composed(itself, secret, SECRETS).spec), { name: "shop" });
    const labelled = specOf([from("metadata.labels[of]", "spec.sources[0].secret.name")]);
    const other = { ...secret, fields: { metadata: { labels: { of: "other" } } } };
    assert.deepEqual(sourceOf(composed(labelled, other, SECRETS).spec), { name: "other", granted: true });
  });
});

describe("a source from Vault", () => {
  const base = {
    spec: {
      ...BASE.spec,
      sources: [
        {
          name: "bucket",
          vault: { connection: { name: "main" }, refresh: "5m", data: { mount: "kv", path: "team/s3" } },
        },
      ],
    },
  };
  const vault = "spec.sources[0].vault";
  const made = (patches: object[], fields: JsonObject, more: object = {}) => {
    const { spec } = composed(specOf(patches as Patch[], more, base), claimOf({ spec: fields }));
    return (spec as { sources: { vault: JsonObject }[] }).sources[0]?.vault;
  };

  it("is as in the base", () =>
    assert.deepEqual(made([], {}), {
      connection: { name: "main" },
      refresh: "5m",
      data: { mount: "kv", path: "team/s3" },
    }));

  it("needs a grant for a connection from a claim, by name or namespace, with any patch", () => {
    const granted = (patches: object[], fields: JsonObject, more?: object) =>
      at(made(patches, fields, more), "connection", "granted");
    assert.equal(granted([from("spec.name", `${vault}.connection.name`)], { name: "other" }), true);
    assert.equal(granted([from("spec.team", `${vault}.connection.namespace`)], { team: "team" }), true);
    assert.equal(granted([from("spec.c", `${vault}.connection`)], { c: { name: "main", granted: false } }), true);
    const whole = { connection: { name: "main" }, health: {} };
    assert.equal(granted([from("spec.v", vault, { policy: { toFieldPath: "Replace" } })], { v: whole }), true);
    for (const place of ["spec.sources[name=bucket]", "spec.sources[*]"])
      assert.equal(granted([from("spec.name", `${place}.vault.connection.name`)], { name: "other" }), true);
    assert.equal(granted([from("spec.unset", `${vault}.connection.name`)], {}), undefined);
  });

  it("copies mount, path and address from a claim without a grant", () => {
    const patches = [from("spec.mount", `${vault}.data.mount`), from("spec.path", `${vault}.data.path`)];
    const { connection, data } = made(patches, { mount: "secret", path: "team/tls" }) ?? {};
    assert.deepEqual([connection, data], [{ name: "main" }, { mount: "secret", path: "team/tls" }]);
    for (const path of ["team/*", "a//b", "/a", "a/", "{namespace}/a", ""])
      refuses(() => made(patches, { mount: "kv", path }), "InvalidValue", "bindings[s3]", "/a/");
    const server = [from("spec.ip", `${vault}.health.address`), from("spec.none", `${vault}.data`)];
    const health = made(server, { ip: "https://10.0.0.7:8200", none: null });
    assert.deepEqual(
      [health?.["connection"], health?.["health"]],
      [{ name: "main" }, { address: "https://10.0.0.7:8200" }],
    );
    refuses(() => made(server, { ip: "https://u:hush@10.0.0.7", none: null }), "InvalidValue", "bindings[s3]");
  });

  it("is limited to the claim's namespace by reach, without treating path names as namespaces", () => {
    const elsewhere = [from("spec.team", `${vault}.connection.namespace`)];
    refuses(() => made(elsewhere, { team: "hush" }), "OutOfReach", "bindings[s3].patches[0]");
    assert.deepEqual(made(elsewhere, { team: "shared" }, { reach: "Cluster" })?.["connection"], {
      name: "main",
      namespace: "shared",
      granted: true,
    });
    const connection = { name: "main", namespace: "hush" };
    const whole = { connection, metadata: { mount: "kv", path: "a" } };
    for (const [path, value] of [
      [vault, whole],
      [`${vault}.connection`, connection],
    ] as const)
      refuses(() => made([from("spec.v", path)], { v: value }), "OutOfReach", "bindings[s3].patches[0]");
    const metadata = [from("spec.m", `${vault}.metadata`), from("spec.none", `${vault}.data`)];
    const place = { mount: "namespace", path: "namespace/of/others" };
    assert.deepEqual(made(metadata, { m: place, none: null })?.["metadata"], place);
  });
});

describe("the reach of a composition", () => {
  const paths = ["spec.sources[0].secret.namespace", "spec.targets[0].namespace"];
  for (const path of paths)
    it(`limits ${path} to the namespace of the claim, or to none`, () => {
      const patches = [from("spec.namespace", path)];
      const elsewhere = claimOf({ spec: { namespace: "hush" } });
      refuses(() => composed(specOf(patches), elsewhere), "OutOfReach", "bindings[s3].patches[0]");
      composed(specOf(patches), claimOf({ spec: { namespace: "team" } }));
      composed(specOf(patches, { reach: "Cluster" }), elsewhere);
    });

  it("finds namespaces and selectors in an object that a patch writes", () => {
    const secret = { name: "a", namespace: "hush" };
    const patches = [from("spec.secret", "spec.sources[0].secret")];
    refuses(() => composed(specOf(patches), claimOf({ spec: { secret } })), "OutOfReach", "bindings[s3].patches[0]");
    const selector = [from("spec.names", "spec.targets[0].namespaceSelector.names")];
    const names = ["hush"];
    refuses(() => composed(specOf(selector), claimOf({ spec: { names } })), "OutOfReach", "bindings[s3].patches[0]");
  });

  it("does not limit a namespace in the base", () => {
    const spec = { ...BASE.spec, sources: [{ secret: { name: "bucket", namespace: "shared" } }] };
    composed(
      specOf([from("spec.name", "spec.sources[0].secret.name")], {}, { spec }),
      claimOf({ spec: { name: "a" } }),
    );
  });
});

describe("a template of a binding", () => {
  const [target] = BASE.spec.targets;
  const templated = (template: string) => ({
    spec: { ...BASE.spec, targets: [{ ...target, fields: [{ path: "spec.url", template }] }] },
  });
  const url = "spec.targets[0].fields[0].template";

  it("may contain texts from a claim, but no expressions", () => {
    const format = { transforms: [{ type: "string", string: { type: "Format", fmt: "https://%s/{{bucket.key}}" } }] };
    const spec = specOf([from("spec.host", url, format)], {}, templated("-"));
    const { spec: made } = composed(spec, claimOf({ spec: { host: "a.example" } }));
    assert.match(JSON.stringify(made), /https:\/\/a\.example\/\{\{bucket\.key\}\}/);
    for (const host of ["{{bucket.hush}}", "a{{", "{{{bucket.key}}}"])
      refuses(() => composed(spec, claimOf({ spec: { host } })), "InvalidValue", "bindings[s3]");
    const plain = specOf([from("spec.host", url)], {}, templated("{{bucket.key}}"));
    composed(plain, claimOf({ spec: { host: "{{bucket.key}}" } }));
    refuses(() => composed(plain, claimOf({ spec: { host: "{{bucket.hush}}" } })), "InvalidValue", "bindings[s3]");
  });
});

describe("the fields that patches write into a claim", () => {
  const shown = (toFieldPath: string, more: object = {}) => ({
    type: "ToCompositeFieldPath",
    fromFieldPath: "status.synced",
    toFieldPath,
    ...more,
  });
  const made = (synced?: string) => new Map([["s3", { status: { ...(synced && { synced }) } }]]);

  it("contain the written values, and the present values where a patch has nothing to write", () => {
    const composition = compiled(specOf([shown("status.s3"), shown("metadata.annotations[s3]")]));
    const all = writeBack(composition, made("1/1"), new Map(), claimOf());
    assert.deepEqual(
      [all.isSame, all.fields],
      [false, { status: { s3: "1/1" }, metadata: { annotations: { s3: "1/1" } } }],
    );
    const none = writeBack(composition, made(), new Map(), claimOf({ status: { s3: "1/1", others: 5 } }));
    assert.deepEqual([none.isSame, none.fields], [true, { status: { s3: "1/1" } }]);
    assert.deepEqual(writeBack(composition, new Map(), new Map(), claimOf()).fields, {});
  });

  it("are written although a required field is missing, which is reported", () => {
    const required = shown("status.a", { policy: { fromFieldPath: "Required" }, fromFieldPath: "status.hush" });
    const { fields, problems } = writeBack(
      compiled(specOf([required, shown("status.b")])),
      made("1/1"),
      new Map(),
      claimOf(),
    );
    assert.deepEqual(fields, { status: { b: "1/1" } });
    assert.deepEqual(
      problems.map(({ reason }) => reason),
      ["FieldNotFound"],
    );
  });
});

describe("a request that a composition does not support", () => {
  const specWith = (rule: object) =>
    specOf([], { notSupported: [{ fromFieldPath: "spec.list", message: "leave it out", ...rule }] });
  const isRefused = (rule: object, list: JsonValue | undefined) => {
    const made = attemptSync(() => composed(specWith(rule), claimOf(list === undefined ? {} : { spec: { list } })));
    if (!(made instanceof Problem)) return false;
    assert.equal(made.reason, "NotSupported");
    assert.equal(made.message, "notSupported[0]: spec.list: leave it out");
    return true;
  };

  it("is a field that is set and not empty", () => {
    for (const value of ["hush", 0, true, [1], { a: 1 }]) assert.ok(isRefused({}, value), String(value));
    for (const value of [undefined, null, "", false, [], {}]) assert.ok(!isRefused({}, value), String(value));
  });

  it("is a text that matches, or that does not match", () => {
    assert.deepEqual([isRefused({ matches: "/" }, "a/b"), isRefused({ matches: "/" }, "a")], [true, false]);
    assert.deepEqual([isRefused({ unless: "^[a-z]+$" }, "a/b"), isRefused({ unless: "^[a-z]+$" }, "a")], [true, false]);
    assert.ok(isRefused({ matches: '"kind":"x"' }, [{ kind: "x" }]), "of what is no text, its JSON counts");
  });
});

describe("the status that a claim gets of a binding that could not be created or updated", () => {
  const shown = (type: string) => ({
    type: "ToCompositeFieldPath",
    fromFieldPath: `status.conditions[type=${type}].reason`,
    toFieldPath: `status.${type}`,
  });
  const problem = new Map([["s3", new Problem("NotSupported", "leave it out")]]);
  const claim = claimOf({ metadata: { creationTimestamp: "2026-11-23T10:00:00Z" } });

  it("has the problem as its conditions, with RolledOut if it has a rollout", () => {
    const patches = [shown("Ready"), shown("RolledOut")];
    const without = writeBack(compiled(specOf(patches)), new Map(), problem, claim);
    assert.deepEqual(without.fields, { status: { Ready: "NotSupported" } });
    const rolling = { spec: { ...BASE.spec, rollout: { consumersOf: ["bucket"] } } };
    const { fields } = writeBack(compiled(specOf(patches, {}, rolling)), new Map(), problem, claim);
    assert.deepEqual(fields, { status: { Ready: "NotSupported", RolledOut: "NotSupported" } });
  });

  it("has the time of the binding's own condition, or of the creation of the claim", () => {
    const time = { ...shown("Ready"), fromFieldPath: "status.conditions[type=Ready].lastTransitionTime" };
    const composition = compiled(specOf([time, { ...shown("synced"), fromFieldPath: "status.synced" }]));
    assert.ok(composition.reads.map(String).includes("metadata.creationTimestamp"));
    const made = new Map([
      [
        "s3",
        { status: { synced: "1/1", conditions: [{ type: "Ready", lastTransitionTime: "2026-11-23T11:00:00Z" }] } },
      ],
    ]);
    const { fields } = writeBack(composition, made, problem, claim);
    assert.deepEqual(fields, { status: { Ready: "2026-11-23T11:00:00Z", synced: "1/1" } });
    const none = writeBack(composition, new Map(), problem, claim);
    assert.deepEqual(none.fields, { status: { Ready: "2026-11-23T10:00:00Z" } });
  });

  it("has the generation of the binding's own condition, or of the binding, so that patches can replace it", () => {
    const shownGeneration = { ...shown("Ready"), fromFieldPath: "status.conditions[type=Ready].observedGeneration" };
    const generationOf = (binding: object) =>
      writeBack(compiled(specOf([shownGeneration])), new Map([["s3", binding]]), problem, claim).fields;
    const metadata = { generation: 3 };
    assert.deepEqual(generationOf({ metadata }), { status: { Ready: 3 } });
    const status = { conditions: [{ type: "Ready", observedGeneration: 2 }] };
    assert.deepEqual(generationOf({ metadata, status }), { status: { Ready: 2 } });
  });
});
