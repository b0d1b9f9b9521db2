/** Which labels a selector matches if the API server is not asked. */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  type LabelSelector,
  matchesLabels,
  parseSelector,
  selectorText,
} from "../../../src/apimachinery/label-selector.ts";

const labels = { env: "prod", empty: "" };
const expression = (operator: "In" | "NotIn" | "Exists" | "DoesNotExist", key: string, ...values: string[]) => ({
  matchExpressions: [{ key, operator, ...(values.length > 0 && { values }) }],
});

describe("a label selector", () => {
  const matching: Record<string, LabelSelector> = {
    "a label of that value": { matchLabels: { env: "prod" } },
    "a label of no text": { matchLabels: { empty: "" } },
    "one of several values": expression("In", "env", "test", "prod"),
    "none of several values": expression("NotIn", "env", "test"),
    "a label that is not there as none of the values": expression("NotIn", "tier", "gold"),
    "a label that is there": expression("Exists", "empty"),
    "a label that is not there": expression("DoesNotExist", "tier"),
    "a label that is not there, of a name that every object has": expression("DoesNotExist", "constructor"),
    "all that is given": { matchLabels: { env: "prod" }, ...expression("Exists", "empty") },
  };
  for (const [what, selector] of Object.entries(matching)) {
    it(`matches ${what}`, () => assert.equal(matchesLabels(selector, labels), true));
  }

  const others: Record<string, LabelSelector> = {
    "a label of another value": { matchLabels: { env: "test" } },
    "a label of no text, where there is none": { matchLabels: { tier: "" } },
    "none of the values": expression("In", "env", "test"),
    "a value of a label that is not there": expression("In", "tier", ""),
    "one of the values, where none may be": expression("NotIn", "env", "prod"),
    "a label that is not there": expression("Exists", "tier"),
    "a label that is, where it may not be": expression("DoesNotExist", "env"),
    "what every object has and is no label": expression("Exists", "toString"),
    "one of two that are given": { matchLabels: { env: "prod" }, ...expression("Exists", "tier") },
  };
  for (const [what, selector] of Object.entries(others)) {
    it(`does not match ${what}`, () => assert.equal(matchesLabels(selector, labels), false));
  }

  it("means the same after its text is parsed", () => {
    const key = fc.constantFrom("a", "in", "notin", "example.com/a-b", "x.y/z_1");
    const value = fc.constantFrom("", "a", "in", "A.b-c_1");
    const some = fc.array(value, { minLength: 1, maxLength: 3 });
    const one = fc.oneof(
      fc.record({ key, operator: fc.constantFrom("In" as const, "NotIn" as const), values: some }),
      fc.record({ key, operator: fc.constantFrom("Exists" as const, "DoesNotExist" as const) }),
    );
    const selector = fc.record({ matchLabels: fc.dictionary(key, value), matchExpressions: fc.array(one) });
    fc.assert(
      fc.property(selector, fc.dictionary(key, value), (one, labels) => {
        assert.equal(matchesLabels(parseSelector(selectorText(one)), labels), matchesLabels(one, labels));
      }),
    );
  });
});
