/** The protected Secrets that the status lists as containing the token of a ServiceAccount. */
import assert from "node:assert/strict";
import { MissingValue, Problem } from "../../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../../src/apimachinery/secret-value.ts";
import { protectedTokens } from "../../../../src/controllers/binding/protected-tokens.ts";
import type { LiveSource } from "../../../../src/transform/live-source.ts";
import { bindingOf } from "../../objects.ts";

const policy = { optional: false, onMissing: "Wait" as const };
const common = { description: "Secret registry/token", version: "1", policy };
const texts = new SecretValue({});
const read = (more: { tokenOf?: string } = {}): LiveSource => ({
  ...{ ...common, ...more, kind: "data", isSecret: true, data: new Map(), annotations: texts, labels: texts },
});
const absent: LiveSource = { ...common, kind: "absent", problem: new MissingValue("SourceNotFound", "none", policy) };
const noted = [{ secret: "token", serviceAccountName: "robot" }];

/** The new status of a binding that protects the Secret `token`, from what was read of the Secret and the former status. */
const tokens = (live: LiveSource | Problem | undefined, before = noted) =>
  protectedTokens(
    bindingOf({
      spec: { sources: [{ name: "t", secret: { name: "token" }, protect: { writers: [] } }] },
      status: { protectedTokens: before },
    }),
    new Map(live === undefined ? [] : [["t", live]]),
  ).protectedTokens;

describe("the protected tokens in the status", () => {
  it("are those of the protected Secrets that were read", () => {
    assert.deepEqual(tokens(read({ tokenOf: "robot" }), []), noted);
    assert.equal(tokens(read()), undefined);
    assert.equal(tokens(absent), undefined);
    const ofNobody = bindingOf({ spec: { sources: [{ name: "t", secret: { name: "token" } }] }, status: {} });
    assert.deepEqual(protectedTokens(ofNobody, new Map([["t", read({ tokenOf: "robot" })]])), {});
  });

  it("stay if a Secret was not read, or could not be", () => {
    assert.deepEqual(tokens(undefined), noted);
    assert.deepEqual(tokens(new Problem("Forbidden", "not allowed")), noted);
    assert.equal(tokens(undefined, []), undefined);
  });
});
