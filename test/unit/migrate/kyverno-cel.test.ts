/** Kyverno's policies with CEL become bindings in their usual forms. Others are reported, and select nothing. */
import assert from "node:assert/strict";
import type { JsonObject } from "../../../src/apimachinery/objects.ts";
import { parseCel } from "../../../src/migrate/cel-syntax.ts";
import { NotTranslated } from "../../../src/migrate/go-expression.ts";
import type { ObjectName } from "../../../src/migrate/known-objects.ts";
import { KYVERNO } from "../../../src/migrate/kyverno.ts";
import { type Migration, migrate } from "../../../src/migrate/migration.ts";
import { checkOwn } from "../../../src/render/own-kinds.ts";

const NOTHING = { names: ["*"], exceptNames: ["*"] };
const DEFAULTS = ["kube-system", "kube-public", "kube-node-lease", "kyverno"];

/** The source of a copy, without anything that a copy gets besides the data. */
const plainObject = ({ kind, namespace, name }: ObjectName): JsonObject => ({
  apiVersion: "v1",
  kind,
  metadata: { name, namespace },
  ...(kind === "Secret" && { type: "Opaque" }),
});

function convert(...objects: JsonObject[]): Migration {
  const text = objects.map((each) => JSON.stringify(each)).join("\n---\n");
  const migrateWith = (live: JsonObject[]) => migrate(KYVERNO, [{ name: "policies.yaml", text }], "default", live);
  const migration = migrateWith(migrateWith([]).missing.map(plainObject));
  for (const { object } of migration.converted) assert.deepEqual(checkOwn(object, "it").wrong, []);
  return migration;
}
const specOf = ({ converted }: Pick<Migration, "converted">): JsonObject =>
  (converted[0]?.object["spec"] ?? {}) as JsonObject;

const policy = (kind: string, spec: JsonObject): JsonObject => ({
  apiVersion: "policies.kyverno.io/v1",
  kind,
  metadata: { name: "policy", ...(kind.startsWith("Namespaced") && { namespace: "shop" }) },
  spec,
});

const constraints = (resources: string, more: JsonObject = {}, beside: JsonObject = {}): JsonObject => ({
  resourceRules: [
    {
      apiGroups: [resources === "deployments" ? "apps" : resources === "harborclusters" ? "goharbor.io" : ""],
      apiVersions: [resources === "harborclusters" ? "v1beta1" : "v1"],
      operations: ["CREATE", "UPDATE", "DELETE"],
      resources: [resources],
      ...more,
    },
  ],
  ...beside,
});
const condition = (expression: string) => ({ name: "condition", expression });

const GET = 'resource.Get("v1", "secrets", "platform", "pull")';
const generate = (spec: JsonObject = {}, expression = `generator.Apply(object.metadata.name, [${GET}])`) =>
  convert(
    policy("GeneratingPolicy", {
      evaluation: { synchronize: { enabled: true }, generateExisting: { enabled: true } },
      matchConstraints: constraints("namespaces"),
      generate: [{ expression }],
      ...spec,
    }),
  );
const selectorOf = (migration: Migration) =>
  (specOf(migration)["targets"] as JsonObject[] | undefined)?.[0]?.["namespaceSelector"];

const NAMED = { resourceNames: ["database"] };
const IN_SHOP = { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "shop" } } };
const ANNOTATE = `Object{spec: Object.spec{template: Object.spec.template{metadata: Object.spec.template.metadata{
  annotations: Object.spec.template.metadata.annotations{ restartedAt: string(time.now()) }}}}}`;
const CONSUMER =
  'object.spec.template.spec.containers.exists(c, has(c.env) && c.env.exists(e, has(e.valueFrom) && e.valueFrom.secretKeyRef.name == "database"))';

const mutate = (spec: JsonObject = {}, expression = ANNOTATE, kind = "NamespacedMutatingPolicy") =>
  policy(kind, {
    evaluation: { mutateExisting: { enabled: true } },
    matchConstraints: constraints("secrets", NAMED),
    targetMatchConstraints: constraints("deployments"),
    mutations: [{ patchType: "ApplyConfiguration", applyConfiguration: { expression } }],
    ...spec,
  });

const CRD = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "harborclusters.goharbor.io" },
  spec: {
    group: "goharbor.io",
    scope: "Namespaced",
    names: { kind: "HarborCluster", plural: "harborclusters" },
    versions: [{ name: "v1beta1", served: true, storage: true }],
  },
};

describe("an expression of CEL", () => {
  it("may have messages, and maps with the same keys are the same", () => {
    for (const [message, map] of [
      ['Object{spec: Object.spec{replicas: 1, "a": x}}', '{"spec": {"replicas": 1, "a": x}}'],
      ['[JSONPatch{op: "add", value: a ? b : c}]', '[{"op": "add", "value": a ? b : c}]'],
      ["a.b != 1.5 && !c.?d.orValue('x') == r'{y: z}' // Object{}", "a.b != 1.5 && !c.?d.orValue('x') == r'{y: z}'"],
    ] as const)
      assert.deepEqual(parseCel(message), parseCel(map));
  });

  it("is refused if its variables make it too long", () => {
    const variables = new Map([["v0", parseCel("a + b")]]);
    assert.throws(() => {
      for (let at = 1; at < 100; at++)
        variables.set(`v${at}`, parseCel(`variables.v${at - 1} + variables.v${at - 1}`, variables));
    }, NotTranslated);
  });
});

describe("a migration from Kyverno's policies with CEL", () => {
  it("copies Secrets into the namespaces that a GeneratingPolicy matches", () => {
    const selectors: [JsonObject, JsonObject][] = [
      [{}, { exceptNames: ["platform", ...DEFAULTS] }],
      [{ matchConditions: [condition('object.metadata.name in ["a", "b"]')] }, { names: ["a", "b"] }],
      [
        { matchConditions: [condition('!(object.metadata.name.startsWith("kube-")) && request.name != "ci"')] },
        { exceptNames: ["kube-*", "ci", "platform", "kyverno"] },
      ],
      [
        { matchConditions: [condition("!(object.metadata.name in ['prod-?', 'x*', 'ci'])")] },
        { exceptNames: ["ci", "platform", ...DEFAULTS] },
      ],
      [
        { matchConditions: [condition("object.metadata.name in ['prod-?', 'x'] && object.metadata.name != 'y*'")] },
        { names: ["x"] },
      ],
      [
        { matchConditions: [condition('has(object.metadata.labels) && "pull" in object.metadata.labels')] },
        { matchExpressions: [{ key: "pull", operator: "Exists" }], exceptNames: ["platform", ...DEFAULTS] },
      ],
      [
        { matchConditions: [condition('object.metadata.?labels["a.b/c"].orValue("") == "x"')] },
        { matchExpressions: [{ key: "a.b/c", operator: "In", values: ["x"] }], exceptNames: ["platform", ...DEFAULTS] },
      ],
      [
        { matchConstraints: constraints("namespaces", {}, { objectSelector: { matchLabels: { a: "b" } } }) },
        { matchLabels: { a: "b" }, exceptNames: ["platform", ...DEFAULTS] },
      ],
      [
        {
          matchConstraints: constraints(
            "namespaces",
            {},
            {
              excludeResourceRules: constraints("namespaces", { resourceNames: ["ci"] })["resourceRules"] as JsonObject,
            },
          ),
        },
        { exceptNames: ["ci", "platform", ...DEFAULTS] },
      ],
      [
        { matchConstraints: constraints("namespaces", { resourceNames: ["team-a", "kyverno"] }) },
        { names: ["team-a"] },
      ],
    ];
    for (const [spec, selector] of selectors) {
      const migration = generate(spec);
      assert.deepEqual([migration.lost, selectorOf(migration)], [[], selector]);
    }
    const variables = [
      { name: "ns", expression: "object.metadata.name" },
      { name: "source", expression: 'resource.List("v1", "configmaps", "platform")' },
    ];
    const all = generate({ variables }, "generator.Apply(variables.ns, [variables.source])");
    assert.deepEqual([all.lost, all.converted[0]?.object["kind"]], [[], "BindingComposition"]);
  });

  it("copies nothing and suspends the binding if it does not understand what a GeneratingPolicy matches", () => {
    for (const spec of [
      { matchConditions: [condition("object.metadata.name.size() > 3")] },
      { matchConditions: [condition('object.metadata.name == "a" || object.metadata.labels["a"] == "b"')] },
      { matchConditions: [condition("object.metadata.name == ")] },
      { matchConditions: [condition('request.userInfo.username != "alice"')] },
      { matchConstraints: constraints("namespaces", { operations: ["DELETE"] }) },
      { matchConstraints: constraints("namespaces", {}, { somethingNew: true }) },
      ...[{ operations: ["UPDATE"] }, { resources: ["pods"] }].map((more) => ({
        matchConstraints: constraints(
          "namespaces",
          {},
          {
            excludeResourceRules: constraints("namespaces", { resourceNames: ["ci"], ...more })[
              "resourceRules"
            ] as JsonObject,
          },
        ),
      })),
      { evaluation: { admission: { enabled: false } } },
      { somethingNew: true },
      // They are no wildcards, and no name or label has them.
      { matchConditions: [condition("object.metadata.name == 'team-*'")] },
      { matchConditions: [condition("object.metadata.name in ['prod-?', 'x*']")] },
      { matchConditions: [condition("object.metadata.labels['a'] == 'x*'")] },
      { matchConstraints: constraints("namespaces", { resourceNames: ["team-*"] }) },
    ]) {
      const migration = generate(spec as JsonObject);
      assert.deepEqual([selectorOf(migration), specOf(migration)["suspend"]], [NOTHING, true], JSON.stringify(spec));
      assert.ok(migration.lost.length > 0);
    }
    for (const expression of [
      `generator.Apply("prod", [${GET}])`,
      `["a"].all(ns, generator.Apply(ns, [${GET}]))`,
      'generator.Apply(object.metadata.name, [resource.Get("v1", "secrets", "platform", object.metadata.name)])',
      'generator.Apply(object.metadata.name, [{"kind": "Secret"}])',
    ]) {
      const { converted, lost } = generate({}, expression);
      assert.deepEqual([converted.length, lost.length], [0, 1], expression);
    }
  });

  it("protects the Secrets that a ValidatingPolicy denies to change, except for its users", () => {
    const validate = (expression: string, spec: JsonObject = {}) =>
      convert(
        policy("ValidatingPolicy", {
          matchConstraints: constraints("secrets", NAMED),
          matchConditions: [condition('request.namespace == "shop"')],
          validations: [{ expression, message: "no" }],
          ...spec,
        }),
      );
    const protectOf = (migration: Migration) => (specOf(migration)["sources"] as JsonObject[])[0]?.["protect"];
    assert.deepEqual(protectOf(validate("false")), { message: "no" });
    const users = validate(
      '"system:masters" in request.userInfo.groups || request.userInfo.username in ["alice", "system:serviceaccount:a:b"]',
    );
    assert.deepEqual(protectOf(users), {
      message: "no",
      writers: [
        { kind: "User", name: "alice" },
        { kind: "ServiceAccount", name: "b", namespace: "a" },
      ],
    });
    const named = validate('oldObject.metadata.name != "database" || request.userInfo.groups.exists(g, g == "team")', {
      matchConstraints: constraints("secrets", {}, IN_SHOP),
      matchConditions: [condition('!(request.userInfo.username == "bob")')],
    });
    assert.deepEqual(protectOf(named), {
      message: "no",
      writers: [
        { kind: "User", name: "bob" },
        { kind: "Group", name: "team" },
      ],
    });
    for (const each of [
      validate('object.data.a == "b"'),
      validate('request.userInfo.username.startsWith("system:")'),
      validate("false", { matchConstraints: constraints("secrets", { ...NAMED, operations: ["DELETE"] }) }),
      validate("false", { matchConditions: [condition('request.namespace == "shop"'), condition("has(object.data)")] }),
    ])
      assert.deepEqual([protectOf(each), specOf(each)["suspend"]], [undefined, true]);
    assert.deepEqual(validate("false", { matchConditions: [] }).converted, []);
    assert.deepEqual(validate("false", { validationActions: ["Audit"] }).converted, []);
  });

  it("lets only those write a protected Secret whom all ValidatingPolicies about it except", () => {
    const policies = [
      'request.userInfo.username in ["alice", "bob"]',
      'request.userInfo.username == "bob"',
      "false",
    ].map((expression) =>
      policy("ValidatingPolicy", {
        matchConstraints: constraints("secrets", NAMED, IN_SHOP),
        validations: [{ expression }],
      }),
    );
    const protectOf = (...objects: JsonObject[]) =>
      (specOf(convert(...objects))["sources"] as JsonObject[])[0]?.["protect"];
    assert.deepEqual(protectOf(...policies.slice(0, 2)), { writers: [{ kind: "User", name: "bob" }] });
    assert.deepEqual(protectOf(...policies), {});
  });

  it("restarts the workloads that a MutatingPolicy annotates", () => {
    const rollouts: [JsonObject, JsonObject][] = [
      [mutate(), { targets: [{ kind: "Deployment", selector: { names: ["*"] } }] }],
      [
        mutate({ targetMatchConstraints: constraints("deployments", { resourceNames: ["web", "api"] }) }),
        {
          targets: [
            { kind: "Deployment", name: "web" },
            { kind: "Deployment", name: "api" },
          ],
        },
      ],
      [
        mutate({ targetMatchConditions: [condition(CONSUMER)] }),
        { consumersOf: ["database"], consumersBy: ["Env"], kinds: ["Deployment"] },
      ],
      [
        mutate(
          {
            matchConstraints: constraints("secrets", NAMED, IN_SHOP),
            targetMatchConditions: [condition("object.metadata.namespace == request.namespace")],
          },
          `${CONSUMER} ? ${ANNOTATE} : Object{}`,
          "MutatingPolicy",
        ),
        { consumersOf: ["database"], consumersBy: ["Env"], kinds: ["Deployment"] },
      ],
    ];
    for (const [each, rollout] of rollouts) {
      const migration = convert(each);
      assert.deepEqual(migration.lost, []);
      assert.deepEqual(specOf(migration)["rollout"], {
        ...rollout,
        stamp: { annotation: "restartedAt", value: "Time" },
      });
    }
  });

  it("restarts and writes only in the namespaces of targets that are beside the Secret", () => {
    const beside = (expression: string, namespaces: string[] | undefined, more: JsonObject = {}) => {
      const inNamespaces = (namespaces ?? []).map((each) => `request.namespace == "${each}"`).join(" || ");
      const migration = convert(
        mutate(
          {
            matchConditions: namespaces === undefined ? [] : [condition(inNamespaces)],
            targetMatchConditions: [
              condition(`object.metadata.namespace == request.namespace && object.metadata.namespace == "prod"`),
            ],
            ...more,
          },
          expression,
          "MutatingPolicy",
        ),
        CRD,
      );
      const found = migration.converted.map(({ object }) => (object["metadata"] as JsonObject)["namespace"]);
      return [migration.lost.length > 0, found, specOf(migration)["suspend"]];
    };
    const harbor = { targetMatchConstraints: constraints("harborclusters", { resourceNames: ["harbor"] }) };
    const write = "Object{spec: Object.spec{user: string(base64.decode(request.object.data.user))}}";
    for (const [expression, more] of [
      [ANNOTATE, {}],
      [write, harbor],
    ] as const) {
      assert.deepEqual(beside(expression, ["shop", "prod"], more), [false, ["prod"], undefined]);
      assert.deepEqual(beside(expression, undefined, more), [false, ["prod"], undefined]);
      assert.deepEqual(beside(expression, ["shop"], more), [true, ["shop"], true]);
    }
  });

  it("restarts nothing and suspends the binding if it does not understand what a MutatingPolicy changes", () => {
    for (const each of [
      mutate({ targetMatchConditions: [condition('object.metadata.name == "web"')] }),
      mutate({ targetMatchConditions: [condition(CONSUMER.replace("database", "other"))] }),
      mutate({ targetMatchConditions: [condition(`!${CONSUMER}`)] }),
      mutate({ targetMatchConditions: [condition(CONSUMER.replace("containers", "initContainers"))] }),
      mutate({ targetMatchConstraints: constraints("deployments", {}, { expression: "[]" }) }),
      mutate({ matchConstraints: constraints("secrets", { ...NAMED, operations: ["CREATE"] }) }),
      mutate({ matchConditions: [condition("has(object.data.password)")] }),
      mutate({ matchConstraints: constraints("secrets", NAMED, IN_SHOP) }, ANNOTATE, "MutatingPolicy"),
    ]) {
      const migration = convert(each);
      const { suspend, rollout } = specOf(migration);
      assert.deepEqual([suspend, rollout], [true, { consumersOf: ["database"], suspend: true }], JSON.stringify(each));
    }
    const other = convert(
      mutate({}, `object.spec.replicas > 1 ? ${ANNOTATE} : Object{spec: Object.spec{paused: true}}`),
    );
    assert.deepEqual([other.converted.length, other.lost.length], [0, 1]);
  });

  it("writes keys of Secrets into fields of custom resources", () => {
    const write = (expression: string, spec: JsonObject = {}) =>
      convert(
        mutate(
          { targetMatchConstraints: constraints("harborclusters", { resourceNames: ["harbor"] }), ...spec },
          expression,
        ),
        CRD,
      );
    const target = (migration: Migration) => (specOf(migration)["targets"] as JsonObject[])[0];
    const harbor = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", name: "harbor" };
    const merged = write(
      'Object{spec: Object.spec{user: string(base64.decode(request.object.data["a.b"])), url: "https://" + string(base64.decode(request.object.data.host)), size: 2}}',
    );
    assert.deepEqual(target(merged), {
      ...harbor,
      fields: [
        { path: "spec.user", from: { source: "database", key: "a.b" } },
        { path: "spec.url", template: "https://{{database.host}}" },
        { path: "spec.size", template: "2", as: "integer" },
      ],
    });
    const other = write(
      '[JSONPatch{op: "add", path: "/spec/" + jsonpatch.escapeKey("a/b"), value: resource.Get("v1", "configmaps", "shop", "s3").data.host}]',
      {},
    );
    assert.deepEqual(target(other)?.["fields"], [{ path: 'spec["a/b"]', from: { source: "s3", key: "host" } }]);
    const unknown = write("Object{spec: Object.spec{user: string(base64.decode(request.object.data.user))}}", {
      targetMatchConditions: [condition("object.spec.replicas > 1")],
    });
    assert.deepEqual([target(unknown)?.["selector"], specOf(unknown)["suspend"]], [NOTHING, true]);
    const status = write("Object{spec: Object.spec{user: object.status.user}}");
    assert.deepEqual([status.converted.length, status.lost.length > 0], [0, true]);
  });

  it("reports policies of other kinds as a whole", () => {
    for (const kind of ["ImageValidatingPolicy", "DeletingPolicy", "NamespacedDeletingPolicy", "PolicyException"]) {
      const { converted, lost } = convert(policy(kind, { anything: {} }));
      assert.deepEqual([converted.length, lost.length], [0, 1]);
    }
    const pods = policy("NamespacedGeneratingPolicy", {
      matchConstraints: constraints("pods"),
      generate: [{ expression: `generator.Apply(object.metadata.namespace, [${GET}])` }],
    });
    assert.deepEqual(convert(pods).converted, []);
  });
});
