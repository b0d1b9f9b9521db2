/** The permissions that the controller checks are those of the shipped roles. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { missingRights, rightsFor } from "../../../../src/controllers/installation/controller.ts";
import { isListed } from "../../../../src/kube/access-rules.ts";
import { describeRight, rightsIn } from "../../../controller/rights.ts";

const deploy = join(import.meta.dirname, "..", "..", "..", "..", "deploy");

describe("the checked permissions", () => {
  for (const [folder, scope] of [
    ["manifests", undefined],
    ["namespaced", "registry"],
  ] as const) {
    it(`are those of deploy/${folder}/10-controller-role.yaml`, async () => {
      const shipped = rightsIn(await readFile(join(deploy, folder, "10-controller-role.yaml"), "utf8"));
      const checked = rightsFor(scope).map(({ verb, group, plural, name }) =>
        describeRight({ verb, resource: [group, plural].filter(Boolean).join("/"), name }),
      );
      assert.deepEqual(checked.toSorted(), shipped.map(describeRight).toSorted());
    });
  }

  it("are listed by rules with wildcards, and for the name in question only", () => {
    const rules = (more: object) => ({
      incomplete: false,
      resourceRules: [{ verbs: ["get"], apiGroups: [""], resources: ["secrets"], ...more }],
    });
    const right = { verb: "get", group: "", plural: "secrets", name: "inlay-digest-key" };
    assert.equal(isListed(rules({}), right), true);
    assert.equal(isListed(rules({ resourceNames: ["inlay-digest-key"] }), right), true);
    assert.equal(isListed(rules({ resourceNames: ["other"] }), right), false);
    assert.equal(isListed(rules({ resourceNames: ["other"] }), { ...right, name: undefined }), false);
    assert.equal(isListed(rules({ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }), right), true);
    assert.equal(isListed(rules({ verbs: ["list"] }), right), false);
  });

  it("are reported by resource, with the command that grants them", () => {
    assert.equal(missingRights([], "kubectl"), undefined);
    const missing = rightsFor(undefined).filter(
      ({ verb, plural }) => plural === "events" || verb === "impersonate" || plural === "validatingadmissionpolicies",
    );
    const problem = missingRights(missing, "kubectl apply -f role.yaml");
    assert.deepEqual(problem?.parts, [
      "impersonate serviceaccounts inlay",
      "get validatingadmissionpolicies.admissionregistration.k8s.io",
      "create events.events.k8s.io",
      "impersonate userextras.authentication.k8s.io/inlay.dev/binding",
    ]);
    assert.match(
      problem.message,
      /lacks permissions \(impersonate serviceaccounts inlay; .*run: kubectl apply -f role\.yaml$/,
    );
  });
});
