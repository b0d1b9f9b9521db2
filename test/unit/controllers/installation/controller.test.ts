/** When the controller checks its installation, and when it reports what it found. */
import assert from "node:assert/strict";
import type { ObjectRef, Resource } from "../../../../src/apimachinery/objects.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { InstallationController } from "../../../../src/controllers/installation/controller.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import type { InstallationProblem } from "../../../../src/observability/installation-problems.ts";
import { fakeClient } from "../../fakes.ts";

/** A cluster in which everything is as it should be, unless a test changes it. */
class Fixture {
  /** Whether the account is allowed a verb on a resource. */
  isAllowed = (_verb: string, _plural: string, _name?: string) => true;
  digestKey: Problem | undefined;
  readonly missing = new Set<string>();
  readonly requested: string[] = [];
  readonly reported = new Map<string, InstallationProblem | undefined>();
  readonly said: string[] = [];
  readonly controller: InstallationController;

  constructor(scope?: string, ownNamespace = scope ?? "inlay-system") {
    const client = fakeClient({
      rules: async () => ({ incomplete: true, resourceRules: [] }),
      may: async (_: string, verb: string, { plural }: Pick<Resource, "plural">, _namespace?: string, name?: string) =>
        this.isAllowed(verb, plural, name),
      get: async (_: string, { resource, name }: ObjectRef) => {
        this.requested.push(name);
        if (this.missing.has(name)) throw new ApiError("GET", 404, "NotFound");
        const labels = { "app.kubernetes.io/version": "0.1.0" };
        const spec = { policyName: name, validationActions: ["Deny"] };
        return { apiVersion: "v1", kind: resource.kind, metadata: { name, uid: name, labels }, spec };
      },
    });
    this.controller = new InstallationController({
      installation: { ownNamespace, scope },
      client,
      digestKeys: { verify: async () => this.digestKey },
      problems: {
        report: (check, problem) => this.reported.set(check, problem),
        withdraw: (check) => this.reported.delete(check),
      },
      replica: { version: "0.1.0" },
      log: { info: (_, text) => this.said.push(text) },
    });
  }

  /** Checks, and returns what was reported and when the next check is. */
  async check(times = 1): Promise<{ wrong: string[]; seconds: number }> {
    let seconds = 0;
    for (let time = 0; time < times; time++) {
      const result = await this.controller.reconcile();
      assert.ok("ms" in result);
      seconds = result.ms / 1_000;
    }
    return { wrong: [...this.reported].flatMap(([check, problem]) => (problem ? [check] : [])), seconds };
  }
}

describe("the check of the installation", () => {
  it("finds nothing in a complete one, and is repeated within a minute", async () => {
    const one = new Fixture();
    assert.deepEqual(await one.check(), { wrong: [], seconds: 30 });
    assert.deepEqual([...one.reported.keys()].sort(), ["digest_key", "permissions", "policies"]);
    assert.equal(one.requested.length, 20);
  });

  it("reports a problem that is still there two seconds later, and soon after it is fixed that it is gone", async () => {
    const one = new Fixture();
    one.missing.add("inlay-protect");
    assert.deepEqual(await one.check(), { wrong: [], seconds: 2 });
    assert.deepEqual(await one.check(), { wrong: ["policies"], seconds: 6 });
    assert.deepEqual(await one.check(2), { wrong: ["policies"], seconds: 8 });
    assert.equal((await one.check(60)).seconds, 30);
    assert.deepEqual(one.reported.get("policies")?.parts, ["inlay-protect"]);
    one.missing.clear();
    assert.deepEqual(await one.check(), { wrong: [], seconds: 30 });
  });

  it("reports missing permissions with the command for this installation", async () => {
    for (const [one, command] of [
      [new Fixture(), "kubectl apply -f deploy/manifests/10-controller-role.yaml"],
      [
        new Fixture(undefined, "my-inlay"),
        "sed 's/inlay-system/my-inlay/g' deploy/manifests/10-controller-role.yaml | kubectl apply -f -",
      ],
      [
        new Fixture("team-a"),
        "sed 's/registry/team-a/g' deploy/namespaced/10-controller-role.yaml | kubectl apply -f -",
      ],
    ] as const) {
      one.isAllowed = (_, plural) => plural !== "events";
      assert.deepEqual((await one.check(2)).wrong, ["permissions"]);
      assert.ok(one.reported.get("permissions")?.message.endsWith(`run: ${command}`));
    }
  });

  it("reports policies with the command for this installation", async () => {
    const sed = "kubectl kustomize deploy/policies | sed 's/inlay-system/my-inlay/g' | kubectl apply -f -";
    for (const [one, command] of [
      [new Fixture(), "kubectl apply -f deploy/policies/"],
      [new Fixture(undefined, "my-inlay"), sed],
      [new Fixture("team-a"), "kubectl apply -f deploy/policies/"],
    ] as const) {
      one.missing.add("inlay-account-tokens");
      assert.deepEqual((await one.check(2)).wrong, ["policies"]);
      assert.ok(one.reported.get("policies")?.message.endsWith(`run: ${command}`));
    }
  });

  it("does not request policies that the account may not read", async () => {
    const isAllowed = (_: string, plural: string) => !plural.startsWith("validating");
    const cluster = new Fixture();
    cluster.isAllowed = isAllowed;
    assert.deepEqual((await cluster.check(2)).wrong, ["permissions"]);
    assert.deepEqual(cluster.said, []);
    const one = new Fixture("team-a");
    one.isAllowed = isAllowed;
    assert.deepEqual((await one.check(2)).wrong, []);
    assert.match(
      one.said.join("\n"),
      /^can't check whether the admission policies .*deploy\/namespaced\/README\.md describes$/,
    );
    for (const each of [cluster, one]) {
      assert.deepEqual(each.requested, []);
      assert.equal(each.reported.has("policies"), false);
    }
  });

  it("does not report policies any longer when the account may not read one of them any more, and says so again", async () => {
    for (const one of [new Fixture(), new Fixture("team-a")]) {
      one.missing.add("inlay-protect");
      assert.deepEqual((await one.check(2)).wrong, ["policies"]);
      const before = one.isAllowed;
      for (const times of [1, 2]) {
        one.isAllowed = (_, plural, name) => !plural.startsWith("validating") || name !== "inlay-replicas";
        await one.check(3);
        assert.equal(one.reported.has("policies"), false);
        assert.equal(one.said.length, one.reported.get("permissions") ? 0 : times);
        one.isAllowed = before;
        assert.deepEqual((await one.check(2)).wrong, ["policies"]);
      }
    }
  });

  it("checks the policies of an installation for one namespace if it may read them, except the one on compositions", async () => {
    const one = new Fixture("team-a");
    one.missing.add("inlay-composition-authors");
    assert.deepEqual(await one.check(), { wrong: [], seconds: 30 });
    assert.equal(one.requested.length, 18);
  });

  it("reports a missing digest key", async () => {
    const one = new Fixture();
    one.digestKey = new Problem("NoDigestKey", "create it");
    assert.deepEqual((await one.check(2)).wrong, ["digest_key"]);
    assert.deepEqual(one.reported.get("digest_key"), { message: "create it", parts: ["inlay-digest-key"] });
  });
});
