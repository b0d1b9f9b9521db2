/**
 * Random values meet random mistakes on the way from a source to a target. No error and no result except the value itself
 * contains any part of them: not in a message, a stack or a cause, however it is printed.
 */
import assert from "node:assert/strict";
import { format, inspect } from "node:util";
import fc from "fast-check";
import type { Field, TargetStatus } from "../../src/api/binding.ts";
import type { JsonObject } from "../../src/apimachinery/objects.ts";
import type { OpenApiSchema } from "../../src/apimachinery/openapi.ts";
import { Problem } from "../../src/apimachinery/problem.ts";
import { decide } from "../../src/apply/decide.ts";
import { composeWhole } from "../../src/apply/manifest.ts";
import { planPatch } from "../../src/apply/patch.ts";
import { planRelease } from "../../src/apply/release.ts";
import { describeError } from "../../src/observability/log.ts";
import { noteOf, planTarget } from "../../src/transform/plan.ts";
import type { Plan } from "../../src/transform/plan-types.ts";
import { checkAgainstSchema, schemaIn } from "../../src/transform/schema-check.ts";
import { shapeOf } from "../../src/transform/target-shape.ts";
import { entry, liveObject, OURS } from "./apply/managed.ts";
import { object, secret } from "./transform/sources.ts";

/** Letters that are in no word, so that a part of a value can't occur by accident. */
const value = fc.string({ unit: fc.constantFrom(..."QXZJ0123456789#%"), minLength: 12, maxLength: 40 });

/** What a Secret may contain in place of the expected value. */
const spoilt: ((value: string) => string | Uint8Array)[] = [
  (v) => v,
  (v) => `{"a": "${v}`,
  (v) => `{"${v}": ${v}}`,
  (v) => `["${v}", ]`,
  (v) => `{"a": {"b": "${v}"}, "${v}": 1}`,
  (v) => `[{"name": "${v}"}, {"name": "${v}"}]`,
  (v) => `a: ${v}: b`,
  (v) => `a: [*${v}]`,
  (v) => `!!${v} a`,
  (v) => `a: &${v} b\n${v}: *${v}\n${v}: c`,
  (v) => `"${v}\\q"`,
  (v) => `\t${v}: |\n ${v}\n- ${v}`,
  (v) => `---\n${v}\n---\n${v}`,
  (v) => Buffer.from(v).toString("base64").slice(1),
  (v) => `-----BEGIN CERTIFICATE-----\n${Buffer.from(v).toString("base64")}\n-----END CERTIFICATE-----`,
  (v) => `-----BEGIN ${v}-----\n${v}`,
  (v) => `1${v.replace(/\D/g, "")}.5`,
  (v) => `9${v.replace(/\D/g, "")}00000000000000000000`,
  (v) => `${v}\n${v}'"\`\\`,
  (v) => `\ud800${v}`,
  (v) => `${v}\0${v}`,
  (v) => Buffer.concat([Buffer.from(v), Buffer.of(0xff), Buffer.from(v)]),
  (v) => `Error: ${v}\n    at ${v} (${v}:1:2)`,
];

const helpers = [
  ..."base64 base64url base64decode urlencode lower upper trim jsontext xml shell sha256sum pembundle json yaml parse".split(
    " ",
  ),
];
const expression = fc.oneof(
  fc.constant("s.k"),
  fc.constant("o.spec.k"),
  fc.constantFrom(...helpers).map((name) => `(${name} s.k)`),
  fc.constantFrom(...helpers).map((name) => `(${name} (trim s.k))`),
  fc.constantFrom(
    `(ini s.k "'")`,
    '(pointer s.k "/a/b")',
    '(pointer (parse s.k) "/0/name")',
    '(split s.k "Q")',
    '(join (split s.k "X") "-")',
    '(join s.k ",")',
    "(concat s.k o.spec.k)",
    "(indent s.k 2)",
    '(default s.none "a")',
    "s.none",
    "s.k.none",
    "o.spec",
    "other.k",
  ),
);
const template = fc.oneof(
  expression.map((made) => `{{${made.replace(/^\((.*)\)$/, "$1")}}}`),
  expression.map((made) => `x{{lower ${made}}}`),
  expression.map((made) => `{{#if ${made}}}{{s.k}}{{else}}{{json ${made}}}{{/if}}`),
  fc.constantFrom("{{s.k", "{{#if s.k}}", "{{s.k}}{{/if}}", "{{{{s.k}}}}", "{{> s.k}}", "{{lookup s 'k'}}"),
);
const as = fc.constantFrom(undefined, "string", "integer", "number", "boolean", "bytes", "json", "yaml");
const from = fc.oneof(
  fc.constantFrom<object>(
    { source: "s", key: "k" },
    { source: "s" },
    { source: "s", key: "none" },
    { source: "o", fieldPath: "spec.k" },
    { source: "o", fieldPath: "spec.list[name=a].k" },
    { source: "o", key: "k" },
  ),
  fc.constantFrom("", "/a", "/a/b", "/0/name", "/none").map((pointer) => ({ source: "s", key: "k", pointer })),
);
const path = fc.constantFrom(
  ..."spec.text spec.number spec.flag spec.object spec.list spec.list[name=a].value spec.set spec.any spec.none.none".split(
    " ",
  ),
  ..."spec.map[name=a].value spec.map[name=a].name spec.map spec.text.below spec.list[0] spec.atomic.a metadata.name status.a data.a".split(
    " ",
  ),
);
const field = fc
  .record({
    path,
    as,
    made: fc.oneof(
      from.map((each) => ({ from: each })),
      template.map((text) => ({ template: text })),
    ),
  })
  .map(({ path, as, made }) => ({ path, ...made, ...(as && { as }) }) as Field);

const text: OpenApiSchema = { type: "string" };
const rule = fc.constantFrom<OpenApiSchema>(
  {},
  { pattern: "^never$" },
  { enum: ["never"] },
  { maxLength: 3 },
  { minLength: 4_000 },
  ...["byte", "uri", "date-time", "ipv4", "cidr", "uuid", "int-or-string"].map((format) => ({ format })),
);
const schema = rule.map(
  (more): OpenApiSchema => ({
    type: "object",
    properties: {
      metadata: { type: "object" },
      spec: {
        type: "object",
        required: ["text"],
        properties: {
          text: { ...text, ...more },
          number: { type: "integer", maximum: 3, multipleOf: 2 },
          flag: { type: "boolean" },
          object: { type: "object", properties: { a: { ...text, ...more } } },
          list: { type: "array", items: { type: "object", properties: { name: text, value: { ...text, ...more } } } },
          set: { type: "array", items: text, "x-kubernetes-list-type": "set" },
          map: {
            type: "array",
            items: { type: "object", properties: { name: text, value: { ...text, ...more } } },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
          },
          atomic: { type: "object", properties: { a: text }, "x-kubernetes-map-type": "atomic" },
          any: { "x-kubernetes-preserve-unknown-fields": true },
        },
      },
    },
  }),
);

const scenario = fc.record({
  value,
  spoil: fc.nat({ max: spoilt.length - 1 }),
  fields: fc.array(field, { minLength: 1, maxLength: 3 }),
  schema,
  live: fc.constantFrom("nothing", "ours", "theirs", "both"),
  onConflict: fc.constantFrom("Fail" as const, "Force" as const),
  mode: fc.constantFrom("Retain" as const, "Remove" as const),
});
type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

/** The parts that would reveal a value: six letters of it in a row, in any spelling. */
function piecesOf(value: string): string[] {
  const runs = (from: string, length: number) =>
    Array.from({ length: Math.max(0, from.length - length + 1) }, (_, n) => from.slice(n, n + length));
  const base64 = [0, 1, 2].flatMap((offset) =>
    runs(Buffer.from(value.slice(offset)).toString("base64").replace(/=+$/, ""), 8),
  );
  const hex = runs(Buffer.from(value).toString("hex"), 12).filter((_, n) => n % 2 === 0);
  return [...runs(value, 6), ...runs(encodeURIComponent(value), 10), ...base64, ...hex];
}

/** All texts that could be printed of something. */
function printed(thing: unknown): string {
  const { message, stack, cause } = (thing ?? {}) as Partial<Error>;
  const sealed = (_: string, each: unknown) => (typeof each === "bigint" ? String(each) : each);
  return [
    inspect(thing, { depth: null, showHidden: true, getters: true, maxStringLength: null }),
    inspect(thing, { depth: null, customInspect: false, showHidden: true }),
    format("%s %o %O %j", thing, thing, thing, JSON.stringify(thing, sealed)),
    `${thing} ${String(message)} ${String(stack)} ${inspect(cause)}`,
    JSON.stringify(describeError(thing)),
  ].join("\n");
}

describe("the messages about random values and random mistakes", () => {
  const reasons = new Map<string, number>();
  let stages: number;

  /** Runs a step. Returns its result, and everything that may be printed of it. */
  function step<T>(said: string[], work: () => T, show: (made: T) => unknown = (made) => made): T | undefined {
    try {
      const made = work();
      said.push(printed(show(made)));
      stages += 1;
      return made;
    } catch (error) {
      said.push(printed(error));
      const reason = error instanceof Problem ? error.reason : String(error);
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      return undefined;
    }
  }

  function run({ value, spoil, fields, schema, live, onConflict, mode }: Scenario): string[] {
    const said: string[] = [];
    const held = (spoilt[spoil] as (value: string) => string | Uint8Array)(value);
    const spec: JsonObject = {
      text: value,
      number: 1,
      list: [{ name: "a", value }],
      map: [{ name: "a", value }],
      any: { a: value },
    };
    const holders = { nothing: [], ours: [OURS], theirs: ["kubectl"], both: [OURS, "kubectl"] }[live];
    const paths = ["spec.text", "spec.list", "spec.map[name=a].value", "spec.any.a"];
    const target = liveObject(
      live === "nothing" ? {} : { spec },
      holders.map((each) => entry(each, paths)),
    );
    const sources = new Map([
      ["s", secret({ k: held, other: value })],
      ["o", object({ spec: { k: value, list: [{ name: "a", k: value }] } })],
    ]);
    const resolve = () => undefined;
    const shape = shapeOf({ root: schema, resolve });
    const plan = step(said, () => planTarget(fields, sources, schemaIn(schema, resolve)));
    if (plan === undefined) return said;
    step(said, () => noteOf(plan));
    step(said, () => checkAgainstSchema(plan, schema, resolve));
    apply(said, plan, target, { shape, fieldManager: OURS, onConflict });
    const release = {
      uid: "uid-1",
      paths,
      written: paths,
      reverted: [],
      kept: [],
      parents: ["spec", "spec.any"],
      mode,
      fieldManager: OURS,
      shape,
    };
    step(
      said,
      () => planRelease(target, release),
      ({ released }) => released,
    );
    return said;
  }

  function apply(
    said: string[],
    plan: Plan,
    target: ReturnType<typeof liveObject>,
    how: Omit<Parameters<typeof decide>[0], "plan">,
  ) {
    const record = { uid: "uid-1", paths: ["spec.text"] } as TargetStatus;
    const decision = step(said, () => decide({ ...how, plan }, target, record));
    const { shape } = how;
    if (decision)
      step(
        said,
        () => planPatch(target, decision.fields, shape),
        (operations) => operations.length,
      );
    const creator = { uid: "uid-2", fieldManager: OURS };
    step(
      said,
      () => composeWhole({ spec: { map: [] } }, plan.fields, creator, shape),
      ({ fields, digest, creator: by }) => [fields, digest, by],
    );
  }

  before(() => {
    stages = 0;
  });

  it("contain no six letters of a value", () => {
    fc.assert(
      fc.property(scenario, (one) => {
        const text = run(one).join("\n");
        const found = piecesOf(one.value).find((piece) => text.includes(piece));
        assert.equal(
          found,
          undefined,
          text.split("\n").find((line) => found !== undefined && line.includes(found)),
        );
      }),
      { numRuns: 3_000 },
    );
  });

  it("come from every stage, and from all mistakes", () => {
    assert.ok(stages > 2_000, `${stages}`);
    const met = [...reasons.keys()].sort();
    for (const reason of "Conflict InvalidBinding InvalidPath InvalidTemplate InvalidValue NotUtf8 TypeMismatch UnknownField".split(
      " ",
    ))
      assert.ok(met.includes(reason), `${reason}: ${met}`);
    assert.deepEqual(
      met.filter((reason) => /Error/.test(reason)),
      [],
      "an error that is no Problem is a bug",
    );
  });

  it("would be found to contain a value if they did", () => {
    const secretValue = "QXZJ0123456789#%QX";
    const leaks = [
      new Error(`of ${secretValue}`),
      new Error("outer", { cause: new Error(secretValue) }),
      new AggregateError([new Error(secretValue)], "many"),
      Object.assign(new Error("with a field"), { value: [secretValue] }),
      { deep: { in: { a: { plain: { object: secretValue.slice(3, 9) } } } } },
      new Error(Buffer.from(secretValue).toString("base64")),
      new Error(encodeURIComponent(secretValue)),
      new Error(Buffer.from(secretValue).toString("hex")),
    ];
    for (const leak of leaks)
      assert.ok(
        piecesOf(secretValue).some((piece) => printed(leak).includes(piece)),
        String(leak),
      );
  });
});
