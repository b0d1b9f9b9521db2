/** Shows that the schema of SecretBinding sets its defaults, and refuses invalid bindings with messages that name the mistake. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { parseSources } from "../../src/sources/registry.ts";
import { checkFields } from "../../src/transform/plan.ts";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const field = { path: "spec.storage.spec.s3.accesskey", from: { source: "bucket", key: "accessKeyID" } };
const target = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", name: "harbor", fields: [field] };
const bucket = { secret: { name: "bucket" } };
const place = { mount: "kv", path: "registry/s3" };
/** A valid source from Vault, with changes to `vault`. */
const fromVault = (changes: object = { data: place }) => ({
  name: "s3",
  vault: { connection: { name: "vault" }, ...changes },
});
const service = { object: { apiVersion: "v1", resource: "services", name: "minio" } };

/** A valid binding, with changes to its spec. */
const binding = (changes: object = {}) => ({
  apiVersion: "inlay.dev/v1alpha1",
  kind: "SecretBinding",
  metadata: { name: "harbor-s3" },
  spec: { sources: [bucket], targets: [target], ...changes },
});
const withField = (changed: object) => binding({ targets: [{ ...target, fields: [changed] }] });
const withObject = (changes: object) => binding({ sources: [bucket, { object: { ...service.object, ...changes } }] });

let team: TestNamespace;
const bindings = () => `${team.path("inlay.dev/v1alpha1", "secretbindings")}?fieldValidation=Strict`;
const accepted = (object: object): Promise<AnyObject> => team.api.dryRun.create(bindings(), object);
const refused = (object: object, saying: RegExp) => assert.rejects(accepted(object), saying);

describe("the schema of SecretBinding", () => {
  before(async () => {
    team = await createNamespace({ account: false, rules: [], controller: false });
  });

  it("sets the defaults of the account, of onConflict and onRelease of a target, and of onMissing of a source", async () => {
    const { spec } = await accepted(binding());
    assert.equal(spec.serviceAccountName, "inlay");
    assert.deepEqual(spec.defaults, { onConflict: "Fail", mode: "Continuous", onMissing: "Wait" });
  });

  it("sets one of two defaults when the other is given", async () => {
    const { spec } = await accepted(binding({ defaults: { onRelease: "Remove" } }));
    assert.deepEqual(spec.defaults, { onConflict: "Fail", mode: "Continuous", onMissing: "Wait", onRelease: "Remove" });
  });

  it("accepts a target without fields if it has create, with its manifest unchanged", async () => {
    const manifest = { metadata: { labels: { a: "b" } }, data: { host: "x", "a.b/c": [{ any: { thing: 1 } }] } };
    const made = { apiVersion: "v1", kind: "ConfigMap", name: "place", create: { manifest } };
    const { spec } = await accepted(binding({ targets: [made] }));
    assert.deepEqual(spec.targets, [made]);
    const { create: _, ...ordinary } = made;
    await refused(binding({ targets: [ordinary] }), /fields is empty.*create/);
  });

  it("refuses a manifest with fields that the target sets", async () => {
    const withManifest = (manifest: object) => binding({ targets: [{ ...target, create: { manifest } }] });
    for (const manifest of [{ apiVersion: "v1" }, { kind: "Secret" }, { status: {} }]) {
      await refused(withManifest(manifest), /manifest may not have apiVersion, kind or status/);
    }
    for (const metadata of [{ name: "x" }, { namespace: "x" }]) {
      await refused(withManifest({ metadata }), /metadata of a manifest may not have name or namespace/);
    }
    await refused(binding({ targets: [{ ...target, create: {} }] }), /manifest: Required value/);
  });

  it("ignores the status of a new binding, and shows that no generation was observed", async () => {
    const { status } = await accepted({ ...binding(), status: { synced: "1/1" } });
    assert.deepEqual(status, { observedGeneration: -1 });
  });

  it("lists bindings by their short name and by Inlay's category, with their state", async () => {
    await team.api.create(bindings(), { ...binding(), metadata: { name: "listed" } });
    for (const name of ["sb", "inlay"]) {
      const { stdout } = await controlPlane().kubectl("get", name, `--namespace=${team.namespace}`);
      assert.match(stdout, /^NAME +READY +SYNCED +REASON +ROLLOUT +AGE\s+(secretbinding.inlay.dev\/)?listed /);
    }
  });

  it("names the place of a wrong choice, and reports nothing without a place", async () => {
    const { name: _, ...unnamed } = target;
    const wrong = {
      "spec.sources[0]": binding({ sources: [{ name: "bucket" }] }),
      "spec.sources[1].vault": binding({ sources: [bucket, fromVault({})] }),
      "spec.targets[0]": binding({ targets: [unnamed] }),
      "spec.targets[0].fields[0]": withField({ path: "spec.x" }),
      "spec.rollout.targets[0]": binding({ rollout: { targets: [{ kind: "Deployment" }] } }),
    };
    for (const [place, object] of Object.entries(wrong))
      await assert.rejects(accepted(object), ({ message }: Error) => {
        assert.ok(message.includes(`${place}: `), message);
        assert.doesNotMatch(message, /<nil>/);
        return true;
      });
  });

  describe("refuses among sources", () => {
    const sources = (...sources: object[]) => binding({ sources });

    it("one of no kind", () =>
      refused(sources({ name: "bucket" }), /sources\[0\]: .*exactly one of secret, configMap/));

    it("one of two kinds", () =>
      refused(
        sources({ ...bucket, configMap: { name: "bucket" } }),
        /exactly one of secret, configMap, object, vault and providerClass/,
      ));

    it("two of one name in two namespaces, unless one of them has another name", async () => {
      const theirs = { secret: { name: "bucket", namespace: "storage" } };
      await refused(sources(bucket, theirs), /two sources have the same name/);
      await accepted(sources(bucket, { name: "theirs", ...theirs }));
    });

    it("two of the same name, set or by default", async () => {
      await refused(sources(bucket, { providerClass: { name: "bucket" } }), /two sources have the same name/);
      await refused(sources(bucket, { configMap: { name: "bucket" } }), /two sources have the same name/);
      await refused(
        sources(bucket, { name: "bucket", configMap: { name: "other" } }),
        /two sources have the same name/,
      );
      await accepted(sources(bucket, { name: "other", configMap: { name: "bucket" } }));
    });

    it("a seventeenth one", () =>
      refused(
        sources(...Array.from({ length: 17 }, (_, i) => ({ secret: { name: `bucket${i}` } }))),
        /Too many: 17: must have at most 16 items/,
      ));

    it("an object that is a Secret or a ConfigMap, whatever the version", async () => {
      for (const resource of ["secrets", "configmaps"]) {
        for (const apiVersion of ["v1", "v2"]) {
          await refused(withObject({ apiVersion, resource }), /object may not be a Secret or ConfigMap/);
        }
      }
    });

    const spellings: Record<string, object> = {
      "an empty group": { apiVersion: "/v1" },
      "a group with a path": { apiVersion: "a/b/v1" },
      "a version with a line break": { apiVersion: "v1\n" },
      "a kind instead of a resource": { resource: "Service" },
      "a subresource": { resource: "services/status" },
      "a name with a relative path": { name: ".." },
      "a name with a slash": { name: "minio/status" },
      "a name with an escape": { name: "minio%2fstatus" },
    };
    for (const [name, changes] of Object.entries(spellings)) {
      it(`an object with ${name}`, () => refused(withObject(changes), /sources\[1\]\.object\.\w+: .*this is not /));
    }
  });

  describe("of a source from Vault", () => {
    const withVault = (changes?: object) => binding({ sources: [bucket, fromVault(changes)] });
    const parts: Record<string, object> = {
      data: { data: place },
      metadata: { metadata: place },
      "the health of the server": { health: {} },
      "the health of one server": { health: { address: "https://10.0.0.1:8200" } },
      "a version of data": { data: { ...place, version: 3 } },
      "data of KV version 1": { data: { ...place, kv: 1 } },
      "a mount and a path with more than one part, and unusual letters": {
        data: { mount: "team-a/kv", path: "a b/c%2e/ü+/..x" },
      },
      "a connection of another namespace, read often": {
        connection: { name: "vault", namespace: "vault", granted: true },
        data: place,
        refresh: "1s",
      },
    };
    for (const [what, changes] of Object.entries(parts)) {
      it(`accepts ${what}`, () => accepted(withVault(changes)));
    }

    it("allows fields to use keys and pointers as with a Secret, or all data", async () => {
      const withFrom = (from: object) =>
        binding({ sources: [fromVault()], targets: [{ ...target, fields: [{ ...field, from }] }] });
      await accepted(withFrom({ source: "s3", key: "accessKeyID" }));
      await accepted(withFrom({ source: "s3", key: "accessKeyID", pointer: "/a" }));
      await accepted(withFrom({ source: "s3", include: ["^a"] }));
      await refused(withFrom({ source: "s3", fieldPath: "a" }), /for a source with object, set fieldPath/);
    });

    const once = /may not contain ., .. or \+ between/;
    const wrong: Record<string, [changes: object, saying: RegExp]> = {
      "nothing to read": [{}, /sources\[1\].vault: .*exactly one of data/],
      "two things to read": [{ data: place, metadata: place }, /exactly one of data, metadata and health/],
      "no connection": [{ connection: undefined, data: place }, /connection: Required value/],
      "a connection without a name": [{ connection: {}, data: place }, /connection.name: Required value/],
      "a connection whose name is a relative path": [
        { connection: { name: ".." }, data: place },
        /connection.name: .*not the name of an object/,
      ],
      "no mount": [{ data: { path: "s3" } }, /data.mount: Required value/],
      "no path": [{ metadata: { mount: "kv" } }, /metadata.path: Required value/],
      "an empty path": [{ data: { ...place, path: "" } }, /should be at least 1 chars long/],
      "a version of KV version 1": [{ data: { ...place, kv: 1, version: 3 } }, /version needs kv: 2/],
      "the version 0": [{ data: { ...place, version: 0 } }, /should be greater than or equal to 1/],
      "KV version 3": [{ data: { ...place, kv: 3 } }, /supported values: "1", "2"/],
      "a refresh of half a second": [{ data: place, refresh: "500ms" }, /refresh is not a duration/],
      "a refresh of two days": [{ data: place, refresh: "48h" }, /refresh is not a duration/],
      "a refresh that is no duration": [{ data: place, refresh: "often" }, /refresh is not a duration/],
      "a negative refresh": [{ data: place, refresh: "-1m" }, /refresh is not a duration/],
      "health at an address with a path": [
        { health: { address: "https://vault:8200/v1" } },
        /address: .*not the URL of a server/,
      ],
      "a version of metadata": [{ metadata: { ...place, version: 1 } }, /unknown field/],
    };
    const bad: Record<string, RegExp> = {
      "team/../other": once,
      "..": once,
      "team/./s3": once,
      "team/+/s3": once,
      "team//s3": /not a path in Vault/,
      "/team/s3": /not a path in Vault/,
      "team/s3/": /not a path in Vault/,
      "team/*": /not a path in Vault/,
      "team/s?": /not a path in Vault/,
      "{namespace}/s3": /not a path in Vault/,
      "team/s3\n": /not a path in Vault/,
    };
    for (const [text, saying] of Object.entries(bad)) {
      wrong[`the path ${JSON.stringify(text)}`] = [{ data: { ...place, path: text } }, saying];
      wrong[`the path ${JSON.stringify(text)} of metadata`] = [{ metadata: { ...place, path: text } }, saying];
      wrong[`the mount ${JSON.stringify(text)}`] = [{ data: { ...place, mount: text } }, saying];
    }
    for (const [what, [changes, saying]] of Object.entries(wrong)) {
      it(`refuses ${what}`, () => refused(withVault(changes), saying));
    }

    it("refuses one without a name, one with protect, and one that is also a Secret", async () => {
      const { name: _, ...unnamed } = fromVault();
      await refused(binding({ sources: [unnamed], targets: [target] }), /source with vault needs a name/);
      await refused(binding({ sources: [bucket, { ...fromVault(), protect: {} }] }), /protect/);
      await refused(
        binding({ sources: [{ ...fromVault(), ...bucket }] }),
        /exactly one of secret, configMap, object, vault and providerClass/,
      );
    });
  });

  describe("refuses among targets", () => {
    it("one that is listed twice, also in two versions", async () => {
      const said = /two targets name the same object/;
      await refused(binding({ targets: [target, target] }), said);
      await refused(binding({ targets: [target, { ...target, apiVersion: "goharbor.io/v1alpha3" }] }), said);
      const elsewhere = { ...target, namespace: "elsewhere" };
      await refused(binding({ targets: [elsewhere, target, elsewhere] }), said);
    });

    it("no two of one name that differ in kind, group or namespace", () =>
      accepted(
        binding({
          targets: [
            target,
            { ...target, kind: "Harbor" },
            { ...target, apiVersion: "example.com/v1beta1" },
            { ...target, apiVersion: "v1beta1" },
            { ...target, namespace: "elsewhere" },
            { ...target, namespaceSelector: { names: ["elsewhere"] } },
            { ...target, namespaceSelector: { names: ["elsewhere"] } },
          ],
        }),
      ));

    it("one that is listed twice among the maximum number of targets", async () => {
      const alike = Array.from({ length: 64 }, (_, n) => ({ ...target, namespace: `team-${n}` }));
      await accepted(binding({ targets: alike }));
      await refused(binding({ targets: [...alike.slice(1), alike[1]] }), /two targets name the same object/);
    });

    it("no valid kind, also in small letters, but an invalid kind", async () => {
      await accepted(binding({ targets: [{ ...target, apiVersion: "acid.zalan.do/v1", kind: "postgresql" }] }));
      for (const kind of ["postgresqls/status", "Harbor Cluster", "-Harbor", "Harbor-", ""]) {
        await refused(binding({ targets: [{ ...target, kind }] }), /targets\[0\].kind: .*is not a kind/);
      }
    });

    it("one with both name and selector, or neither, and one with both namespace and namespaceSelector", async () => {
      const selector = { matchLabels: { a: "b" } };
      const { name: _, ...unnamed } = target;
      const withTarget = (more: object) => binding({ targets: [{ ...unnamed, ...more }] });
      await refused(withTarget({ name: "harbor", selector }), /exactly one of name and selector/);
      await refused(withTarget({}), /targets\[0\]: .*exactly one of name and selector/);
      const both = { selector, namespace: "a", namespaceSelector: { names: ["b"] } };
      await refused(withTarget(both), /both namespace and namespaceSelector/);
      await accepted(withTarget({ selector, namespaceSelector: { names: ["team-*", "x?"] } }));
      await accepted(withTarget({ name: "harbor", namespaceSelector: { matchLabels: { a: "" } } }));
    });

    it("an empty selector, and invalid labels and expressions", async () => {
      const { name: _, ...unnamed } = target;
      const withSelector = (selector: object) => binding({ targets: [{ ...unnamed, selector }] });
      await refused(withSelector({}), /should have at least 1 properties/);
      await refused(withSelector({ matchLabels: { "a/b/c": "x" } }), /a key of matchLabels/);
      await refused(withSelector({ matchLabels: { a: "b c" } }), /not a label value/);
      const expressions = (more: object) => withSelector({ matchExpressions: [{ key: "a", ...more }] });
      await refused(expressions({ operator: "In" }), /In and NotIn need values/);
      await refused(expressions({ operator: "Exists", values: ["x"] }), /Exists and DoesNotExist must not have values/);
      await refused(expressions({ operator: "Gt", values: ["1"] }), /Unsupported value/);
      await accepted(expressions({ operator: "NotIn", values: ["x", ""] }));
    });

    it("no name twice where the namespaces are selected", () => {
      const selected = (name: string) => ({ ...target, namespaceSelector: { names: [name] } });
      return accepted(binding({ targets: [target, selected("a"), selected("b")] }));
    });

    it("one whose name contains a path", () =>
      refused(binding({ targets: [{ ...target, name: ".." }] }), /targets\[0\].name: .*not the name of an object/));

    it("a policy that does not exist, with the valid ones in the message", () =>
      refused(binding({ targets: [{ ...target, onConflict: "force" }] }), /supported values: "Fail", "Force"/));

    it("a path that is listed twice", () =>
      refused(binding({ targets: [{ ...target, fields: [field, field] }] }), /Duplicate value/));
  });

  describe("refuses among fields", () => {
    it("one with both from and template, and one with neither", async () => {
      await refused(withField({ ...field, template: "x" }), /exactly one of from and template/);
      await refused(withField({ path: "spec.x" }), /fields\[0\]: .*exactly one of from and template/);
    });

    it("one from both key and fieldPath, but not one from all data of a Secret", async () => {
      const from = { source: "bucket" };
      await refused(withField({ ...field, from: { ...from, key: "a", fieldPath: "b" } }), /both key and fieldPath/);
      await accepted(withField({ ...field, from }));
    });

    it("one with include or exclude beside a key or a path, empty, or with too many or too long expressions", async () => {
      const with_ = (from: object) => withField({ ...field, from: { source: "bucket", ...from } });
      const most = { include: Array(16).fill("x".repeat(256)), exclude: Array(16).fill("(") };
      await accepted(with_(most));
      const said = /include and exclude .* key or fieldPath/;
      await refused(with_({ key: "a", include: ["a"] }), said);
      await refused(with_({ key: "a", exclude: ["a"] }), said);
      const fromService = (from: object) =>
        binding({ sources: [service], targets: [{ ...target, fields: [{ ...field, from }] }] });
      await refused(fromService({ source: "minio", fieldPath: "spec", include: ["a"] }), said);
      await refused(fromService({ source: "minio", include: ["a"] }), /for a source with object, set fieldPath/);
      await refused(with_({ pointer: "/a", include: ["a"] }), /pointer needs key/);
      for (const list of ["include", "exclude"]) {
        await refused(with_({ [list]: [] }), /should have at least 1 items/);
        await refused(with_({ [list]: [""] }), /should be at least 1 chars long/);
        await refused(with_({ [list]: ["x".repeat(257)] }), /may not be more than 256/);
        await refused(with_({ [list]: Array(17).fill("x") }), /must have at most 16 items/);
      }
    });

    it("one with a pointer into an object, or with an invalid pointer", async () => {
      const from = { source: "bucket", key: "BucketInfo" };
      for (const pointer of ["", "/spec/a~1b", "/"])
        await accepted(withField({ ...field, from: { ...from, pointer } }));
      for (const pointer of ["spec", "/a~2"]) {
        await refused(withField({ ...field, from: { ...from, pointer } }), /pointer: .*not a JSON pointer/);
      }
      const into = { source: "minio", fieldPath: "spec", pointer: "/a" };
      const fields = [{ ...field, from: into }];
      const said = /pointer needs key/;
      await refused(binding({ sources: [service], targets: [{ ...target, fields }] }), said);
      await refused(withField({ ...field, from: { source: "bucket", pointer: "/a" } }), said);
    });

    it("one with an unknown type in as", () =>
      refused(withField({ ...field, as: "float" }), /Unsupported value: "float"/));

    it("one from a source that is not listed", () =>
      refused(withField({ ...field, from: { source: "bukket", key: "a" } }), /from.source is not in spec.sources/));

    it("one from a source by its object's name where the source has another name", async () => {
      const named = { name: "keys", secret: { name: "bucket" } };
      await refused(binding({ sources: [named] }), /from.source is not in spec.sources/);
      const fields = [{ ...field, from: { source: "keys", key: "a" } }];
      await accepted(binding({ sources: [named], targets: [{ ...target, fields }] }));
    });

    it("one from a fieldPath of a Secret, and one from a key of an object", async () => {
      const said = /for a source with object, set fieldPath/;
      await refused(withField({ ...field, from: { source: "bucket", fieldPath: "data.a" } }), said);
      const fromService = (from: object) =>
        binding({ sources: [service], targets: [{ ...target, fields: [{ ...field, from }] }] });
      await refused(fromService({ source: "minio", key: "a" }), said);
      await refused(fromService({ source: "minio" }), said);
      await accepted(fromService({ source: "minio", fieldPath: "spec.clusterIP" }));
    });
  });

  it("accepts the example of every field, and the controller accepts its paths and templates", async () => {
    const example = parse(await readFile("apis/examples/secretbinding.yaml", "utf8"));
    const { spec } = await accepted({ ...example, metadata: { ...example.metadata, namespace: team.namespace } });
    const names = parseSources({ ...example, spec }).map(({ name }) => name);
    for (const { fields } of spec.targets) checkFields(fields, names);
  });

  it("accepts the largest binding within the API server's cost limits of rules", async () => {
    const long = (length: number, end = "") => "x".repeat(length - end.length) + end;
    const sources = Array.from({ length: 16 }, (_, i) => ({
      secret: { name: long(253, `-${i}`), namespace: long(63) },
    }));
    const from = { source: long(253, "-15"), key: "accessKeyID" };
    const fields = Array.from({ length: 64 }, (_, i) => ({ path: `spec.f${i}`, from }));
    const targets = Array.from({ length: 64 }, (_, i) => ({
      apiVersion: long(317, "/v1"),
      kind: `K${long(62)}`,
      namespace: long(63),
      name: long(253, `-${i}`),
      fields,
    }));
    await accepted(binding({ sources, targets }));
    const deep = `${"x/".repeat(127)}xy`;
    const allOfVault = sources.map((_, i) => ({
      name: i === 15 ? "bucket" : `s${i}`,
      vault: { connection: { name: long(253), namespace: long(63) }, data: { mount: deep, path: `${deep}${deep}` } },
    }));
    await accepted(binding({ sources: allOfVault, targets: [target] }));
  });
});
