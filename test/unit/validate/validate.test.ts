/** `inlay validate` finds the mistakes that the controller or the API server would report, at the place of the value. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { readFiles } from "../../../src/render/files.ts";
import { isFailed } from "../../../src/validate/findings.ts";
import { validate } from "../../../src/validate/validate.ts";
import { found, validateTexts } from "./texts.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const main = join(root, "src", "main.ts");

const CRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Shop, plural: shops}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                storage: {type: string}
                port: {type: integer}
                tls: {type: object, properties: {secret: {type: string}}}
`;

const binding = (name: string, source: string, target: string, field: string): string => `apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: ${name}}
spec:
  sources:
    - secret: {name: ${source}}
  targets:
    - ${target}
      fields:
        - path: ${field}
          from: {source: ${source}, key: a}
`;
/** Copies a key of one Secret into a key of another. */
const copy = (name: string, from: string, to: string, key = "data.a"): string =>
  binding(name, from, `apiVersion: v1\n      kind: Secret\n      name: ${to}`, key);
const shop = (field: string) =>
  binding("b", "bucket", "apiVersion: example.com/v1\n      kind: Shop\n      name: shop", field);

describe("inlay validate", () => {
  it("accepts everything in samples, compositions and the examples of the CRDs", async () => {
    for (const folder of ["samples", "compositions", "apis/examples"]) {
      const { files } = readFiles([join(root, folder)]);
      const validation = await validate({ files, crds: [], namespace: "default" });
      assert.ok(validation.checked.objects > 3);
      assert.deepEqual(
        validation.errors.filter(({ severity }) => severity === "error"),
        [],
      );
    }
  });

  it("checks paths and types without any value, and suggests the name that was meant", async () => {
    const crds = { "crd.yaml": CRD };
    assert.deepEqual(await found(shop("spec.storage"), crds), []);
    assert.deepEqual(await found(shop("spec.port"), crds), []);
    assert.deepEqual(await found(shop("spec.storge"), crds), ["12:17 error UnknownField"]);
    assert.deepEqual(await found(shop("spec.tls"), crds), ["12:17 error TypeMismatch"]);
    assert.deepEqual(await found(`${CRD}---\n${shop("spec.storage.deep")}`), ["34:17 error TypeMismatch"]);
    const { errors } = await validateTexts({ "a.yaml": shop("spec.storge") }, crds);
    assert.match(errors[0]?.message ?? "", /Did you mean spec\.storage\?/);
  });

  it("notes the kinds whose schema is unknown", async () => {
    const { errors, notes } = await validateTexts({ "a.yaml": shop("spec.storge") });
    assert.deepEqual(errors, []);
    assert.match(notes.join(), /Shop \(example\.com\/v1\).*--crds/);
  });

  it("finds a binding that writes its own source, and bindings that feed each other", async () => {
    assert.deepEqual(await found(copy("one", "s", "s")), ["12:17 error Contended"]);
    assert.deepEqual(await found(copy("one", "s", "s", "data.b")), []);
    const chain = [copy("one", "s", "t"), copy("two", "t", "u"), copy("three", "u", "s")].join("---\n");
    assert.deepEqual(await found(chain), ["12:17 error Contended"]);
    const { errors } = await validateTexts({ "a.yaml": chain });
    assert.match(
      errors[0]?.message ?? "",
      /default\/three and SecretBinding default\/two|default\/two and SecretBinding default\/three/,
    );
    assert.deepEqual(await found([copy("one", "s", "t"), copy("two", "t", "u")].join("---\n")), []);
  });

  it("finds a composition whose binding writes the field of the claim that its value comes from", async () => {
    const composition = (path: string) => `${CRD}---
apiVersion: example.com/v1
kind: Shop
metadata: {name: shop}
spec: {storage: a}
---
apiVersion: inlay.dev/v1alpha1
kind: BindingComposition
metadata: {name: shops}
spec:
  for: {apiVersion: example.com/v1, kind: Shop}
  bindings:
    - name: own
      base:
        spec:
          sources:
            - {name: s, secret: {name: any}}
          targets:
            - apiVersion: example.com/v1
              kind: Shop
              fields:
                - path: ${path}
                  from: {source: s, key: a}
      patches:
        - {fromFieldPath: metadata.name, toFieldPath: "spec.targets[0].name"}
        - {fromFieldPath: spec.storage, toFieldPath: "spec.sources[0].secret.name"}
`;
    assert.deepEqual(await found(composition("spec.storage")), ["43:25 error Contended"]);
    assert.deepEqual(await found(composition("spec.tls.secret")), []);
  });

  it("warns of selectors without objects, and of connections that do not exist", async () => {
    const text = `apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: b}
spec:
  sources:
    - name: v
      vault: {connection: {name: vault}, data: {mount: kv, path: a}}
  targets:
    - apiVersion: example.com/v1
      kind: Shop
      selector: {matchLabels: {a: b}}
      fields: [{path: spec.storage, from: {source: v, key: a}}]
`;
    assert.deepEqual(await found(text), ["7:15 warning ConnectionNotFound", "11:7 warning TargetNotFound"]);
    const validation = await validateTexts({ "a.yaml": text });
    assert.deepEqual([isFailed(validation, false), isFailed(validation, true)], [false, true]);
  });

  it("warns of a Secret that kustomize has renamed, and not of one whose name only resembles the source", async () => {
    const secret = (name: string) => `---\napiVersion: v1\nkind: Secret\nmetadata: {name: ${name}}\n`;
    const of = (name: string) => found(shop("spec.storage") + secret(name), { "crd.yaml": CRD });
    assert.deepEqual(await of("bucket-7k2h5g9f2t"), ["6:22 warning SourceNotFound"]);
    for (const name of ["bucket", "bucket-old", "old-bucket", "b-bucket-b", "bucket-7k2h5g9f2"])
      assert.deepEqual(await of(name), [], name);
    // The same suffix is no proof, unless all objects have it.
    const target = "apiVersion: example.com/v1\n      kind: Shop\n      name: shop";
    const suffixed = (others: string) =>
      found(binding("b-keys", "bucket", target, "spec.storage") + secret("bucket-keys") + others, { "crd.yaml": CRD });
    assert.deepEqual(await suffixed(""), ["6:22 warning SourceNotFound"]);
    assert.deepEqual(await suffixed(secret("other")), []);
  });

  it("warns of a backslash before an expression, at its template, and without the Secret", async () => {
    const text = shop("spec.storage").replace("from: {source: bucket, key: a}", "template: 'CORP\\{{bucket.user}}'");
    assert.deepEqual(await found(text, { "crd.yaml": CRD }), ["13:21 warning InvalidTemplate"]);
    assert.deepEqual(await found(text.replace("CORP\\{{", "CORP\\\\{{"), { "crd.yaml": CRD }), []);
  });

  it("ignores objects of other kinds, also broken ones, and files of folders without objects", async () => {
    const others = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: '!'}\n---\n- a\n---\nvalues: 1\n";
    assert.deepEqual(await found(others), []);
    assert.deepEqual(await found("kind: SecretBinding\nmetadata: {name: a}\n"), ["1:1 error Invalid"]);
  });

  it("uses the rules of a configuration, as render and rbac do", async () => {
    const folder = await mkdtemp(join(tmpdir(), "inlay-validate-"));
    try {
      const [file, crd, config, lax] = ["binding", "crd", "config", "lax"].map((name) =>
        join(folder, `${name}.yaml`),
      ) as [string, string, string, string];
      const kind = "apiVersion: config.inlay.dev/v1alpha1\nkind: ControllerConfiguration\n";
      await writeFile(file, shop("spec.storage"));
      await writeFile(crd, CRD);
      await writeFile(lax, kind);
      for (const [rule, reason] of [
        ["targets: {deny: [{kinds: [Shop], message: ask us}]}", "ForbiddenKind"],
        ["requireAcknowledgement: [ReadableCopies]", "NotAcknowledged"],
      ]) {
        await writeFile(config, `${kind}${rule}\n`);
        for (const command of ["validate", "render", "rbac"]) {
          // Acknowledgements need no permission.
          if (command === "rbac" && reason === "NotAcknowledged") continue;
          const files = command === "render" ? ["-f", crd] : ["--crds", crd];
          const run = (name: string) =>
            promisify(execFile)(process.execPath, [main, command, "-f", file, ...files, "--config", name]).then(
              ({ stdout }) => ({ code: 0, says: stdout }),
              ({ code, stdout, stderr }) => ({ code: Number(code), says: `${stdout}${stderr}` }),
            );
          const [denied, allowed] = await Promise.all([run(config), run(lax)]);
          assert.deepEqual([denied.code, allowed.code], [1, 0], `${command}: ${denied.says}${allowed.says}`);
          assert.match(denied.says, reason === "ForbiddenKind" ? /targets\.deny\[0\]\); ask us/ : /requires this ack/);
        }
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("prints places that editors know, and exits with 1 for errors", async () => {
    const run = (...args: string[]) =>
      promisify(execFile)(process.execPath, [main, "validate", ...args]).then(
        ({ stdout }) => ({ stdout, code: 0 }),
        ({ stdout, code }) => ({ stdout: String(stdout), code: Number(code) }),
      );
    const fine = await run("-f", join(root, "samples", "harbor"));
    assert.deepEqual([fine.code, fine.stdout.includes("0 errors, 0 warnings")], [0, true]);
    const missing = await run("-f", join(root, "none"), "-o", "json");
    const { errors } = JSON.parse(missing.stdout);
    assert.deepEqual(
      [missing.code, errors[0].line, errors[0].column, errors[0].severity, errors[0].reason],
      [1, 1, 1, "error", "InvalidFile"],
    );
  });
});
