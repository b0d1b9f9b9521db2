/** What Inlay reports about its admission policies. The shipped ones are all right. */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../../../../src/apimachinery/objects.ts";
import {
  ALL_POLICIES,
  judgePolicies,
  policiesOf,
  type SeenPolicy,
} from "../../../../src/controllers/installation/policies.ts";
import { ownVersion } from "../../../../src/manager/own-version.ts";

const COMMAND = "kubectl apply -f deploy/policies/";
const folder = join(import.meta.dirname, "..", "..", "..", "..", "deploy", "policies");

async function shipped(): Promise<SeenPolicy[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith(".yaml"));
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")));
  const objects: KubeObject[] = texts.flatMap((text) => parseAllDocuments(text).map((each) => each.toJS()));
  const of = (kind: string) =>
    new Map(objects.filter((each) => each.kind === kind).map((each) => [each.metadata.name, each]));
  const bindings = of("ValidatingAdmissionPolicyBinding");
  return [...of("ValidatingAdmissionPolicy")].map(([name, policy]) => ({ name, policy, binding: bindings.get(name) }));
}

describe("the admission policies of an installation", () => {
  let seen: SeenPolicy[];
  const replace = (name: string, more: Partial<SeenPolicy>) =>
    seen.map((each) => (each.name === name ? { ...each, ...more } : each));
  const find = (name: string) => seen.find((each) => each.name === name) ?? assert.fail();
  const changed = (object: KubeObject | undefined, spec: object, labels?: Record<string, string>): KubeObject => {
    assert.ok(object !== undefined);
    const { metadata } = object;
    return {
      ...object,
      metadata: { ...metadata, ...(labels && { labels }) },
      spec: { ...(object["spec"] as object), ...spec },
    };
  };
  const found = (name: string, more: Partial<SeenPolicy>, version = ownVersion()) =>
    judgePolicies(replace(name, more), version, COMMAND);

  before(async () => {
    seen = await shipped();
  });

  it("are those of deploy/policies, all of this version", () => {
    assert.deepEqual(seen.map(({ name }) => name).sort(), ALL_POLICIES.toSorted());
    assert.deepEqual(judgePolicies(seen, ownVersion(), COMMAND), undefined);
    for (const { policy, binding } of seen)
      for (const each of [policy, binding])
        assert.equal(each?.metadata.labels?.["app.kubernetes.io/version"], ownVersion());
  });

  it("do not include the one on compositions in an installation for one namespace", () => {
    assert.deepEqual(
      ALL_POLICIES.filter((name) => !policiesOf("registry").includes(name)),
      ["inlay-composition-authors"],
    );
  });

  it("are reported by name if they are missing, not bound, or do not deny, with the command that fixes it", () => {
    const name = "inlay-protect";
    const { policy, binding } = find(name);
    for (const [more, what] of [
      [{ policy: undefined }, "missing"],
      [{ binding: undefined }, "without a ValidatingAdmissionPolicyBinding"],
      [{ binding: changed(binding, { policyName: "other" }) }, "without a ValidatingAdmissionPolicyBinding"],
      [{ binding: changed(binding, { validationActions: ["Audit"] }) }, "bound without Deny"],
      [{ policy: changed(policy, {}, {}) }, "without the label app.kubernetes.io/version"],
    ] as const) {
      const problem = found(name, more);
      assert.deepEqual(problem?.parts, [name]);
      assert.ok(problem.message.includes(`(${what}: ${name})`), problem.message);
      assert.match(problem.message, /kubectl apply -f deploy\/policies\/$/);
    }
  });

  it("may be newer than the controller, and not older", () => {
    const { binding } = find("inlay-replicas");
    const of = (version: string) => ({ binding: changed(binding, {}, { "app.kubernetes.io/version": version }) });
    const own = "0.10.0";
    const newer = seen.map((each) => ({
      ...each,
      policy: changed(each.policy, {}, { "app.kubernetes.io/version": own }),
    }));
    seen = newer.map((each) => ({ ...each, binding: changed(each.binding, {}, { "app.kubernetes.io/version": own }) }));
    assert.equal(judgePolicies(seen, own, COMMAND), undefined);
    assert.equal(found("inlay-replicas", of("0.11.0"), own), undefined);
    assert.match(
      found("inlay-replicas", of("0.9.12"), own)?.message ?? "",
      /of the older version 0\.9\.12: inlay-replicas/,
    );
  });

  it("of a pre-release are older than the release and than later pre-releases", () => {
    const versions = [
      "0.9.0",
      "0.10.0-alpha",
      "0.10.0-alpha.1",
      "0.10.0-alpha.x",
      "0.10.0-rc.2",
      "0.10.0-rc.10",
      "0.10.0",
    ];
    for (const [at, own] of versions.entries()) {
      for (const [other, version] of versions.entries()) {
        const labels = { "app.kubernetes.io/version": version };
        const all = seen.map(({ name, policy, binding }) => {
          return { name, policy: changed(policy, {}, labels), binding: changed(binding, {}, labels) };
        });
        const message = judgePolicies(all, own, COMMAND)?.message ?? "";
        assert.equal(message.includes(`of the older version ${version}: `), other < at, `${version} for ${own}`);
      }
    }
  });
});
