/** Which refusals mean that a field is immutable, without passing on the server's text. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import { immutableProblem } from "../../../src/apply/immutable.ts";
import { ApiError } from "../../../src/kube/api-error.ts";

const MARKER = "hunter2-s3cr3t";

function refused(message: string, field = "spec.a", status = 422): string | undefined {
  const causes = [{ reason: "FieldValueInvalid", message, field }];
  const body = JSON.stringify({ reason: "Invalid", message: MARKER, details: { causes } });
  const paths = ["spec.a", "spec.b.c", 'data["x.y"]', "spec.list[name=web].value"].map(FieldPath.parse);
  const problem = immutableProblem(ApiError.fromAnswer("PATCH /x", status, body), paths);
  assert.ok(problem === undefined || problem.reason === "Immutable");
  assert.ok(!problem?.message.includes(MARKER), problem?.message);
  return problem && / can't be changed/.exec(problem.message)?.input.split(" can't")[0];
}

describe("a refusal", () => {
  it("is about an immutable field in the words of the API server and of CRDs", () => {
    for (const words of [
      "field is immutable",
      "Value is immutable",
      "failed rule: self == oldSelf",
      "failed rule: !has(self.p) || self.p == oldSelf.p",
      "field is immutable when `immutable` is set",
      "may not change once set",
      "the bucket cannot be changed",
      "updates to statefulset spec for fields other than 'replicas' are forbidden",
    ]) {
      assert.equal(refused(`Invalid value: "${MARKER}": ${words}`), "spec.a", words);
      assert.equal(refused(`Forbidden: ${words}`), "spec.a", words);
    }
  });

  it("is not, if only the value contains such words, or for other rules and other answers", () => {
    assert.equal(refused('Invalid value: "immutable \\" immutable": must match ^a'), undefined);
    assert.equal(refused(`Invalid value: "${MARKER}": must be a number`), undefined);
    assert.equal(refused("field is immutable", "spec.a", 500), undefined);
    assert.equal(immutableProblem(new Error("immutable"), []), undefined);
  });

  it("names the binding's paths at, above and below the server's field, else all of them", () => {
    assert.equal(refused("field is immutable", "spec.b"), "spec.b.c");
    assert.equal(refused("field is immutable", "spec.b.c.d"), "spec.b.c");
    assert.equal(refused("field is immutable", `data[${MARKER}]`), 'data["x.y"]');
    assert.equal(refused("field is immutable", "spec.list[2].value"), "spec.list[name=web].value");
    assert.equal(refused("field is immutable", "spec"), "spec.a, spec.b.c, spec.list[name=web].value");
    assert.equal(refused("field is immutable", MARKER), 'spec.a, spec.b.c, data["x.y"], spec.list[name=web].value');
  });
});
