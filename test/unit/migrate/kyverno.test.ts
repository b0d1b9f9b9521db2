/** Bindings from Kyverno's policies never select more than the policies did. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject, JsonValue } from "../../../src/apimachinery/objects.ts";
import type { ObjectName } from "../../../src/migrate/known-objects.ts";
import { KYVERNO } from "../../../src/migrate/kyverno.ts";
import { type Migration, migrate } from "../../../src/migrate/migration.ts";
import { checkOwn } from "../../../src/render/own-kinds.ts";

const ARTICLE = readFileSync(
  join(import.meta.dirname, "..", "..", "e2e", "migrate", "kyverno", "article.yaml"),
  "utf8",
);
const DEFAULTS = ["kube-system", "kube-public", "kube-node-lease", "kyverno"];

/** The source of a copy, without anything that a copy gets besides the data. */
const plainObject = ({ kind, namespace, name }: ObjectName): JsonObject => ({
  apiVersion: "v1",
  kind,
  metadata: { name, namespace },
  ...(kind === "Secret" && { type: "Opaque" }),
});

function convert(...policies: (JsonObject | string)[]): Migration {
  const text = policies.map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join("\n---\n");
  const migrateWith = (live: JsonObject[]) => migrate(KYVERNO, [{ name: "policies.yaml", text }], "default", live);
  const migration = migrateWith(migrateWith([]).missing.map(plainObject));
  for (const { object } of migration.converted) assert.deepEqual(checkOwn(object, "it").wrong, []);
  return migration;
}

const specOf = ({ converted }: Pick<Migration, "converted">, at = 0): JsonObject =>
  (converted[at]?.object["spec"] ?? {}) as JsonObject;

const policy = (rule: JsonObject, spec: JsonObject = {}, kind = "ClusterPolicy"): JsonObject => ({
  apiVersion: "kyverno.io/v1",
  kind,
  metadata: { name: "policy", ...(kind === "Policy" && { namespace: "shop" }) },
  spec: { ...spec, rules: [{ name: "rule", ...rule }] },
});

const SECRET = { kinds: ["Secret"], names: ["database"], namespaces: ["shop"] };
const match = (resources: JsonObject, more: JsonObject = {}): JsonObject => ({ any: [{ resources, ...more }] });

function restart(template: JsonObject, { rule = {}, target = {}, patch = {} }: Record<string, JsonObject> = {}) {
  return policy({
    match: match(SECRET),
    mutate: {
      targets: [{ apiVersion: "apps/v1", kind: "Deployment", namespace: "{{ request.namespace }}", ...target }],
      patchStrategicMerge: {
        spec: { template: { metadata: { annotations: { "example.com/at": "{{ time_now() }}" } }, ...template } },
        ...patch,
      },
    },
    ...rule,
  });
}

const env = (valueFrom: JsonObject, env = "(env)", containers = "(containers)", spec = "(spec)"): JsonObject => ({
  [spec]: { [containers]: [{ [env]: [{ "(valueFrom)": valueFrom }] }] },
});
const NAMED = { "(secretKeyRef)": { "(name)": "database" } };

function clone(exclude: JsonValue[], rule: JsonObject = {}): Migration {
  return convert(
    policy(
      {
        match: match({ kinds: ["Namespace"] }),
        exclude: { any: exclude },
        generate: {
          apiVersion: "v1",
          kind: "Secret",
          name: "pull",
          namespace: "{{request.object.metadata.name}}",
          synchronize: true,
          clone: { namespace: "platform", name: "pull" },
        },
        ...rule,
      },
      { generateExisting: true },
    ),
  );
}
const selectorOf = (migration: Migration): JsonObject => {
  const [target] = specOf(migration)["targets"] as JsonObject[];
  return target?.["namespaceSelector"] as JsonObject;
};

/** A rule that writes keys of the Secret into a custom resource. */
function copyKeys(
  merge: JsonObject | undefined,
  {
    context,
    json,
    target = {},
    rule = {},
  }: { context?: JsonObject[]; json?: string; target?: JsonObject; rule?: JsonObject } = {},
): JsonObject {
  return policy({
    match: match(SECRET),
    ...(context && { context }),
    mutate: {
      targets: [
        {
          apiVersion: "goharbor.io/v1beta1",
          kind: "HarborCluster",
          name: "harbor",
          namespace: "{{request.namespace}}",
          ...target,
        },
      ],
      ...(merge && { patchStrategicMerge: merge }),
      ...(json !== undefined && { patchesJson6902: json }),
    },
    ...rule,
  });
}

describe("a Policy of a namespace", () => {
  const of = (rule: JsonObject) => {
    const migration = convert(policy(rule, {}, "Policy"));
    const [{ targets, rollout, sources } = {}] = migration.converted.map(
      ({ object }) => object["spec"] as Record<string, JsonObject[]>,
    );
    const selectors = targets?.map((each) => each["namespaceSelector"]);
    const isProtected = sources?.some((each) => each["protect"] !== undefined) === true;
    return { lost: migration.lost.length > 0, selectors, rollout, isProtected };
  };

  it("selects nothing where Kyverno refuses it, or never matches", () => {
    const generate = {
      apiVersion: "v1",
      kind: "Secret",
      name: "pull",
      namespace: "{{request.object.metadata.name}}",
      clone: { namespace: "shop", name: "pull" },
    };
    const { lost, selectors } = of({ match: match({ kinds: ["Namespace"] }), generate });
    assert.deepEqual([lost, selectors], [true, [{ names: ["*"], exceptNames: ["*"] }]]);
    const validate = { failureAction: "Enforce", deny: {} };
    const [own, other] = ["shop", "other"].map((namespace) =>
      of({ match: match({ ...SECRET, namespaces: [namespace], operations: ["UPDATE", "DELETE"] }), validate }),
    );
    assert.deepEqual([own?.isProtected, other?.isProtected, other?.lost], [true, false, true]);
    const patchStrategicMerge = {
      spec: { template: { metadata: { annotations: { "example.com/at": "{{ time_now() }}" } } } },
    };
    const [beside, elsewhere] = ["{{ request.namespace }}", "other"].map((namespace) => {
      const targets = [{ apiVersion: "apps/v1", kind: "Deployment", name: "web", namespace }];
      return of({ match: match(SECRET), mutate: { targets, patchStrategicMerge } });
    });
    const nothing = { consumersOf: ["database"], suspend: true };
    assert.deepEqual([beside?.lost, elsewhere?.lost, elsewhere?.rollout], [false, true, nothing]);
  });
});

describe("a migration from Kyverno", () => {
  it("protects, copies and reloads as the three policies of the well-known article", () => {
    const { converted, lost } = convert(ARTICLE);
    assert.deepEqual([converted.length, lost], [1, []]);
    assert.equal(converted[0]?.from.length, 3);
    assert.deepEqual(specOf({ converted }), {
      acknowledge: ["ReadableCopies"],
      sources: [
        {
          secret: { name: "blogsecret" },
          protect: { message: "This Secret is protected and may not be altered or deleted." },
        },
      ],
      targets: [
        {
          apiVersion: "v1",
          kind: "Secret",
          name: "blogsecret",
          namespaceSelector: { exceptNames: ["kube-system", "platform", "kube-public", "kube-node-lease", "kyverno"] },
          create: { adopt: "Equal", exact: true, copy: { labels: ["*"], annotations: ["*"] }, manifest: {} },
          fields: [{ path: "data", from: { source: "blogsecret" } }],
        },
      ],
      rollout: {
        consumersOf: ["blogsecret"],
        consumersOfTargets: true,
        consumersBy: ["Env"],
        kinds: ["Deployment"],
        stamp: { annotation: "ops.corp.com/triggerrestart", value: "ResourceVersion" },
      },
    });
  });

  it("reads conditional, global, existence and equality anchors as references to the Secret", () => {
    const templates: [JsonObject, string][] = [
      [env(NAMED), "Env"],
      [env(NAMED, "=(env)"), "Env"],
      [env(NAMED, "(env)", "^(containers)"), "Env"],
      [env({ secretKeyRef: { name: "database" } }), "Env"],
      [{ spec: { containers: [{ env: [{ valueFrom: { secretKeyRef: { "<(name)": "database" } } }] }] } }, "Env"],
      [{ spec: { containers: [{ "(name)": "*", envFrom: [{ secretRef: { "(name)": "database" } }] }] } }, "EnvFrom"],
      [{ spec: { volumes: [{ secret: { "<(secretName)": "{{request.object.metadata.name}}" } }] } }, "Volume"],
    ];
    for (const [template, by] of templates) {
      const migration = convert(restart(template));
      assert.deepEqual(migration.lost, [], JSON.stringify(template));
      const { consumersBy, consumersOf, targets } = specOf(migration)["rollout"] as JsonObject;
      assert.deepEqual([consumersOf, consumersBy, targets], [["database"], [by], undefined], JSON.stringify(template));
    }
  });

  it("selects nothing and suspends the binding if it does not understand a condition of a restart", () => {
    const notUnderstood: JsonObject[] = [
      restart(env({ "(secretKeyRef)": { "X(name)": "database" } })),
      restart(env({ "(secretKeyRef)": { "+(name)": "database" } })),
      restart(env({ "(secretKeyRef)": { "(name)": "other" } })),
      restart(env({ "(secretKeyRef)": { "(name)": "database", "(key)": "password" } })),
      restart(env({ "(configMapKeyRef)": { "(name)": "database" } })),
      restart(env(NAMED, "(env)", "(initContainers)")),
      restart(env(NAMED, "(env)", "X(containers)")),
      restart({ spec: { containers: [{ env: [{ valueFrom: { secretKeyRef: { name: "database" } } }] }] } }),
      restart({ spec: { containers: [{ "(image)": "*:latest" }] } }),
      restart({ "(spec)": { "(serviceAccountName)": "web" } }),
      restart({}, { patch: { metadata: { "(labels)": { app: "web" } } } }),
      restart(
        {},
        { target: { preconditions: { all: [{ key: "{{ target.kind }}", operator: "Equals", value: "x" }] } } },
      ),
      restart({}, { target: { namespace: "team-*" } }),
      restart(env(NAMED), { target: { selector: { matchLabels: { app: "web" } } } }),
      restart(env(NAMED), { target: { namespace: "other" } }),
      restart({}, { rule: { match: match({ ...SECRET, annotations: { reload: "yes" } }) } }),
      restart({}, { rule: { match: match(SECRET, { subjects: [{ kind: "User", name: "alice" }] }) } }),
      restart({}, { rule: { match: match({ ...SECRET, operations: ["CREATE"] }) } }),
      restart({}, { rule: { exclude: match({ namespaces: ["shop"], operations: ["CREATE"] }) } }),
      restart({}, { rule: { context: [{ name: "x", variable: { value: 1 } }] } }),
      restart({}, { rule: { celPreconditions: [{ name: "x", expression: "false" }] } }),
      restart(
        {},
        { rule: { preconditions: { all: [{ key: "{{request.operation}}", operator: "Equals", value: "DELETE" }] } } },
      ),
    ];
    for (const each of notUnderstood) {
      const migration = convert(each);
      const { suspend, rollout, targets } = specOf(migration);
      const what = JSON.stringify(each["spec"]);
      assert.ok(migration.lost.length > 0, what);
      assert.deepEqual(
        [suspend, rollout, targets],
        [true, { consumersOf: ["database"], suspend: true }, undefined],
        what,
      );
      assert.ok(
        migration.converted[0]?.notes.some((note) => note.startsWith("Restarts nothing.")),
        what,
      );
    }
  });

  it("restarts only in namespaces that the rule names, and none that it excludes", () => {
    const excluded = convert(restart({}, { rule: { exclude: match({ namespaces: ["sho?"] }) } }));
    assert.deepEqual([excluded.converted, excluded.lost], [[], []]);
    const other = convert(restart({}, { rule: { exclude: match({ namespaces: ["test-*"] }) } }));
    assert.deepEqual(specOf(other)["suspend"], undefined);
    const patterns = convert(restart({}, { rule: { match: match({ ...SECRET, namespaces: ["team-*"] }) } }));
    assert.deepEqual([patterns.converted.length, patterns.lost.length], [0, 1]);
    const system = convert(restart({}, { rule: { match: match({ ...SECRET, namespaces: ["kube-system"] }) } }));
    assert.deepEqual([system.converted.length, system.lost.length], [0, 1]);
  });

  it("restarts nothing for a Secret of a namespace that Kyverno leaves out, except for its copies", () => {
    const everywhere = restart(env(NAMED), { rule: { match: match({ kinds: ["Secret"], names: ["database"] }) } });
    const rolloutOf = (migration: Migration) => specOf(migration)["rollout"] as JsonObject;
    const cloned = (namespace: string, name: string) =>
      policy({
        match: match({ kinds: ["Namespace"] }),
        generate: {
          apiVersion: "v1",
          kind: "Secret",
          name,
          namespace: "{{request.object.metadata.name}}",
          clone: { namespace, name: "database" },
        },
      });
    assert.deepEqual(rolloutOf(convert(cloned("shop", "other"), everywhere))["consumersOf"], ["database"]);
    const ofCopies = rolloutOf(convert(cloned("kube-system", "database"), everywhere));
    assert.deepEqual([ofCopies["consumersOf"], ofCopies["consumersOfTargets"]], [undefined, true]);
    const excluded = restart(env(NAMED), {
      rule: {
        match: match({ kinds: ["Secret"], names: ["database"] }),
        exclude: match({ namespaces: ["shop"] }),
      },
    });
    const ofExcluded = convert(cloned("shop", "database"), excluded);
    assert.deepEqual([rolloutOf(ofExcluded), ofExcluded.lost.length], [undefined, 1]);
    const none = convert(cloned("kube-system", "other"), everywhere);
    assert.deepEqual([rolloutOf(none), none.lost.length], [undefined, 1]);
  });

  it("restarts consumers of copies only if the rule is about the copies, too", () => {
    const named = ARTICLE.replace(
      /(reload-blogsecret[\s\S]*?- blogsecret\n)/,
      "$1              namespaces: [platform]\n",
    );
    assert.notEqual(named, ARTICLE);
    const { consumersOfTargets, consumersOf } = specOf(convert(named))["rollout"] as JsonObject;
    assert.deepEqual([consumersOf, consumersOfTargets], [["blogsecret"], undefined]);
  });

  it("excludes namespaces by name, by namespaces and by label, and those that Kyverno leaves out by default", () => {
    const [first, ...others] = DEFAULTS as [string, ...string[]];
    assert.deepEqual(selectorOf(clone([{ resources: { namespaces: ["test-*", first] } }])), {
      exceptNames: ["test-*", first, "platform", ...others],
    });
    assert.deepEqual(selectorOf(clone([{ resources: { names: ["kube-*"] } }])), {
      exceptNames: ["kube-*", "platform", "kyverno"],
    });
    const labelled = { selector: { matchExpressions: [{ key: "pull", operator: "Exists" }] } };
    assert.deepEqual(selectorOf(clone([{ resources: labelled }])), {
      matchExpressions: [{ key: "pull", operator: "DoesNotExist" }],
      exceptNames: ["platform", ...DEFAULTS],
    });
    const team = { kinds: ["Namespace"], names: ["team-a", "kyverno"] };
    assert.deepEqual(selectorOf(clone([], { match: match(team) })), { names: ["team-a"] });
    assert.deepEqual(selectorOf(clone([], { match: match({ kinds: ["Namespace"], namespaces: ["a-*"] }) })), {
      names: ["a-*"],
      exceptNames: ["platform", ...DEFAULTS],
    });
  });

  it("selects no namespace and suspends the binding if it does not understand a condition of a clone", () => {
    const labels = { selector: { matchLabels: { a: "b" } } };
    const notUnderstood = [
      clone([{ resources: { names: ["a"], ...labels } }]),
      clone([{ resources: { names: ["a"], namespaces: ["b"] } }]),
      clone([{ clusterRoles: ["cluster-admin"] }]),
      clone([{ resources: { annotations: { a: "b" } } }]),
      clone([{ resources: { operations: ["CREATE"] } }]),
      clone([{ resources: { names: ["a"], operations: ["CREATE"] } }]),
      clone([{ resources: { kinds: ["Namespace"] } }]),
      clone([{ resources: { kinds: ["Namespace"], selector: {} } }]),
      clone([{ resources: { kinds: ["*"], names: ["a"] } }]),
      clone([], { match: match({ kinds: ["Namespace"], names: ["a"], namespaces: ["b"] }) }),
      clone([], { match: match({ kinds: ["Namespace"], operations: ["DELETE"] }) }),
      clone([], {
        match: { all: [{ resources: { kinds: ["Namespace"] } }, { resources: { kinds: ["Namespace"], ...labels } }] },
      }),
      clone([], {
        preconditions: { all: [{ key: "{{request.object.metadata.name}}", operator: "Equals", value: "a" }] },
      }),
      clone([], { somethingNew: true }),
    ];
    for (const each of notUnderstood) {
      assert.deepEqual([selectorOf(each), specOf(each)["suspend"]], [{ names: ["*"], exceptNames: ["*"] }, true]);
      assert.ok(each.lost.length > 0);
    }
  });

  it("protects nothing if it does not understand which objects a rule protects", () => {
    const protect = (rule: JsonObject) =>
      convert(
        policy({
          match: match({ ...SECRET, operations: ["UPDATE", "DELETE"] }),
          validate: { failureAction: "Enforce", deny: {} },
          ...rule,
        }),
      );
    const sources = (migration: Migration) => specOf(migration)["sources"];
    const unprotected = [{ secret: { name: "database" } }];
    assert.deepEqual(sources(protect({})), [{ secret: { name: "database" }, protect: {} }]);
    for (const rule of [
      { match: match({ ...SECRET, operations: ["DELETE"] }) },
      { match: match({ ...SECRET, selector: { matchLabels: { a: "b" } } }) },
      { preconditions: { all: [{ key: "{{ request.object.data.a }}", operator: "Equals", value: "b" }] } },
      { exclude: match({ kinds: ["Secret"], operations: ["CREATE"] }) },
      { exclude: match({ namespaces: ["shop"], operations: ["CREATE"] }) },
      { exclude: match({ kinds: ["*"], namespaces: ["shop"] }) },
      { exclude: match({ namespaces: ["x"] }, { subjects: [{ kind: "User", name: "alice" }] }) },
    ] as JsonObject[]) {
      const migration = protect(rule);
      assert.deepEqual([sources(migration), specOf(migration)["suspend"]], [unprotected, true], JSON.stringify(rule));
    }
    assert.deepEqual(protect({ exclude: match({ namespaces: ["shop"] }) }).converted, []);
  });

  it("lets only those write a protected Secret whom all rules about it except", () => {
    const writersOf = (...excludes: (JsonObject | undefined)[]) => {
      const migration = convert(
        ...excludes.map((exclude) =>
          policy({
            match: match({ ...SECRET, operations: ["UPDATE", "DELETE"] }),
            ...(exclude && { exclude }),
            validate: { failureAction: "Enforce", deny: {} },
          }),
        ),
      );
      const [source] = specOf(migration)["sources"] as JsonObject[];
      return [source?.["protect"], specOf(migration)["suspend"]];
    };
    const [bot, alice] = [
      { kind: "User", name: "ci-bot" },
      { kind: "User", name: "alice" },
    ];
    const except = (...subjects: JsonObject[]) => ({ any: [{ subjects }] });
    assert.deepEqual(writersOf(except(bot, alice), except(alice)), [{ writers: [alice] }, undefined]);
    assert.deepEqual(writersOf(except(bot), undefined), [{}, undefined]);
    assert.deepEqual(writersOf(undefined, except(bot)), [{}, undefined]);
    assert.deepEqual(writersOf({ any: [{ clusterRoles: ["cluster-admin"], subjects: [bot] }] }), [{}, true]);
  });

  it("gives the users of an excepted ClusterRole a verb, and says which rule the role needs", () => {
    const rule = (...clusterRoles: string[]) =>
      policy({
        match: match({ ...SECRET, operations: ["UPDATE", "DELETE"] }),
        exclude: { any: [{ clusterRoles }] },
        validate: { failureAction: "Enforce", deny: {}, message: "Ask {{request.userInfo.username}}" },
      });
    const { converted, lost } = convert(rule("cluster-admin", "operators", "sre"), rule("cluster-admin", "operators"));
    assert.deepEqual(lost, []);
    assert.deepEqual(specOf({ converted })["sources"], [
      { secret: { name: "database" }, protect: { writerVerb: "change-protected" } },
    ]);
    const [note, ...others] = converted[0]?.notes ?? [];
    assert.equal(
      note,
      'Users with the ClusterRole operators may change it once that role has the rule {apiGroups: [""], resources: [secrets], resourceNames: [database], verbs: [change-protected]}.',
    );
    assert.deepEqual(others, []);
    assert.equal(convert(rule("op*")).lost.length, 1);
  });

  it("selects nothing if the policy has a condition for all rules, or a PolicyException", () => {
    const conditions = { matchConditions: [{ name: "x", expression: "false" }] };
    const excepted = {
      apiVersion: "kyverno.io/v2",
      kind: "PolicyException",
      metadata: { name: "exception", namespace: "shop" },
      spec: { exceptions: [{ policyName: "policy", ruleNames: ["rule"] }], match: match({ names: ["web"] }) },
    };
    const base = restart({});
    const withSpec = (spec: JsonObject) => ({ ...base, spec: { ...(base["spec"] as JsonObject), ...spec } });
    for (const [lost, ...objects] of [
      [1, withSpec({ webhookConfiguration: conditions })],
      [1, withSpec({ applyRules: "One" })],
      [1, withSpec({ validationFailureActionOverrides: [{ action: "Audit", namespaces: ["shop"] }] })],
      // The exception, and the policy that it restricts.
      [2, base, excepted],
    ] as const) {
      const migration = convert(...(objects as JsonObject[]));
      const { suspend, rollout } = specOf(migration);
      assert.deepEqual([suspend, rollout], [true, { consumersOf: ["database"], suspend: true }]);
      assert.equal(migration.lost.length, lost);
    }
  });

  it("restarts the consumers of all Secrets with a label, as a policy of Kyverno's library", () => {
    const labelled = { kinds: ["Secret"], selector: { matchLabels: { "kyverno.io/watch": "true" } } };
    const named = { secretKeyRef: { "<(name)": "{{ request.object.metadata.name }}" } };
    const template = { spec: { containers: [{ env: [{ valueFrom: named }] }] } };
    const preconditions = {
      conditions: { all: [{ key: "{{request.operation}}", operator: "Equals", value: "UPDATE" }] },
    };
    const ofSpec = (rule: JsonObject, more: JsonObject = {}) => {
      const migration = convert(restart({ ...template, ...more }, { rule: { match: match(labelled), ...rule } }));
      const { for: claims, bindings } = specOf(migration) as {
        for: JsonObject;
        bindings: { base: { spec: JsonObject } }[];
      };
      return { claims, spec: bindings[0]?.base.spec ?? {}, lost: migration.lost };
    };
    const { claims, spec, lost } = ofSpec({ preconditions, exclude: match({ namespaces: ["test-*"] }) });
    assert.deepEqual(
      [lost, claims],
      [
        [],
        {
          apiVersion: "v1",
          kind: "Secret",
          selector: { matchLabels: { "kyverno.io/watch": "true" } },
          namespaceSelector: { exceptNames: ["test-*", ...DEFAULTS] },
        },
      ],
    );
    assert.deepEqual(spec["rollout"], {
      consumersOf: ["source"],
      consumersBy: ["Env"],
      kinds: ["Deployment"],
      stamp: { annotation: "example.com/at", value: "Time" },
    });
    const unknown = ofSpec({ context: [{ name: "x", variable: { value: "y" } }] });
    assert.deepEqual(
      [unknown.claims["selector"], unknown.spec["suspend"]],
      [{ names: ["*"], exceptNames: ["*"] }, true],
    );
    const fixed = ofSpec(
      {},
      { spec: { containers: [{ env: [{ valueFrom: { secretKeyRef: { "<(name)": "a" } } }] }] } },
    );
    assert.deepEqual(fixed.claims["selector"], { names: ["*"], exceptNames: ["*"] });
  });

  it("writes keys of Secrets and ConfigMaps into fields of custom resources, for both forms of patches", () => {
    const context = [
      { name: "config", configMap: { name: "s3", namespace: "shop" } },
      {
        name: "ca",
        apiCall: { urlPath: "/api/v1/namespaces/certs/secrets/ca", jmesPath: 'data."ca.crt" | base64_decode(@)' },
      },
      { name: "port", variable: { jmesPath: "config.data.port || '9000'" } },
    ];
    const { converted, lost } = convert(
      copyKeys(
        {
          spec: {
            user: "{{ request.object.data.user | base64_decode(@) }}",
            encoded: "{{request.object.data.user}}",
            url: "https://{{ config.data.host }}:{{port}}",
            certificate: "{{ ca }}",
            replicas: 2,
          },
        },
        { context },
      ),
      copyKeys(undefined, {
        json: '- op: replace\n  path: /spec/list/0/user\n  value: "{{ to_upper(base64_decode(request.object.data.user)) }}"\n',
      }),
      copyKeys(undefined, {
        json: "- op: add\n  path: /data/a.b\n  value: {{request.object.data.user}}\n",
        target: { apiVersion: "v1", kind: "Secret", name: "other" },
      }),
    );
    assert.deepEqual(lost, []);
    const targets = converted.map(({ object }) => (object["spec"] as JsonObject)["targets"]);
    const harbor = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", name: "harbor" };
    assert.deepEqual(targets.slice(0, 3), [
      [
        {
          ...harbor,
          fields: [
            { path: "spec.user", from: { source: "database", key: "user" } },
            { path: "spec.encoded", template: "{{base64 database.user}}" },
            { path: "spec.url", template: 'https://{{s3.host}}:{{default s3.port "9000"}}' },
            { path: "spec.certificate", from: { source: "ca", key: "ca.crt" } },
            { path: "spec.replicas", template: "2", as: "integer" },
          ],
        },
      ],
      [{ ...harbor, fields: [{ path: "spec.list[0].user", template: "{{upper database.user}}" }] }],
      [
        {
          apiVersion: "v1",
          kind: "Secret",
          name: "other",
          fields: [{ path: 'data["a.b"]', from: { source: "database", key: "user" } }],
        },
      ],
    ]);
    assert.deepEqual(specOf({ converted })["sources"], [
      { name: "ca", secret: { name: "ca", namespace: "certs" } },
      { name: "s3", configMap: { name: "s3" } },
      { name: "database", secret: { name: "database" } },
    ]);
    assert.deepEqual(converted.at(-1)?.object["spec"], {
      from: [{ namespace: "shop" }],
      to: [{ kind: "Secret", name: "ca" }],
    });
  });

  it("writes values of a Secret into the objects that a rule matches when they are admitted", () => {
    const grafana = (resources: JsonObject, url: string, exclude: JsonObject) =>
      convert(
        policy({
          match: match({ kinds: ["grafana.integreatly.org/v1beta1/Grafana"], ...resources }),
          exclude: match(exclude),
          context: [{ name: "admin", apiCall: { urlPath: url } }],
          mutate: {
            patchStrategicMerge: { spec: { config: { password: "{{ admin.data.password | base64_decode(@) }}" } } },
          },
        }),
      );
    const [fixed, own] = [
      "/api/v1/namespaces/platform/secrets/admin",
      "/api/v1/namespaces/{{request.namespace}}/secrets/admin",
    ] as const;
    const targetsOf = ({ converted }: Pick<Migration, "converted">) =>
      converted.map(({ object }) => {
        const [{ apiVersion: _, fields, kind: __, ...target } = {}] = (object["spec"] as { targets: JsonObject[] })
          .targets;
        assert.deepEqual(fields, [{ path: "spec.config.password", from: { source: "admin", key: "password" } }]);
        return [(object["metadata"] as JsonObject)["namespace"], target];
      });
    assert.deepEqual(targetsOf(grafana({ names: ["main"] }, fixed, { namespaces: ["test-*"] })), [
      ["platform", { name: "main", namespaceSelector: { exceptNames: ["test-*", ...DEFAULTS] } }],
    ]);
    assert.deepEqual(targetsOf(grafana({ namespaces: ["a", "b"] }, own, { names: ["x"] })), [
      ["a", { selector: { exceptNames: ["x"] } }],
      ["b", { selector: { exceptNames: ["x"] } }],
    ]);
    // Of Kubernetes, and without a namespace.
    const classes = { kinds: ["networking.k8s.io/v1/IngressClass"], names: ["main"] };
    assert.deepEqual(targetsOf(grafana(classes, fixed, { names: ["x"] })), [
      ["platform", { selector: { names: ["main"] } }],
    ]);
    const everywhere = grafana({}, own, { names: ["x"] });
    assert.deepEqual([everywhere.converted.length, everywhere.lost.length], [0, 1]);
  });

  it("writes nothing and suspends the binding if it does not understand which objects a patch is for", () => {
    const field = { spec: { user: "{{ request.object.data.user | base64_decode(@) }}" } };
    const json = '- op: add\n  path: /spec/user\n  value: "{{ request.object.data.user | base64_decode(@) }}"\n';
    for (const each of [
      copyKeys(field, { target: { preconditions: { all: [] as JsonValue[], any: [{ key: "a" }] } } }),
      copyKeys(field, { target: { name: "{{ request.object.metadata.name }}" } }),
      copyKeys(field, { target: { namespace: "team-*" } }),
      copyKeys(field, { rule: { preconditions: { all: [{ key: "{{ x }}", operator: "Equals", value: "y" }] } } }),
      copyKeys(field, { rule: { match: match({ ...SECRET, selector: { matchLabels: { a: "b" } } }) } }),
      copyKeys({ "(spec)": { kind: "S3" } }, { json }),
    ]) {
      const migration = convert(each);
      const { suspend, targets } = specOf(migration);
      const [{ selector, name } = {}] = targets as JsonObject[];
      assert.deepEqual([suspend, name, selector], [true, undefined, { names: ["*"], exceptNames: ["*"] }]);
      assert.ok(migration.lost.length > 0);
    }
  });

  it("reports values that are no keys of Secrets and ConfigMaps, and writes the others", () => {
    const value = "{{ request.object.data.user | base64_decode(@) }}";
    for (const other of [
      "{{ request.userInfo.username }}",
      "{{ request.object.metadata.name }}",
      "{{ request.object.data.*[0] }}",
      "{{ random('[a-z]{8}') }}",
      "{{ unknown }}",
      "{{ parse_json(request.object.data.user) }}",
    ]) {
      const migration = convert(copyKeys({ spec: { other, user: value } }));
      assert.deepEqual((specOf(migration)["targets"] as JsonObject[])[0]?.["fields"], [
        { path: "spec.user", from: { source: "database", key: "user" } },
      ]);
      assert.deepEqual(
        migration.lost.map(({ message }) => message.split(":")[0]),
        ["spec.rules[0].mutate.patchStrategicMerge.spec.other"],
      );
    }
    assert.deepEqual(convert(copyKeys({ spec: { fixed: "value" } })).converted, []);
    const tested =
      '- op: test\n  path: /spec/kind\n  value: S3\n- op: add\n  path: /spec/user\n  value: "{{ request.object.data.user }}"\n';
    const { converted, lost } = convert(copyKeys(undefined, { json: tested }));
    assert.deepEqual([converted.length, lost.length > 0], [0, true]);
  });
});
