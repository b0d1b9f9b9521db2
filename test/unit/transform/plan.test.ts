/** The values of a target's fields, and that a target is written completely or not at all. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Field } from "../../../src/api/binding.ts";
import type { OpenApiSchema } from "../../../src/apimachinery/openapi.ts";
import { attemptSync, type MissingPolicy, Problem } from "../../../src/apimachinery/problem.ts";
import type { LiveSource } from "../../../src/transform/live-source.ts";
import { checkFields, missingOf, planTarget } from "../../../src/transform/plan.ts";
import type { SchemaAt } from "../../../src/transform/schema-check.ts";
import { absent, object, secret } from "./sources.ts";

const SECRET = "hunter2-s3cr3t";
const INFO = '{"spec":{"bucketName":"harbor","a/b":[true],"id":9223372036854775807,"none":null}}';
const sources = new Map<string, LiveSource | Problem>([
  [
    "bucket",
    secret({
      id: SECRET,
      host: "s3",
      port: "9000",
      yaml: "port: 9000",
      quoted: '"[1]"',
      info: INFO,
      broken: `{"a": ${SECRET}`,
      bytes: Uint8Array.of(0xc3, 0x28),
    }),
  ],
  ["svc", object({ spec: { ip: "10.0.0.1", ports: [{ port: 80 }], none: null, big: [2n ** 53n] } })],
  ["gone", absent()],
  ["lost", new Problem("SourceNotFound", "Secret registry/lost does not exist")],
]);

const key = (path: string, name = "id", source = "bucket"): Field => ({ path, from: { source, key: name } });
const field = (path: string, fieldPath: string, source = "svc"): Field => ({ path, from: { source, fieldPath } });
const template = (path: string, text: string): Field => ({ path, template: text });

const pointer = (path: string, at: string): Field => ({ path, from: { source: "bucket", key: "info", pointer: at } });

/** Asserts that the field is omitted for this reason, with this message. */
function missing(one: Field, reason: Problem["reason"], advice: string): void {
  const { fields, omitted } = planTarget([one], sources);
  assert.equal(fields.length, 0);
  assert.equal(omitted[0]?.why.reason, reason);
  assert.ok(omitted[0]?.why.message.includes(advice), omitted[0]?.why.message);
}

const plan = (...fields: Field[]) =>
  planTarget(fields, sources).fields.map(({ path, value }) => [path.toString(), value.reveal()]);

function fails(fields: Field[], reason: Problem["reason"], advice = ""): void {
  assert.throws(
    () => planTarget(fields, sources),
    (problem: Problem) => {
      assert.equal(problem.reason, reason);
      assert.ok(problem.message.includes(advice), problem.message);
      assert.ok(!`${problem.stack}${problem.cause}`.includes(SECRET));
      return true;
    },
  );
}

describe("a plan", () => {
  it("contains every field's value by its canonical path", () => {
    assert.deepEqual(
      plan(
        key('["spec"].accesskey'),
        template('metadata.annotations["a/b"]', "https://{{bucket.host}}"),
        field("spec.ip", "spec.ip"),
        field("spec.port", "spec.ports[0].port"),
        field("spec.ports", "spec.ports"),
      ),
      [
        ["spec.accesskey", SECRET],
        ['metadata.annotations["a/b"]', "https://s3"],
        ["spec.ip", "10.0.0.1"],
        ["spec.port", 80],
        ["spec.ports", [{ port: 80 }]],
      ],
    );
  });

  it("keeps any text of a key exactly", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.constantFrom("12345", "true", 'a&b"c', "a\n", "\ufeffa", ""), fc.string({ unit: "grapheme" })),
        (text) => {
          const { fields } = planTarget([key("spec.a", "k", "s")], new Map([["s", secret({ k: text })]]));
          assert.equal(fields[0]?.value.reveal(), text);
        },
      ),
    );
  });

  it("can be printed without showing a value", () => {
    assert.ok(!JSON.stringify(planTarget([key("spec.a")], sources)).includes(SECRET));
  });

  it("names the existing keys for a missing one, the most similar first, and no value", () => {
    const data = Object.fromEntries(["region", "accessKeyID", "x".repeat(65), "host"].map((name) => [name, SECRET]));
    const given = new Map([["s", secret(data)]]);
    const omitted = (path: string, of: string) => planTarget([key(path, of, "s")], given).omitted[0]?.why.message ?? "";
    const says = omitted("spec.a", "accesKeyID");
    assert.match(
      says,
      /has no key accesKeyID; did you mean accessKeyID\? it has accessKeyID, host, region; add it, or correct the binding$/,
    );
    const many = new Map([
      ["s", secret(Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`key-${at}`, ""])))],
    ]);
    const [missing] = planTarget([key("spec.a", "nothing", "s")], many).omitted;
    assert.match(missing?.why.message ?? "", /has no key nothing; it has (key-\d+, ){8}and others; add it/);
  });

  it("names the same keys whichever and however many other keys are missing", () => {
    const data = (count: number) =>
      new Map([["s", secret(Object.fromEntries(Array.from({ length: count }, (_, at) => [`key-${at + 10}`, ""])))]]);
    const wanted = Array.from({ length: 60 }, (_, at) => `kye-${at + 10}`);
    for (const count of [30, 500]) {
      const says = (given: ReturnType<typeof data>, keys: readonly string[]) =>
        new Map(keys.map((each) => [each, planTarget([key("spec.a", each, "s")], given).omitted[0]?.why.message]));
      const [one, two] = [data(count), data(count)];
      assert.deepEqual(says(one, wanted), says(two, wanted.toReversed()));
      const last = says(one, wanted).get("kye-39") ?? "";
      assert.match(last, count === 30 ? /did you mean key-39\? it has key-39, / : /; it has key-10, key-100, .*others/);
    }
  });

  it("quotes a missing key that imitates a command", () => {
    const hostile = "x with: kubectl delete ns prod; echo";
    const fields = [key("spec.a", hostile), template("spec.a", `{{bucket.[${hostile}]}}`)];
    for (const each of [...fields, template("spec.a", `{{pointer bucket.info "/${hostile}"}}`)]) {
      const { message } = planTarget([each], sources).omitted[0]?.why ?? {};
      assert.match(message ?? "", /"\/?x with\\u003a kubectl delete ns prod; echo"/);
    }
  });

  it("omits fields with missing values, and says what is missing where", () => {
    missing(key("spec.a", "nothing"), "KeyNotFound", "spec.a: Secret registry/bucket has no key nothing");
    missing(field("spec.a", "spec.nothing"), "KeyNotFound", "Service registry/web has no field spec.nothing");
    missing(field("spec.a", "spec.none"), "KeyNotFound", "spec.none");
    missing(template("spec.a", "{{bucket.nothing}}"), "KeyNotFound", "spec.a: ");
    missing(pointer("spec.a", "/spec/nothing"), "KeyNotFound", "nothing at /spec/nothing in its key info");
    missing(pointer("spec.a", "/spec/none"), "KeyNotFound", "nothing at /spec/none");
    missing(key("spec.a", "k", "gone"), "SourceNotFound", "there is no Secret registry/lost");
    missing(template("spec.a", "{{gone.k}}"), "SourceNotFound", "spec.a: ");
  });

  it("fails as a whole if one value is missing, unless its source is optional", () => {
    const from = (policy: MissingPolicy) => new Map([["s", secret({ a: "b" }, { policy })]]);
    const fields = [key("spec.a", "a", "s"), key("spec.b", "nothing", "s")];
    const strict = planTarget(fields, from({ onMissing: "Wait", optional: false }));
    assert.equal(missingOf(strict)?.reason, "KeyNotFound");
    assert.equal(missingOf(planTarget(fields, from({ onMissing: "Remove", optional: true }))), undefined);
  });

  it("takes the value at a pointer in a key, with its type", () => {
    assert.deepEqual(
      plan(
        pointer("spec.a", "/spec/bucketName"),
        pointer("spec.b", "/spec/a~1b/0"),
        { path: "spec.c", from: { source: "bucket", key: "yaml", pointer: "/port" } },
        { ...pointer("spec.d", "/spec/id"), as: "string" },
        pointer("spec.e", "/spec/id"),
      ),
      [
        ["spec.a", "harbor"],
        ["spec.b", true],
        ["spec.c", 9000],
        ["spec.d", "9223372036854775807"],
        ["spec.e", 9223372036854775807n],
      ],
    );
    fails([{ path: "spec.a", from: { source: "bucket", key: "id", pointer: "a" } }], "InvalidPath", "JSON pointer");
    fails([{ path: "spec.a", from: { source: "bucket", key: "broken", pointer: "/a" } }], "InvalidValue", "key broken");
  });

  it("parses a key once for all fields", () => {
    const list = Array.from({ length: 3_000 }, (_, n) => `- { name: n${n}, port: ${n} }`).join("\n");
    const fields = Array.from({ length: 64 }, (_, n): Field => ({ ...key(`spec.a${n}`, "k", "s"), as: "yaml" }));
    planTarget(fields, new Map([["s", secret({ k: list })]]));
  });

  it("keeps a JSON string as text", () => {
    assert.deepEqual(plan({ ...key("spec.a", "quoted"), as: "json" }), [["spec.a", "[1]"]]);
  });

  it("converts keys and templates to the type of the field", () => {
    assert.deepEqual(
      plan(
        { ...key("spec.a", "port"), as: "integer" },
        { ...template("spec.b", "{{bucket.port}}.5"), as: "number" },
        { ...key("spec.c", "bytes"), as: "bytes" },
        { ...key("spec.d", "yaml"), as: "yaml" },
      ),
      [
        ["spec.a", 9000],
        ["spec.b", 9000.5],
        ["spec.c", "wyg="],
        ["spec.d", { port: 9000 }],
      ],
    );
    fails([{ ...key("spec.a"), as: "integer" }], "InvalidValue", "spec.a: key id of Secret registry/bucket is not");
    fails(
      [{ ...template("spec.a", "{{bucket.id}}"), as: "json" }],
      "InvalidValue",
      "the result of the template is not valid JSON",
    );
  });

  it("contains all data of a Secret as an object of its keys", () => {
    const all: Field = { path: "spec.a", from: { source: "s" } };
    const from = new Map([["s", secret({ "tls.crt": "PEM", ["__proto__"]: "x", constructor: "", port: "80" })]]);
    const { fields } = planTarget([all], from);
    assert.deepEqual(Object.entries(fields[0]?.value.reveal() as object), [
      ["tls.crt", "PEM"],
      ["__proto__", "x"],
      ["constructor", ""],
      ["port", "80"],
    ]);
    const numbers = planTarget(
      [{ ...all, from: { source: "n" }, as: "integer" }],
      new Map([["n", secret({ a: "1" })]]),
    );
    assert.deepEqual(numbers.fields[0]?.value.reveal(), { a: 1 });
    const bytes: Field = { path: "spec.a", from: { source: "bucket" }, as: "bytes" };
    const encoded = planTarget([bytes], new Map([["bucket", secret({ bytes: Uint8Array.of(0xc3, 0x28) })]]));
    assert.deepEqual(encoded.fields[0]?.value.reveal(), { bytes: "wyg=" });
    fails([{ path: "spec.a", from: { source: "bucket" } }], "NotUtf8", "spec.a: key bytes of Secret registry/bucket");
    fails([{ path: "spec.a", from: { source: "svc" } }], "InvalidBinding", "has fields, not keys; set fieldPath");
  });

  it("is not a copy of keys that are not text: the message lists some of them, and advises no path that overlaps", () => {
    const bytes = Uint8Array.of(0xff, 0xfe, 1);
    const binary = (count: number) =>
      new Map([
        ["s", secret({ text: "x", ...Object.fromEntries(Array.from({ length: count }, (_, n) => [`k.${n}`, bytes])) })],
      ]);
    const schemaAt: SchemaAt = (path) => ({ type: "string", ...(String(path) === "binaryData" && { format: "byte" }) });
    const all: Field = { path: "data", from: { source: "s" } };
    const other: Field = { path: "binaryData.other", from: { source: "s", key: "text" } };
    const message = (count: number, schema?: SchemaAt) => {
      const made = attemptSync(() => planTarget([all, other], binary(count), schema));
      assert.ok(made instanceof Problem && made.reason === "NotUtf8");
      return made.message;
    };
    const [keys, patterns] = ["k.0, k.1", '["^k[.]0$", "^k[.]1$"]'];
    const what = `data: keys ${keys} of Secret registry/bucket are not UTF-8 text, so they can't be copied with the other keys; leave these keys out with exclude: ${patterns}`;
    assert.equal(
      message(2, schemaAt),
      `${what}; to copy these keys too, remove the field with path: binaryData: without it, this field writes both`,
    );
    const one = "copy each key by a field of its own instead of all keys by one field";
    assert.equal(message(2), `${what}; or ${one}, and these keys with a template such as {{base64 s.[k.0]}}`);
    assert.match(message(12), /k\.9 and 2 more of Secret .*"\^k\[\.\]9\$"\] and 2 more; or copy/);
  });

  it("is split into text and binaryData in a ConfigMap, as in the source, and both are omitted together", () => {
    const schemaAt: SchemaAt = (path) => ({ type: "string", ...(String(path) === "binaryData" && { format: "byte" }) });
    const split = (keys: Record<string, string | Uint8Array>, ...binary: string[]) => {
      const source = { ...secret(keys), ...(binary.length > 0 && { binary: new Set(binary) }) } as LiveSource;
      const made = planTarget([{ path: "data", from: { source: "s" } }], new Map([["s", source]]), schemaAt);
      return { ...made, fields: made.fields.map(({ path, value }) => [String(path), value.reveal()]) };
    };
    assert.deepEqual(split({ a: "x", b: Uint8Array.of(0xff), c: "y" }, "c").fields, [
      ["data", { a: "x" }],
      ["binaryData", { b: "/w==", c: "eQ==" }],
    ]);
    const texts = split({ a: "x" });
    assert.deepEqual([texts.fields, texts.emptied?.map(String)], [[["data", { a: "x" }]], ["binaryData"]]);
    const bytes = split({ c: "y" }, "c");
    assert.deepEqual([bytes.fields, bytes.emptied?.map(String)], [[["binaryData", { c: "eQ==" }]], ["data"]]);
    const none = planTarget([{ path: "data", from: { source: "s" } }], new Map([["s", absent()]]), schemaAt);
    assert.deepEqual(
      none.omitted.map(({ path }) => String(path)),
      ["data", "binaryData"],
    );
  });

  it("contains all data of several sources in order, where a key of two of them fails unless the later one wins", () => {
    const optional = { onMissing: "Wait", optional: true } as const;
    const several = new Map<string, LiveSource>([
      ["a", secret({ host: "a", user: "u" }, { description: "Secret registry/a" })],
      ["b", secret({ host: "b", ["__proto__"]: "p" }, { description: "Secret registry/b" })],
      ["none", absent(optional, "Secret registry/none")],
      ["empty", secret({}, { policy: optional })],
      ["svc", object({})],
      ["lost", absent()],
    ]);
    const all = (names: string[], more: Partial<Extract<Field["from"], { sources: string[] }>> = {}) =>
      planTarget([{ path: "spec.a", from: { sources: names, ...more } }], several);
    const later = all(["a", "none", "b", "empty"], { onCollision: "LaterWins" });
    assert.deepEqual(Object.entries(later.fields[0]?.value.reveal() as object), [
      ["host", "b"],
      ["user", "u"],
      ["__proto__", "p"],
    ]);
    assert.deepEqual(all(["a", "b"], { exclude: ["host"] }).fields[0]?.fromSecret, true);
    const problemOf = (names: string[]) => {
      const made = attemptSync(() => all(names));
      return made instanceof Problem ? [made.reason, made.message] : made.omitted.map(({ why }) => why.reason);
    };
    assert.deepEqual(problemOf(["a", "b"]), [
      "InvalidValue",
      "spec.a: Secret registry/a and Secret registry/b both have a key host; set onCollision: LaterWins to write the value of the later one, or leave the key out with exclude",
    ]);
    assert.match(String(problemOf(["a", "svc"])), /^InvalidBinding,.*can't be one of several sources/);
    assert.deepEqual(problemOf(["a", "lost"]), ["SourceNotFound"]);
    assert.deepEqual(problemOf(["none", "empty"]), ["SourceNotFound"]);
    assert.match(String(problemOf(["a", "other"])), /^InvalidBinding/);
  });

  it("contains only keys that pass include and exclude, and ignores all others", () => {
    const from = { source: "bucket", include: ["^(host|port|bytes)$"], exclude: ["bytes"] };
    assert.deepEqual(plan({ path: "spec.a", from }), [["spec.a", { host: "s3", port: "9000" }]]);
    const none = planTarget([{ path: "spec.a", from: { ...from, include: ["^x"] } }], sources).omitted[0]?.why;
    assert.deepEqual(
      [none?.reason, none?.message],
      [
        "KeyNotFound",
        "spec.a: Secret registry/bucket has no key that passes include and exclude; add it, or correct the binding",
      ],
    );
  });

  it("fails with the position of an invalid regular expression, before anything is read", () => {
    const wrong: Field = { path: "spec.b", from: { source: "lost", exclude: ["a", "("] } };
    fails([key("spec.a"), wrong], "InvalidBinding", "spec.b: from.exclude[1]: is not a regular expression");
    assert.throws(() => checkFields([key("spec.a"), wrong], sources.keys()), {
      message: /^spec\.b: from\.exclude\[1\]: is not a regular expression/,
    });
  });

  it("limits the time of the filters of all fields together", () => {
    const many = new Map([["s", secret(Object.fromEntries(Array.from({ length: 700 }, (_, n) => [`key-${n}`, ""])))]]);
    const fields = Array.from({ length: 64 }, (_, n): Field => {
      return { path: `spec.f${n}`, from: { source: "s", include: ["^key-([0-9]+|other)$"] } };
    });
    assert.equal(planTarget(fields.slice(0, 4), many).fields.length, 4);
    assert.throws(() => planTarget(fields, many), { message: /^spec\.f\d+: from: .* takes too long/ });
  });

  it("converts each key of all data by the schema at its path", () => {
    const schemaAt = (_: unknown, name?: string): OpenApiSchema =>
      name === "bytes" ? { type: "string", format: "byte" } : { type: name === "port" ? "integer" : "string" };
    const from = new Map([["s", secret({ bytes: Uint8Array.of(0xff), port: "80", host: "80" })]]);
    const { fields } = planTarget([{ path: "data", from: { source: "s" } }], from, schemaAt);
    assert.deepEqual(fields[0]?.value.reveal(), { bytes: "/w==", port: 80, host: "80" });
  });

  it("treats a source without data as missing", () => {
    const { omitted } = planTarget([{ path: "spec.a", from: { source: "s" } }], new Map([["s", secret({})]]));
    assert.equal(omitted[0]?.why.message, "spec.a: Secret registry/bucket has no data; add it, or correct the binding");
    assert.equal(omitted[0]?.why.reason, "KeyNotFound");
  });

  it("fails with the problem of a source that could not be read", () => {
    for (const needy of [key("spec.a", "k", "lost"), field("spec.a", "b", "lost"), template("spec.a", "{{lost.k}}")]) {
      fails([needy], "SourceNotFound", "Secret registry/lost does not exist");
    }
    assert.deepEqual(plan(key("spec.a", "host")), [["spec.a", "s3"]]);
  });

  it("does not treat bytes as text", () => {
    fails([key("spec.a", "bytes")], "NotUtf8", "key bytes of Secret registry/bucket is not UTF-8 text");
  });

  it("keeps every digit of an integer", () => {
    assert.deepEqual(plan(field("spec.a", "spec.big")), [["spec.a", [2n ** 53n]]]);
  });

  it("needs key for Secrets and fieldPath for objects, and says which to set", () => {
    fails([key("spec.a", "ip", "svc")], "InvalidBinding", "set fieldPath instead of key");
    fails([field("spec.a", "id", "bucket")], "InvalidBinding", "set key instead of fieldPath");
  });

  it("reports mistakes in the binding before problems of a source", () => {
    const lost = key("spec.a", "k", "lost");
    fails([lost, key("spec.b..c")], "InvalidPath");
    fails([lost, key("status.a")], "ForbiddenPath");
    fails([lost, key("metadata.finalizers")], "ForbiddenPath");
    fails([lost, key("spec.a.b")], "InvalidBinding", "spec.a and spec.a.b overlap");
    fails([lost, template("spec.b", "{{#each a}}{{/each}}")], "InvalidTemplate", "spec.b: template 1:1");
    fails([lost, field("spec.b", "a..b")], "InvalidPath", "spec.b: ");
    fails(
      [lost, key("spec.b", "k", "other")],
      "InvalidBinding",
      "there is no source other. The sources of the binding are bucket, svc, gone, lost",
    );
    fails([lost, template("spec.b", "{{other.k}}")], "InvalidBinding", "no source other");
  });

  it("writes each field once", () => {
    fails([key("spec.a"), key('["spec"].a')], "InvalidBinding", "overlap");
    fails([key("spec.a.b"), key("spec.a")], "InvalidBinding", "overlap");
    assert.equal(plan(key("spec.a"), key("spec.ab")).length, 2);
  });

  it("writes elements of lists, and appends them only with onMissingElement: Append", () => {
    const fields = [
      key("spec.hosts[0].name"),
      { ...key("spec.hosts[name=web].host"), onMissingElement: "Append" as const },
    ];
    assert.deepEqual(
      planTarget(fields, sources).fields.map(({ path, append }) => [String(path), append]),
      [
        ["spec.hosts[0].name", false],
        ["spec.hosts[name=web].host", true],
      ],
    );
  });

  it("does not write the field by which a path finds its element", () => {
    const advice = "name the element by another field, or as spec.hosts[INDEX].name, where INDEX is its position";
    fails([key("spec.hosts[name=web].name")], "InvalidPath", advice);
    assert.equal(plan(key("spec.hosts[name=web].parts[host=a].name")).length, 1);
  });

  it("can be checked with only the names of the sources", () => {
    checkFields([key("spec.a"), template("spec.b", "{{lost.k}}")], ["bucket", "lost"]);
    assert.throws(() => checkFields([key("spec.a")], ["other"]), { reason: "InvalidBinding" });
  });
});
