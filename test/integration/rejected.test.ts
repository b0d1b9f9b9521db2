/** Shows that a binding reports what an admission policy of the platform refuses, and writes once the policy is deleted. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, harborTarget } from "../controller/test-namespace.ts";

describe("a binding with bad input", () => {
  it("whose value a policy refuses reports Rejected, whichever status code the policy returns", async () => {
    const team = await createNamespace();
    const value = secretText("access");
    await team.secret("bucket", { accessKeyID: value });
    await team.harbor("harbor");
    await team.harbor("other");
    const admission = "/apis/admissionregistration.k8s.io/v1";
    const name = `${team.namespace}-keys`;
    const path = "object.spec.storage.spec.s3.accesskey";
    await team.api.create(`${admission}/validatingadmissionpolicies`, {
      metadata: { name },
      spec: {
        matchConstraints: {
          resourceRules: [
            { apiGroups: ["goharbor.io"], apiVersions: ["*"], resources: ["harborclusters"], operations: ["UPDATE"] },
          ],
        },
        validations: [{ expression: `!has(${path})`, messageExpression: `'no ' + ${path}`, reason: "Forbidden" }],
      },
    });
    await team.api.create(`${admission}/validatingadmissionpolicybindings`, {
      metadata: { name },
      spec: {
        policyName: name,
        validationActions: ["Deny"],
        matchResources: { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": team.namespace } } },
      },
    });
    // A policy takes effect some time after it is created.
    await eventually(
      () => assert.rejects(team.editS3({ accesskey: "x" }, "kubectl-edit", "other"), { status: 403 }),
      30_000,
    );
    const fields = {
      accesskey: { from: { source: "bucket", key: "accessKeyID" } },
      regionendpoint: { template: "s3" },
    };
    await team.bind("harbor-s3", { sources: [{ secret: { name: "bucket" } }], targets: [harborTarget(fields)] });
    const { status } = await team.until("harbor-s3", "Rejected");
    assert.match(status.targets[0].message, /403 Forbidden\); .*admission policy/);
    const text = JSON.stringify([status, await team.events("harbor-s3")]);
    assert.doesNotMatch(text, /kubectl create|denied request/);
    assert.ok(!text.includes(value));
    await team.api.delete(`${admission}/validatingadmissionpolicybindings/${name}`);
    await eventually(() => team.editS3({ accesskey: "x" }, "kubectl-edit", "other"), 30_000);
    // Without a change it retries every half minute, which the tests of its reconciler show.
    const rotated = secretText("access");
    await team.secret("bucket", { accessKeyID: rotated });
    await team.until("harbor-s3", "Synced");
    assert.equal((await team.s3()).accesskey, rotated);
  });
});
