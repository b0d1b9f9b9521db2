/** Formats of compositions print like Go's fmt, and refuse what Go marks as an error in the text. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { attemptSync, Problem } from "../../../../src/apimachinery/problem.ts";
import type { GoValue } from "../../../../src/composition/patches/go/value.ts";
import { compileFormat, compileGoFormat } from "../../../../src/composition/patches/go-format.ts";
import { useOracle } from "../../../oracle/oracle.ts";
import { askGo, int64, plainText, scalar, tag, value } from "./go-values.ts";

/** Go's marks in a text if a verb and its value do not match. */
const MISTAKE = /%!.?\(/su;

const widths = fc.constantFrom("", "", "0", "1", "3", "8", "20", "*", "[2]*");
const precisions = fc.constantFrom("", "", ".", ".0", ".1", ".3", ".17", ".30", ".*", ".[2]*");
const flags = fc.subarray([..."+-# 0"]).map((each) => each.join(""));
const verbs = fc.constantFrom(..."vTtbcdoOqxXUeEfFgGsvvv");

const directive = fc
  .tuple(flags, fc.constantFrom("", "", "", "[1]", "[2]"), widths, precisions, verbs)
  .map(([flag, index, width, precision, verb]) => {
    // An index is written before the verb; before a width that is a number, Go refuses it.
    return `%${flag}${width}${precision}${index}${verb}`;
  });
const soup = fc
  .string({ unit: fc.constantFrom(..."%%%#0+- *.[]12vdsxqgT"), minLength: 1, maxLength: 10 })
  .filter((fmt) => !/\d{4}/.test(fmt));

interface Case {
  fmt: string;
  values: GoValue[];
}

/** Whether * takes a width or precision from the values that Inlay refuses and Go may accept. */
const hasLongStar = ({ fmt, values }: Case): boolean =>
  fmt.includes("*") && values.some((each) => typeof each === "bigint" && (each > 1_000n || each < -1_000n));

/** Whether both print the same, or both refuse. */
async function assertSame({ fmt, values }: Case, mayRefuse = false): Promise<void> {
  const printed = (await askGo("format", { format: fmt, values: values.map(tag) })) as string;
  const ours = attemptSync(() => compileGoFormat(fmt, values.length, "fmt")(values));
  if (mayRefuse && ours instanceof Problem) return;
  const said = `${JSON.stringify(fmt)} of ${values.map((each) => JSON.stringify(tag(each))).join(" ")}`;
  assert.equal(ours instanceof Problem ? "refused" : ours, MISTAKE.test(printed) ? "refused" : printed, said);
}

const batch = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: 30, maxLength: 30 });
const check = (one: fc.Arbitrary<Case>, test: (one: Case) => Promise<void>) =>
  fc.assert(
    fc.asyncProperty(batch(one), async (cases) => void (await Promise.all(cases.map(test)))),
    { includeErrorInReport: true },
  );

describe("a format", () => {
  before(useOracle);

  it("prints any value by any verb, flag, width and precision as Go does", async () => {
    await check(fc.record({ fmt: directive, values: fc.tuple(value) }), (each) => assertSame(each, hasLongStar(each)));
  });

  it("prints a value as Go does by a verb that takes it", async () => {
    const each = fc.oneof(
      fc.record({ letter: fc.constantFrom(..."vboOxXcqUd"), value: int64 as fc.Arbitrary<GoValue> }),
      fc.record({
        letter: fc.constantFrom(..."vbgGxXfFeE"),
        value: fc.oneof(fc.double(), fc.constantFrom(0, -0, 1, 1e6, 1e21)),
      }),
      fc.record({ letter: fc.constantFrom(..."vsxXq"), value: plainText }),
    );
    const fitting = fc
      .tuple(flags, fc.constantFrom("", "1", "7", "12", "40"), fc.constantFrom("", ".", ".1", ".5", ".20"), each)
      .map(
        ([flag, width, precision, { letter, value }]): Case => ({
          fmt: `%${flag}${width}${precision}${letter}`,
          values: [value],
        }),
      );
    await check(fitting, (each) => assertSame(each));
  });

  it("takes widths, precisions and values from several arguments as Go does", async () => {
    const several = fc.tuple(directive, fc.constantFrom("", " ", "%%", "é"), directive).map((parts) => parts.join(""));
    const arguments_ = fc.tuple(
      fc.oneof(fc.bigInt({ min: -20n, max: 20n }), scalar),
      fc.bigInt({ min: -9n, max: 20n }),
      scalar,
    );
    // Go accepts up to a million from a *.
    const isLarge = (each: GoValue) => typeof each === "bigint" && (each > 1000n || each < -1000n);
    await check(fc.record({ fmt: several, values: arguments_ as fc.Arbitrary<GoValue[]> }), (each) =>
      assertSame(each, each.fmt.includes("*") && each.values.some(isLarge)),
    );
  });

  it("is refused if Go prints an error, however it is written", async () => {
    await check(
      fc.record({ fmt: soup, values: fc.array(fc.constantFrom<GoValue>(7n, "x", 1.5), { maxLength: 3 }) }),
      (each) =>
        // Go ignores a wrong index before a percent sign, and a width.
        assertSame(each, /[[*][^%]*%/.test(each.fmt)),
    );
  });

  it("distinguishes whole numbers in JSON from those with a fraction", () => {
    assert.equal(compileFormat("%d %v %v", 3, "fmt")([5, 0.5, 2n ** 60n]), "5 0.5 1152921504606846976");
    assert.equal(compileFormat("%v", 1, "fmt")([{ b: [1, null], a: "x" }]), "map[a:x b:[1 <nil>]]");
    assert.equal(
      compileFormat("%#v", 1, "fmt")([{ a: [null] }]),
      'map[string]interface {}{"a":[]interface {}{interface {}(nil)}}',
    );
  });

  it("refuses a number of values that does not match its verbs, and unknown verbs", () => {
    const refused: [string, number][] = [
      ["", 1],
      ["x", 1],
      ["%s", 0],
      ["%s", 2],
      ["%s%s", 1],
      ["%p", 1],
      ["%w", 1],
      ["%", 1],
      ["%[2]s", 1],
    ];
    for (const [fmt, count] of refused)
      assertRefused(() => compileFormat(fmt, count, "here"), "InvalidComposition", "here: ");
    assert.equal(compileFormat("%[1]s-%[1]s", 1, "here")(["a"]), "a-a");
  });

  it("limits widths, precisions and the printed text", () => {
    for (const fmt of ["%1001d", "%.1001d"])
      assertRefused(() => compileFormat(fmt, 1, "here"), "InvalidComposition", "here: ");
    assert.equal(compileFormat("%1000d", 1, "here")([1]).length, 1000);
    assert.equal(compileFormat("%*d", 2, "here")([-1000, 1]).length, 1000);
    const starred = compileFormat("%*d", 2, "here");
    for (const width of [1001, -1001, "1", 0.5, null]) assertRefused(() => starred([width, 1]), "InvalidValue");
    const wide = compileFormat("%1000v", 1, "here");
    assertRefused(() => wide([new Array<string>(2_000).fill("x")]), "InvalidValue");
  });

  it("quotes no value when a verb does not take it", () => {
    for (const [fmt, given] of [
      ["%d", "hunter2"],
      ["%s", { hunter2: 1 }],
      ["%d", ["hunter2"]],
    ] as const) {
      assertRefused(() => compileFormat(fmt, 1, "here")([given as never]), "InvalidValue");
    }
  });
});

function assertRefused(work: () => unknown, reason: Problem["reason"], beginning = ""): void {
  const problem = attemptSync(work);
  assert.ok(problem instanceof Problem, "not refused");
  assert.equal(problem.reason, reason);
  assert.ok(problem.message.startsWith(beginning) && !problem.message.includes("hunter2"), problem.message);
}
