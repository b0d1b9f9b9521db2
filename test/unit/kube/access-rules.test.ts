/** What the rules that the API server lists allow on one kind. */
import assert from "node:assert/strict";
import { allowedNames, rulesText } from "../../../src/kube/access-rules.ts";
import { SECRETS } from "../resources.ts";

const rule = (verbs: string[], apiGroups: string[], resources: string[], ...resourceNames: string[]) => ({
  verbs,
  apiGroups,
  resources,
  ...(resourceNames.length > 0 && { resourceNames }),
});
const READ = ["list", "watch"];
const rulesOf = (...resourceRules: ReturnType<typeof rule>[]) => ({ incomplete: false, resourceRules });
const allowed = (...rules: ReturnType<typeof rule>[]) => {
  const names = allowedNames(rulesOf(...rules), READ, SECRETS);
  return names === "all" ? names : [...names];
};

describe("access rules", () => {
  const cases: [what: string, rules: ReturnType<typeof rule>[], expected: "all" | string[]][] = [
    ["nothing", [], []],
    [
      "every name, by verbs of several rules",
      [rule(["list"], [""], ["secrets"]), rule(["watch"], ["*"], ["*"])],
      "all",
    ],
    ["every name, by all verbs", [rule(["*"], [""], ["secrets"])], "all"],
    ["some names", [rule(READ, [""], ["secrets"], "a", "b")], ["a", "b"]],
    [
      "the names on which all verbs are allowed",
      [rule(["list"], [""], ["secrets"]), rule(["watch"], [""], ["secrets"], "a")],
      ["a"],
    ],
    [
      "no name, with one verb on each",
      [rule(["list"], [""], ["secrets"], "a"), rule(["watch"], [""], ["secrets"], "b")],
      [],
    ],
    ["nothing, in another group", [rule(READ, ["apps"], ["secrets"])], []],
    ["nothing, on a subresource", [rule(READ, [""], ["secrets/status"])], []],
  ];
  for (const [what, rules, expected] of cases) it(`allow ${what}`, () => assert.deepEqual(allowed(...rules), expected));

  it("are equal in any order", () => {
    const [a, b] = [rule(READ, [""], ["secrets"]), rule(READ, ["apps"], ["deployments"])];
    assert.equal(rulesText(rulesOf(a, b)), rulesText(rulesOf(b, a)));
    assert.notEqual(rulesText(rulesOf(a, b)), rulesText(rulesOf(a)));
  });
});
