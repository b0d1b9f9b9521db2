/** Sources from Vault in a rendering: values from a file; paths and grants by the VaultConnections in the files. */
import assert from "node:assert/strict";
import { renderTexts } from "./texts.ts";

const connection = (more = "", name = "vault", namespace = "team") => `
apiVersion: inlay.dev/v1alpha1
kind: VaultConnection
metadata: {name: ${name}, namespace: ${namespace}, labels: {open: "yes"}}
spec:
  address: https://vault.vault.svc:8200/
  auth: {kubernetes: {role: "inlay-{namespace}"}}
  paths: ["kv/{namespace}/*"]
  ${more}
---
`;
const binding = (vault: string, fields: string[], more = "") => `
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: b, namespace: team}
spec:
  ${more}
  sources:
    - {name: s3, vault: {connection: {name: vault}, ${vault}}}
  targets:
    - apiVersion: v1
      kind: ConfigMap
      name: out
      fields:
${fields.map((key) => `        - {path: data.${key}, from: {source: s3, key: ${key}}}`).join("\n")}
---
`;
const DATA = "data: {mount: kv, path: team/s3}";

async function rendered(texts: Record<string, string>, vault?: string) {
  const { bindings, mistakes, notes } = await renderTexts(texts, { showValues: true, ...(vault && { vault }) });
  const fields = bindings.flatMap(({ targets }) => targets.flatMap((target) => target.fields));
  return {
    mistakes,
    notes: [...notes, ...bindings.flatMap((each) => each.notes)],
    grants: bindings.flatMap((each) => each.grants ?? []),
    values: Object.fromEntries(fields.map(({ path, value }) => [path.replace("data.", ""), value])),
    problems: fields.flatMap(({ problem }) => problem ?? []),
  };
}

describe("a source from Vault in a rendering", () => {
  it("has the values of the file, with other values than strings as JSON", async () => {
    const values = `
data:
  kv/team/s3: {text: "a&b", whole: 9007199254740993, truth: true, none: null, list: [1, "x"], nested: {a: {b: 1}}}
`;
    const keys = ["text", "whole", "truth", "none", "list", "nested"];
    const seen = await rendered({ a: connection() + binding(DATA, keys) }, values);
    assert.deepEqual([seen.mistakes, seen.notes, seen.problems], [[], [], []]);
    assert.deepEqual(seen.values, {
      text: "a&b",
      whole: "9007199254740993",
      truth: "true",
      none: "null",
      list: '[1,"x"]',
      nested: '{"a":{"b":1}}',
    });
  });

  it("has metadata, and the health of a given server or the connection's server", async () => {
    const values = `
metadata: {kv/team/s3: {current_version: 3, updated_time: "2026-01-01T00:00:00Z", custom_metadata: {owner: a}}}
health:
  https://vault.vault.svc:8200: {active: true}
  https://vault-0:8200/: {active: false}
`;
    const of = async (vault: string, keys: string[]) =>
      (await rendered({ a: connection() + binding(vault, keys) }, values)).values;
    assert.deepEqual(await of("metadata: {mount: kv, path: team/s3}", ["current_version", "custom_metadata"]), {
      current_version: "3",
      custom_metadata: '{"owner":"a"}',
    });
    assert.deepEqual(await of("health: {}", ["active"]), { active: "true" });
    assert.deepEqual(await of('health: {address: "https://vault-0:8200"}', ["active"]), { active: "false" });
  });

  it("has the version that it names, if the file contains that version", async () => {
    const values = "data: {kv/team/s3: {key: now}, kv/team/s3 version 2: {key: before}}";
    const of = async (version: number) => {
      const vault = `data: {mount: kv, path: team/s3, version: ${version}}`;
      return (await rendered({ a: connection() + binding(vault, ["key"]) }, values)).values;
    };
    assert.deepEqual([await of(2), await of(3)], [{ key: "before" }, { key: "now" }]);
  });

  it("is missing if the file lacks the path, with a note what to add, without a mistake", async () => {
    const texts = { a: connection() + binding(DATA, ["key"]) };
    const line = 'data: {"kv/team/s3": {KEY: VALUE}}';
    for (const [values, where] of [
      [undefined, "a file that you pass with --vault-values"],
      ["data: {kv/team/other: {key: x}}", "vault"],
    ] as const) {
      const { problems, mistakes, notes } = await rendered(texts, values);
      assert.deepEqual(mistakes, []);
      assert.deepEqual(
        problems.map(({ reason }) => reason),
        ["SourceNotFound"],
      );
      assert.equal(notes.length, 1);
      for (const fact of ["data kv/team/s3", where, line]) assert.ok(notes[0]?.includes(fact), notes[0]);
    }
    const noKey = await rendered(texts, "data: {kv/team/s3: {other: x}}");
    assert.deepEqual(
      noKey.problems.map(({ reason }) => reason),
      ["KeyNotFound"],
    );
  });

  it("is shown without its VaultConnection, with a note, except the health of an unknown address", async () => {
    const seen = await rendered({ a: binding(DATA, ["key"]) }, "data: {kv/team/s3: {key: x}}");
    assert.deepEqual(seen.values, { key: "x" });
    assert.equal(seen.notes.length, 1);
    assert.match(seen.notes[0] ?? "", /^VaultConnection team\/vault is not in the files/);
    const { problems, notes } = await rendered({ a: binding("health: {}", ["active"]) });
    assert.deepEqual(
      problems.map(({ reason }) => reason),
      ["SourceNotFound"],
    );
    assert.match(notes[1] ?? "", /address of VaultConnection team\/vault/);
  });

  it("is one mistake at the source outside of the connection's paths", async () => {
    const values = "data: {kv/other/s3: {a: x, b: y}}";
    const text = connection() + binding("data: {mount: kv, path: other/s3}", ["a", "b"]);
    const { mistakes, problems } = await rendered({ a: text }, values);
    const line = text.split("\n").findIndex((each) => each.includes("{name: s3, vault")) + 1;
    const rule = "VaultConnection team/vault allows kv/team/*, but not kv/other/s3";
    assert.deepEqual(
      mistakes.map((each) => [each.file, each.line, each.message.split(";")[0]]),
      [["a", line, `spec.sources[0]: ${rule}`]],
    );
    assert.deepEqual(
      problems.map(({ reason }) => reason),
      ["ForbiddenPath", "ForbiddenPath"],
    );
    const health =
      "\napiVersion: inlay.dev/v1alpha1\nkind: VaultConnection\nmetadata: {name: vault, namespace: team}\nspec: {address: https://v:8200}\n---\n";
    const refused = await rendered({ a: health + binding(DATA, ["a"]) }, "data: {kv/team/s3: {a: x}}");
    assert.match(refused.mistakes[0]?.message ?? "", /has no paths/);
  });

  it("needs a grant for a connection in another namespace, which may select the connection by labels", async () => {
    const other = binding(DATA, ["a"]).replace("{name: vault}", "{name: vault, namespace: shared}");
    const grant = (labels: string) => `
apiVersion: inlay.dev/v1alpha1
kind: SecretGrant
metadata: {name: g, namespace: shared}
spec: {from: [{namespace: team}], to: [{kind: VaultConnection, selector: {matchLabels: ${labels}}}]}
---
`;
    const of = (more: string) =>
      rendered({ a: connection("", "vault", "shared") + other + more }, "data: {kv/team/s3: {a: x}}");
    const without = await of("");
    assert.deepEqual(without.values, { a: "x" });
    assert.match(without.grants[0]?.message ?? "", /ServiceAccount team\/inlay to use VaultConnection shared\/vault; /);
    assert.match(without.grants[0]?.command ?? "", /"kind":"VaultConnection"/);
    assert.deepEqual((await of(grant('{open: "yes"}'))).values, { a: "x" });
    const refused = await of(grant('{open: "no"}'));
    assert.deepEqual(
      refused.problems.map(({ reason }) => reason),
      ["NotGranted"],
    );
  });

  it("counts its custom_metadata for requireSame", async () => {
    const of = async (revision: string) => {
      const values = `{data: {kv/team/s3: {a: x}}, metadata: {kv/team/s3: {custom_metadata: ${revision}}}}`;
      const texts = { a: connection() + binding(DATA, ["a"], "requireSame: revision") };
      const { bindings } = await renderTexts(texts, { vault: values });
      return bindings[0]?.targets[0]?.problem?.reason;
    };
    assert.equal(await of("{revision: 7}"), undefined);
    assert.equal(await of("{}"), "SourceAnnotationMismatch");
  });

  it("of a composition is limited to the claim's namespace, and needs a grant if the claim names the connection", async () => {
    const composition = (patch: string) => `
apiVersion: inlay.dev/v1alpha1
kind: BindingComposition
metadata: {name: shops}
spec:
  for: {apiVersion: example.com/v1, kind: Shop, namespaceSelector: {names: [team-a]}}
  bindings:
    - name: db
      base:
        metadata: {namespace: central}
        spec:
          sources: [{name: db, vault: {connection: {name: vault}, data: {mount: kv, path: x}}}]
          targets: [{apiVersion: v1, kind: ConfigMap, name: out, fields: [{path: data.a, from: {source: db, key: a}}]}]
      patches:
        - {fromFieldPath: spec.path, toFieldPath: "spec.sources[0].vault.data.path"}
        ${patch}
---
`;
    const shop = (path: string) =>
      `apiVersion: example.com/v1\nkind: Shop\nmetadata: {name: shop, namespace: team-a}\nspec: {path: ${path}, name: vault}\n---\n`;
    const values = "data: {kv/team-a/db: {a: x}, kv/central/db: {a: y}}";
    const of = (path: string, patch = "") =>
      rendered({ a: composition(patch) + shop(path) + connection("", "vault", "central") }, values);
    assert.deepEqual((await of("team-a/db")).values, { a: "x" });
    const outside = await of("central/db");
    assert.deepEqual(outside.values, { a: undefined });
    assert.match(outside.mistakes[0]?.message ?? "", /allows kv\/team-a\/\*, but not kv\/central\/db/);
    const named = await of(
      "team-a/db",
      "- {fromFieldPath: spec.name, toFieldPath: 'spec.sources[0].vault.connection.name'}",
    );
    assert.match(named.grants[0]?.message ?? "", /BindingComposition shops to use VaultConnection central\/vault/);
  });
});

describe("the file of Vault's values", () => {
  it("is checked, and each mistake is reported by line, without values", async () => {
    const values = `data:
  kv/team/s3: hush #!
  kv: {a: hush} #!
  kv/../s3: {a: hush} #!
  kv/team/*: {a: hush} #!
dta: {kv/team/s3: {a: hush}} #!
metadata: [hush] #!
health:
  vault-0: {active: true} #!
  https://vault-0:8200: {active: true}
  https://vault-0:8200/: {active: true} #!
`;
    const { mistakes } = await rendered({ a: connection() + binding(DATA, ["a"]) }, values);
    assert.deepEqual(
      mistakes.map(({ file, line }) => [file, line]),
      values.split("\n").flatMap((line, at) => (line.includes("#!") ? [["vault", at + 1]] : [])),
    );
    assert.ok(!JSON.stringify(mistakes).includes("hush"));
    const [first, ...others] = mistakes.map(({ message }) => message);
    assert.match(first ?? "", /^data\["kv\/team\/s3"\]: .*\{KEY: VALUE\}$/);
    assert.match(others[3] ?? "", /^dta: .*data/);
    assert.match(others.at(-1) ?? "", /^health\["https:\/\/vault-0:8200\/"\]: .*vault:10/);
  });

  it("is one mistake if it is not YAML or not a mapping", async () => {
    for (const values of ["data: {", "hush", "data: {kv/team/s3: {a: hush}}\ndata: {}"]) {
      const { mistakes } = await rendered({ a: connection() + binding(DATA, ["a"]) }, values);
      assert.equal(mistakes.length, 1);
      assert.ok(!JSON.stringify(mistakes).includes("hush"));
    }
  });
});

describe("a VaultConnection in files", () => {
  it("is checked by its schema", async () => {
    const text = `
apiVersion: inlay.dev/v1alpha1
kind: VaultConnection
metadata: {name: vault}
spec:
  address: vault:8200 #!
  auth: #!
    appRole: {roleID: a, secretID: {secret: {name: a, key: b}}}
    token: {secret: {name: a, key: b}}
  paths: [kv//a] #!
  timout: 5s #!
---
${binding(DATA, ["a"])}`;
    const { mistakes } = await rendered({ a: text });
    assert.deepEqual(
      mistakes.map(({ line }) => line).toSorted((a, b) => a - b),
      text.split("\n").flatMap((line, at) => (line.includes("#!") ? [at + 1] : [])),
    );
  });
});
