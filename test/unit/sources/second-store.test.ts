/** A store beside Vault, which lives in one file of the tests and one line of the registry: every command shows it like Vault. */
import assert from "node:assert/strict";
import { Installation } from "../../../src/api/installation.ts";
import ownRules from "../../../src/api/own-rules.json" with { type: "json" };
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { BINDING_SCHEMA } from "../../../src/composition/compile.ts";
import { ConnectionUsers } from "../../../src/controllers/binding/controller.ts";
import { adviceFor } from "../../../src/explain/explain.ts";
import type { Explanation } from "../../../src/explain/explanation.ts";
import { explanationText } from "../../../src/explain/explanation-text.ts";
import { graphOfExplanation } from "../../../src/explain/graph/read.ts";
import { Reader } from "../../../src/explain/reading.ts";
import { explainSources } from "../../../src/explain/sources.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { requiredAccounts } from "../../../src/rbac/rbac.ts";
import { SOURCE_KINDS } from "../../../src/sources/registry.ts";
import { COUNTER_SCHEMA, counterKind, withCounter } from "../../extension/counter.ts";
import { bindingOf } from "../bindings.ts";
import { BINDING } from "../explain/explained.ts";
import { renderTexts } from "../render/texts.ts";
import { validateTexts } from "../validate/texts.ts";

const binding = (connection = "") => `
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: b, namespace: shop}
spec:
  sources:
    - {name: visits, counter: {name: visits${connection}}}
  targets:
    - apiVersion: v1
      kind: ConfigMap
      name: out
      fields:
        - {path: data.visits, from: {source: visits, key: value}}
---
`;
const THROUGH = ", connection: {name: main}";
const server = `
apiVersion: test.inlay.dev/v1
kind: CounterServer
metadata: {name: main, namespace: shop}
spec: {serviceAccountName: counting, credentials: login}
---
`;

/** The CRD in the program, as a change of apis/ would make it. */
function extendSchema(): () => void {
  const { properties = {}, oneOf = [] } = BINDING_SCHEMA.properties?.["spec"]?.properties?.["sources"]?.items ?? {};
  const [exactlyOne] = ownRules.SecretBinding.properties.spec.properties.sources.items.rules;
  assert.ok(exactlyOne);
  const { rule } = exactlyOne;
  Object.assign(properties, { counter: COUNTER_SCHEMA });
  oneOf.push({ required: ["counter"] });
  exactlyOne.rule = withCounter(rule);
  return () => {
    Reflect.deleteProperty(properties, "counter");
    oneOf.pop();
    exactlyOne.rule = rule;
  };
}

describe("a second store", () => {
  let restore: () => void;
  before(() => {
    restore = extendSchema();
    // Nothing listens there: the command line contacts no server.
    SOURCE_KINDS.push(counterKind("http://127.0.0.1:1"));
  });
  after(() => {
    SOURCE_KINDS.pop();
    restore();
  });

  it("is rendered from the file of values, with notes about what the files lack", async () => {
    const rendered = async (text: string, values?: string) => {
      const options = { showValues: true, ...(values !== undefined && { vault: values }) };
      const { bindings, mistakes } = await renderTexts({ a: text }, options);
      const [field] = bindings[0]?.targets[0]?.fields ?? [];
      return { field, notes: bindings[0]?.notes ?? [], grants: bindings[0]?.grants ?? [], mistakes };
    };
    const found = await rendered(binding(), "counters: {visits: {value: 7}}");
    assert.deepEqual([found.field?.value, found.notes, found.mistakes], ["7", [], []]);
    const missing = await rendered(binding());
    assert.equal(missing.field?.problem?.reason, "SourceNotFound");
    assert.match(missing.notes.join(), /counters visits; add to .*: counters: \{"visits": \{value: VALUE\}\}$/);
    const wrong = await rendered(binding(), "counters:\n  visits: {value: 7}\n  a/b: {value: 7}");
    assert.deepEqual(
      wrong.mistakes.map(({ line, message }) => [line, message]),
      [[3, 'counters["a/b"]: must be the name of a counter, such as visits']],
    );
    const through = await rendered(binding(THROUGH), "counters: {visits: {value: 7}}");
    assert.equal(through.field?.value, "7");
    assert.match(through.notes.join(), /^CounterServer shop\/main is not in the files/);
    const granted = await rendered(
      binding(", connection: {name: main, namespace: other}"),
      "counters: {visits: {value: 7}}",
    );
    assert.match(
      granted.grants[0]?.message ?? "",
      /permits ServiceAccount shop\/inlay to use CounterServer other\/main/,
    );
  });

  it("needs a grant in a composed binding if the claim names its connection", async () => {
    const composition = `
apiVersion: inlay.dev/v1alpha1
kind: BindingComposition
metadata: {name: shops}
spec:
  for: {apiVersion: example.com/v1, kind: Shop, namespaceSelector: {names: [shop]}}
  bindings:
    - name: visits
      base:
        metadata: {namespace: shop}
        spec:
          sources: [{name: visits, counter: {name: visits, connection: {name: main}}}]
          targets:
            [{apiVersion: v1, kind: ConfigMap, name: out, fields: [{path: data.a, from: {source: visits, key: value}}]}]
      patches: [{fromFieldPath: spec.server, toFieldPath: "spec.sources[0].counter.connection.name"}]
---
apiVersion: example.com/v1
kind: Shop
metadata: {name: one, namespace: shop}
spec: {server: main}
`;
    const { bindings } = await renderTexts({ a: server + composition });
    assert.match(
      bindings[0]?.grants?.[0]?.message ?? "",
      /permits BindingComposition shops to use CounterServer shop\/main/,
    );
  });

  it("is validated: its connection must exist", async () => {
    const found = async (text: string) => {
      const { errors } = await validateTexts({ a: text });
      return errors.map(({ reason, message }) => [reason, message.split(":")[0]]);
    };
    assert.deepEqual(await found(binding(THROUGH)), [["ConnectionNotFound", "spec.sources[0].counter.connection"]]);
    assert.deepEqual(await found(binding(THROUGH) + server), []);
    // As kustomize renames it.
    const secret = "{apiVersion: v1, kind: Secret, metadata: {name: login-bcdfghkmt2, namespace: shop}}";
    assert.deepEqual(await found(`${binding(THROUGH)}${server}${secret}`), [["SourceNotFound", "spec.credentials"]]);
  });

  it("has the permissions that it and its connection need", async () => {
    const installation = new Installation({ ownNamespace: "inlay-system" });
    const required = (text: string) =>
      requiredAccounts([{ name: "a", text }], { namespace: "default", installation, crds: [] });
    const { accounts, mistakes } = await required(binding(THROUGH) + server);
    assert.deepEqual(mistakes, []);
    const needed = accounts.flatMap(({ namespace, name, permissions }) =>
      permissions.map(({ ref, verbs, why }) => `${namespace}/${name}: ${verbs} ${ref.resource.plural}, ${why}`),
    );
    for (const each of [
      "shop/inlay: create serviceaccounts/token, login to Counters",
      "shop/counting: get secrets, CounterServer main",
    ])
      assert.ok(needed.includes(each), needed.join("\n"));
    const unknown = await required(binding(THROUGH));
    assert.match(unknown.mistakes.map(({ message }) => message).join(), /CounterServer shop\/main is unknown/);
  });

  it("is explained with the state of its connection, in JSON, as text, as advice and as a graph", async () => {
    const explained = async (counter: object, objects: Record<string, object>): Promise<Explanation> => {
      const transport = {
        request: async ({ path }: { path: string }) => {
          if (objects[path] === undefined) throw new ApiError(`GET ${path}`, 404, "NotFound");
          return objects[path];
        },
      };
      const tools = { reader: new Reader(transport as never), discovery: {} as never };
      const sources = await explainSources(
        tools,
        bindingOf({
          sources: [{ name: "visits", counter }],
          targets: [{ kind: "ConfigMap", fields: [{ path: "data.a", from: { source: "visits", key: "value" } }] }],
        }),
        () => [],
      );
      const facts = {
        binding: { ...BINDING, observedGeneration: 1 },
        account: { name: "ServiceAccount registry/inlay", state: "Found" as const },
        sources,
        targets: [],
        conditions: [],
        events: [],
      };
      return { ...facts, advice: adviceFor(facts) };
    };
    const alone = await explained({ name: "visits" }, {});
    assert.deepEqual(alone.sources, [
      {
        source: "visits",
        kind: "Counter",
        name: "visits",
        optional: false,
        state: "Unreadable",
        message: "it is not an object in this cluster; only the controller reads it",
        uses: [{ key: "value" }],
        store: { product: "Counters", reads: "counter visits" },
      },
    ]);
    const down = { type: "Ready", status: "False", reason: "Unavailable", message: "the server is down" };
    const main: Partial<KubeObject> = {
      metadata: { name: "main", namespace: "registry", uid: "1", resourceVersion: "7" },
      status: { conditions: [down], version: "2.0" },
    };
    const path = "/apis/test.inlay.dev/v1/namespaces/registry/counterservers/main";
    const through = await explained({ name: "visits", connection: { name: "main" } }, { [path]: main });
    const { type: _, ...ready } = down;
    assert.deepEqual(through.sources[0]?.store, {
      product: "Counters",
      reads: "counter visits",
      ready,
      version: "2.0",
    });
    const lines = explanationText(through, 0, 200).join("\n");
    assert.match(
      lines,
      /CounterServer registry\/main .*\n +reads counter visits\n +Ready False, Unavailable, Counters 2\.0/,
    );
    assert.match(through.advice.message, /^CounterServer registry\/main is not ready: the server is down/);
    const [node] = graphOfExplanation(through, []).nodes;
    assert.deepEqual(
      [node?.title, node?.lines[0], node?.status],
      ["CounterServer registry/main", "reads counter visits", "Unavailable"],
    );
    const none = await explained({ name: "visits", connection: { name: "main" } }, {});
    assert.equal(none.advice.reason, "ConnectionNotFound");
  });

  it("requeues its bindings when its connection changes", () => {
    const users = new ConnectionUsers();
    users.set(
      "registry/a",
      bindingOf({ sources: [{ name: "visits", counter: { name: "visits", connection: { name: "main" } } }] }),
    );
    assert.deepEqual(users.of("test.inlay.dev|CounterServer|registry|main"), ["registry/a"]);
  });
});
