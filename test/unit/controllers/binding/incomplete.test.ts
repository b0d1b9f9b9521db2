/** Which bindings report that a part of the installation is missing. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../../src/api/binding.ts";
import { dependsOn, incompleteFor } from "../../../../src/controllers/binding/incomplete.ts";
import type { InstallationCheck, InstallationProblem } from "../../../../src/observability/installation-problems.ts";
import { bindingOf } from "../../objects.ts";

const writers = [{ kind: "User" as const, name: "jane" }];
const plain = bindingOf({});
const protecting = bindingOf({ spec: { sources: [{ secret: { name: "bucket" }, protect: { writers } }] } });
const rolling = bindingOf({ spec: { rollout: { consumersOf: "Sources" } } as never });

describe("an incomplete installation", () => {
  const reasonFor = (binding: SecretBinding, check: InstallationCheck, ...parts: string[]) => {
    const all = new Map<InstallationCheck, InstallationProblem | undefined>([
      [check, parts.length === 0 ? undefined : { message: "create it with: kubectl", parts }],
    ]);
    return incompleteFor(binding, { all })?.reason;
  };

  it("is reported by bindings that protect a source, if a policy that protects is missing", () => {
    const reason = (binding: SecretBinding, ...parts: string[]) => reasonFor(binding, "policies", ...parts);
    assert.equal(reason(protecting, "inlay-protect-accounts", "inlay-replicas"), "PolicyMissing");
    assert.equal(reason(protecting, "inlay-binding-authors"), undefined);
    assert.equal(reason(protecting), undefined);
    for (const each of [plain, rolling]) assert.equal(reason(each, "inlay-protect"), undefined);
  });

  it("is reported by bindings with a rollout, if the digest key is missing", () => {
    assert.equal(reasonFor(rolling, "digest_key", "inlay-digest-key"), "NoDigestKey");
    assert.equal(reasonFor(rolling, "digest_key"), undefined);
    for (const each of [plain, protecting]) assert.equal(reasonFor(each, "digest_key", "inlay-digest-key"), undefined);
  });

  it("concerns only bindings that report it", () => {
    const concerned = (check: InstallationCheck) => [plain, protecting, rolling].map((each) => dependsOn(each, check));
    assert.deepEqual(concerned("policies"), [false, true, false]);
    assert.deepEqual(concerned("digest_key"), [false, false, true]);
    for (const check of ["permissions", "second_controller"] as const)
      assert.deepEqual(concerned(check), [false, false, false]);
  });
});
