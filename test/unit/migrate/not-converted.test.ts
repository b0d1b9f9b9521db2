/** What is not converted is marked above the object that it concerns, which is then suspended. */
import assert from "node:assert/strict";
import { parseAllDocuments } from "yaml";
import type { Migration } from "../../../src/migrate/migration.ts";
import { migrationText, migrationYaml } from "../../../src/migrate/text.ts";
import { convert, specsOf } from "./convert.ts";

const patchOf = (patches: Record<string, object>) => ({
  apiVersion: "redhatcop.redhat.io/v1alpha1",
  kind: "Patch",
  metadata: { name: "web", namespace: "shop" },
  spec: { serviceAccountRef: { name: "inlay" }, patches },
});
const patch = (more: object) => ({
  targetObjectRef: { apiVersion: "v1", kind: "ConfigMap", name: "web", namespace: "shop" },
  sourceObjectRefs: [{ apiVersion: "v1", kind: "ConfigMap", name: "settings", namespace: "shop" }],
  patchTemplate: 'data:\n  level: "{{ (index . 1).data.level }}"\n',
  patchType: "application/merge-patch+json",
  ...more,
});
const LOST = { targetObjectRef: { ...patch({}).targetObjectRef, annotationSelector: { matchLabels: { a: "b" } } } };

const policyOf = (...rules: object[]) => ({
  apiVersion: "kyverno.io/v1",
  kind: "ClusterPolicy",
  metadata: { name: "sync" },
  spec: { generateExisting: true, rules },
});
const CLONE = {
  name: "clone",
  match: { any: [{ resources: { kinds: ["Namespace"] } }] },
  generate: {
    apiVersion: "v1",
    kind: "Secret",
    name: "login",
    namespace: "{{request.object.metadata.name}}",
    synchronize: true,
    clone: { namespace: "platform", name: "login" },
  },
};
const CLONED = { apiVersion: "v1", kind: "Secret", metadata: { name: "login", namespace: "platform" } };

const STORE = {
  apiVersion: "external-secrets.io/v1",
  kind: "SecretStore",
  metadata: { name: "store", namespace: "shop" },
  spec: { provider: { kubernetes: { remoteNamespace: "central" } } },
};
const externalSecret = (template: object | undefined, keys = ["hook"]) => ({
  apiVersion: "external-secrets.io/v1",
  kind: "ExternalSecret",
  metadata: { name: "hooks", namespace: "shop" },
  spec: {
    secretStoreRef: { name: "store", kind: "SecretStore" },
    target: { name: "hooks", template },
    data: keys.map((key) => ({ secretKey: key, remoteRef: { key: "hooks", property: key } })),
  },
});
const QUOTED = "https://hooks.example.com/{{ .hook | quote }}";
const pathsOf = (migration: Migration) =>
  specsOf(migration).flatMap(({ targets }) =>
    (targets as { fields: { path: string }[] }[]).flatMap(({ fields }) => fields.map(({ path }) => path)),
  );

describe("what is not converted", () => {
  it("is marked above the objects of the same part of the input, which are suspended, and above no others", async () => {
    const migration = await convert("patch-operator", [patchOf({ lossy: patch(LOST), whole: patch({}) })]);
    const lossy = migration.converted.map(({ notConverted }) => notConverted.length);
    assert.deepEqual(lossy, [1, 0]);
    assert.deepEqual(
      specsOf(migration).map(({ suspend }) => suspend),
      [true, undefined],
    );
    const [first, second] = migrationYaml(migration) as [string, string];
    assert.match(
      first,
      /^# From .*\n(# .*\n)*# NOT CONVERTED: input\.yaml:\d+: spec\.patches\.lossy\..*\n(# .*\n)*apiVersion/,
    );
    assert.ok(!second.includes("NOT CONVERTED"));
    assert.match(migrationText(migration, Infinity).join("\n"), /NOT CONVERTED\n.*annotationSelector/);
  });

  it("is marked above all objects of the input if it is in no part of it", async () => {
    const object = patchOf({ one: patch({}), two: patch({}) });
    const migration = await convert("patch-operator", [{ ...object, spec: { ...object.spec, unknown: 1 } }]);
    assert.deepEqual(
      specsOf(migration).map(({ suspend }) => suspend),
      [true, true],
    );
  });

  it("is marked at most 20 times above an object, with the number of the others", async () => {
    const unknown = Object.fromEntries(Array.from({ length: 25 }, (_, at) => [`unknown${at}`, at]));
    const [object] = (await convert("patch-operator", [patchOf({ web: patch(unknown) })])).converted;
    assert.equal(object?.notConverted.length, 20);
    assert.match(object?.notes.at(-1) ?? "", / 5 more lines /);
  });

  it("is marked at the top if there is no object for it, and suspends nothing", async () => {
    const labels = {
      name: "labels",
      match: { any: [{ resources: { kinds: ["Pod"] } }] },
      validate: { pattern: { a: "b" } },
    };
    const migration = await convert("kyverno", [policyOf(labels, CLONE), CLONED]);
    assert.deepEqual([migration.unplaced.length, specsOf(migration)[0]?.["suspend"]], [1, undefined]);
    assert.match(migrationYaml(migration).join("\n"), /^# NOT CONVERTED: input\.yaml:\d+: spec\.rules\[0\]/);
  });

  it("is marked above the binding of another rule that the part only adds to", async () => {
    const restart = {
      name: "reload",
      match: { any: [{ resources: { kinds: ["Secret"], names: ["login"] } }] },
      preconditions: {
        all: [{ key: "{{ request.object.metadata.labels.restart }}", operator: "Equals", value: "yes" }],
      },
      mutate: {
        targets: [{ apiVersion: "apps/v1", kind: "Deployment", name: "web", namespace: "shop" }],
        patchStrategicMerge: { spec: { template: { metadata: { annotations: { restarted: "{{ time_now() }}" } } } } },
      },
    };
    const migration = await convert("kyverno", [policyOf(CLONE, restart), CLONED]);
    assert.deepEqual([migration.unplaced, specsOf(migration)[0]?.["suspend"]], [[], true]);
  });

  it("never ends its comment, whatever the names in the files are", async () => {
    const hostile = "a\n---\nkind: Secret\u2028kind: Role\u0085kind: Pod\r\t\"'#: {{";
    const object = patchOf({ [hostile]: patch(LOST), "": patch({ [hostile]: "x" }) });
    const renamed = { ...object, metadata: { name: hostile, namespace: hostile, labels: { [hostile]: hostile } } };
    const migration = await convert("patch-operator", [renamed, { ...renamed, kind: hostile }]);
    assert.ok(migration.unplaced.length > 0);
    const text = migrationYaml(migration).join("\n");
    // A reader of YAML 1.1, such as kubectl, ends lines at these characters, too.
    const lines = text.split(/[\n\r\u0085\u2028\u2029]/);
    assert.ok(lines.every((line) => !/^kind: (?:Secret|Role|Pod)\b/.test(line)));
    const kinds = parseAllDocuments(text).map((each) => each.toJS()?.kind);
    assert.deepEqual(kinds, ["SecretBinding", "SecretBinding", "SecretGrant"]);
  });

  it("is marked above an object that the API server would refuse", async () => {
    const keys = Array.from({ length: 65 }, (_, at) => `key${at}`);
    const migration = await convert("external-secrets", [STORE, externalSecret(undefined, keys)]);
    assert.equal(specsOf(migration)[0]?.["suspend"], true);
    assert.match(migration.lost[0]?.message ?? "", /fields: must have at most 64 elements/);
  });
});

describe("a template that can't be converted", () => {
  it("is not replaced by the value itself, and a binding without another field is not printed", async () => {
    const migration = await convert("external-secrets", [STORE, externalSecret({ data: { hook: QUOTED } })]);
    assert.deepEqual([migration.converted, migration.lost.length], [[], 1]);
    const other = { templateFrom: [{ configMap: { name: "templates", items: [{ key: "hook" }] } }] };
    assert.deepEqual((await convert("external-secrets", [STORE, externalSecret(other)])).converted, []);
  });

  it("is not replaced by the value itself where values and templates are merged", async () => {
    const merged = { mergePolicy: "Merge", data: { hook: QUOTED, plain: "{{ .token }}" } };
    const migration = await convert("external-secrets", [STORE, externalSecret(merged, ["hook", "token", "plain"])]);
    assert.deepEqual(pathsOf(migration), ["data.token", "data.plain"]);
    const literal = { mergePolicy: "Merge", templateFrom: [{ literal: `hook: "${QUOTED}"\n` }] };
    const from = await convert("external-secrets", [STORE, externalSecret(literal, ["hook", "token"])]);
    assert.deepEqual(pathsOf(from), ["data.token"]);
  });

  it("leaves no binding of the Vault Secrets Operator without fields", async () => {
    const transformation = {
      excludeRaw: true,
      excludes: [".*"],
      templates: { hook: { text: '{{ get .Secrets "hook" | quote }}' } },
    };
    const object = {
      apiVersion: "secrets.hashicorp.com/v1beta1",
      kind: "VaultStaticSecret",
      metadata: { name: "hook", namespace: "shop" },
      spec: {
        type: "kv-v2",
        mount: "kv",
        path: "hooks",
        destination: { name: "hook", create: true, transformation },
      },
    };
    assert.deepEqual((await convert("vso", [object])).converted, []);
  });
});

describe("a PushSecret", () => {
  it("does not push all data where it pushed it as JSON in one key", async () => {
    const push = {
      apiVersion: "external-secrets.io/v1alpha1",
      kind: "PushSecret",
      metadata: { name: "push", namespace: "shop" },
      spec: {
        secretStoreRefs: [{ name: "store", kind: "SecretStore" }],
        selector: { secret: { name: "login" } },
        data: [{ match: { remoteRef: { remoteKey: "copy", property: "all.json" } } }],
      },
    };
    const { converted, lost } = await convert("external-secrets", [STORE, push]);
    assert.deepEqual([converted, lost.length], [[], 1]);
  });
});

describe("a store of External Secrets with conditions", () => {
  it("gives no namespace a grant for conditions that can't be converted", async () => {
    const store = {
      apiVersion: "external-secrets.io/v1",
      kind: "ClusterSecretStore",
      metadata: { name: "store" },
      spec: {
        conditions: [{ namespaceRegexes: ["team-.*"] }],
        provider: {
          vault: {
            server: "https://vault.example.com",
            path: "kv",
            auth: {
              appRole: { path: "approle", roleId: "a", secretRef: { name: "id", namespace: "vault", key: "id" } },
            },
          },
        },
      },
    };
    const [secret] = [externalSecret(undefined)];
    const spec = { ...secret?.spec, secretStoreRef: { name: "store", kind: "ClusterSecretStore" } };
    const migration = await convert("external-secrets", [store, { ...secret, spec }]);
    assert.deepEqual(specsOf(migration, "SecretGrant"), []);
  });
});
