/**
 * The objects that are claims of a composition, the namespaces of their bindings, and the reasons why a binding is not
 * created.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { compileComposition } from "../../src/composition/compile.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { progressOf } from "../controller/aged.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import {
  ACCESS_KEY_BASE,
  compose,
  composedNames,
  compositionPath,
  HARBOR_CLAIMS,
  installCompositions,
  READS_SECRETS,
  removeCompositions,
  TO_CLAIM,
  untilComposition,
} from "../controller/compositions.ts";
import { eventually } from "../controller/eventually.ts";
import { harborCluster, installHarbors } from "../controller/harbor.ts";
import { secretText } from "../controller/leak-detector.ts";
import { applyFile } from "../controller/manifests.ts";
import { Installation } from "../controller/one-namespace.ts";
import { lineOfPage, paste } from "../controller/paste.ts";
import { stopSharedController } from "../controller/shared.ts";
import { createNamespace, type Rule, type TestNamespace } from "../controller/test-namespace.ts";

const NAMESPACE_CLAIMS: Rule = { apiGroups: [""], resources: ["namespaces"], verbs: ["list", "watch"] };
const SECRET_CLAIMS: Rule = { apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"] };

async function newTeam(): Promise<{ team: TestNamespace; accessKey: string }> {
  const team = await createNamespace();
  const accessKey = secretText("access");
  await team.secret("bucket", { accessKeyID: accessKey });
  await team.harbor();
  return { team, accessKey };
}

const named = (base: object = ACCESS_KEY_BASE) => [{ name: "s3", base, patches: [TO_CLAIM] }];
/** The composition as a user writes it in git. */
const harborSpec = () => (harborCluster("any") as AnyObject)["spec"];
const targeting = (base: AnyObject, more: object) => ({
  ...base,
  spec: { ...base.spec, targets: base.spec.targets.map((each: object) => ({ ...each, ...more })) },
});

describe("the claims of a composition", () => {
  before(() => installCompositions([...HARBOR_CLAIMS, READS_SECRETS, NAMESPACE_CLAIMS, SECRET_CLAIMS]));
  after(() => removeCompositions());

  it("can be namespaces, each with a binding in it that it owns, while it has a label", async () => {
    const { team, accessKey } = await newTeam();
    const label = `claim-${team.namespace}`;
    await compose(team, "harbor", {
      for: { apiVersion: "v1", kind: "Namespace", selector: { matchLabels: { [label]: "yes" } } },
      bindings: [{ name: "s3", base: targeting(ACCESS_KEY_BASE, { name: "harbor" }) }],
    });
    await untilComposition(team, "harbor", "Ready");
    assert.deepEqual(await composedNames(team), []);
    const path = `/api/v1/namespaces/${team.namespace}`;
    const { uid } = (await team.api.merge(path, { metadata: { labels: { [label]: "yes" } } })).metadata;
    const binding = await team.until(`${team.namespace}-s3`, "Synced");
    assert.deepEqual(
      binding["metadata"].ownerReferences.map((each: AnyObject) => each.uid),
      [uid],
    );
    assert.equal((await team.s3()).accesskey, accessKey);
    await team.api.merge(path, { metadata: { labels: { [label]: null } } });
    await eventually(async () => assert.deepEqual(await composedNames(team), []));
  });

  it("can have their bindings in another namespace, without an owner, and these are deleted with them too", async () => {
    const { team } = await newTeam();
    const { team: other } = await newTeam();
    const base = { ...targeting(ACCESS_KEY_BASE, { name: "harbor" }), metadata: { namespace: other.namespace } };
    await compose(team, "harbor", { bindings: [{ name: "s3", base }] });
    const { metadata } = await other.until("harbor-s3", "Synced");
    assert.equal(metadata.ownerReferences, undefined);
    assert.equal(metadata.annotations["inlay.dev/claim"], `${team.namespace}/harbor`);
    await team.api.delete(team.harborPath());
    await eventually(async () => assert.deepEqual(await composedNames(other), []));
  });

  it("can be Secrets, which are sources themselves without a grant", async () => {
    const { team, accessKey } = await newTeam();
    await team.api.merge(`${team.path("v1", "secrets")}/bucket`, { metadata: { labels: { cluster: "harbor" } } });
    const source = { fromFieldPath: "metadata.name", toFieldPath: "spec.sources[0].secret.name" };
    const target = { fromFieldPath: "metadata.labels.cluster", toFieldPath: "spec.targets[0].name" };
    await compose(team, "secrets", {
      for: {
        apiVersion: "v1",
        kind: "Secret",
        namespaceSelector: { names: [team.namespace] },
        selector: { matchExpressions: [{ key: "cluster", operator: "Exists" }] },
      },
      bindings: [{ name: "s3", base: ACCESS_KEY_BASE, patches: [source, target] }],
    });
    await team.until("bucket-s3", "Synced");
    assert.equal((await team.s3()).accesskey, accessKey);
  });

  it("do not include objects that bindings created", async () => {
    const { team } = await newTeam();
    const grow = { name: "grow", base: targeting(ACCESS_KEY_BASE, { create: { manifest: { spec: harborSpec() } } }) };
    await team.grant([{ apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: ["create", "delete"] }], {
      role: "makes",
    });
    const next = {
      ...TO_CLAIM,
      transforms: [{ type: "string", string: { type: "Format", fmt: "%s-next" } }],
    };
    await compose(team, "harbor", { bindings: [{ ...grow, patches: [next] }] });
    await team.until("harbor-grow", "Synced");
    assert.ok(await team.api.find(team.harborPath("harbor-next")));
    const { status } = await untilComposition(team, "harbor", "Ready");
    assert.equal(status.claims, 1);
    assert.deepEqual(await composedNames(team), ["harbor-grow"]);
  });

  it("of two compositions get two bindings, of which the older one writes", async () => {
    const { team } = await newTeam();
    await compose(team, "first", { bindings: [{ name: "first", base: ACCESS_KEY_BASE, patches: [TO_CLAIM] }] });
    await untilComposition(team, "first", "Ready");
    await compose(team, "second", { bindings: [{ name: "second", base: ACCESS_KEY_BASE, patches: [TO_CLAIM] }] });
    await team.until("harbor-second", "Conflict");
    await untilComposition(team, "second", "BindingsNotReady");
    await team.api.delete(compositionPath(team, "first"));
    await team.until("harbor-second", "Synced");
  });

  it("make their composition Stalled for a path that its targets do not have, and not one moment longer", async () => {
    const { team } = await newTeam();
    const fields = [{ path: "spec.storge", from: { source: "bucket", key: "accessKeyID" } }];
    await compose(team, "harbor", { bindings: named(targeting(ACCESS_KEY_BASE, { fields })) });
    await untilComposition(team, "harbor", "BindingsStalled");
    const path = compositionPath(team, "harbor");
    assert.equal(await progressOf(team.api, path), "Stalled BindingsStalled");
    const { metadata } = await team.api.merge(path, { spec: { bindings: named() } });
    const reported: string[] = [];
    for await (const { object } of team.api.watch(path.replace(/\/[^/]*$/, ""), 30)) {
      if (object.metadata.uid !== metadata.uid || object.status.observedGeneration !== metadata.generation) continue;
      reported.push(...object.status.conditions.map(({ type, reason }: AnyObject) => `${type} ${reason}`));
      if (reported.at(-1) === "Ready Ready") break;
    }
    assert.equal(reported.at(-1), "Ready Ready");
    assert.deepEqual(
      reported.filter((each) => each.startsWith("Stalled")),
      [],
    );
  });

  it("do not include objects that exceptNames matches, by their own name or that of their namespace", async () => {
    const { team } = await newTeam();
    const { team: other } = await newTeam();
    await team.harbor("harbor-old");
    const of = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster" };
    const within = { names: [team.namespace, other.namespace] };
    const except = (exceptNames: string[], namespaces: string[]) => ({
      ...of,
      selector: { exceptNames: ["pulse*", ...exceptNames] },
      namespaceSelector: { ...within, exceptNames: namespaces },
    });
    const untilMade = (...expected: string[][]) =>
      eventually(async () => assert.deepEqual([await composedNames(team), await composedNames(other)], expected));
    await compose(team, "harbor", { for: except(["*-old"], [other.namespace]), bindings: named() });
    await untilMade(["harbor-s3"], []);
    const change = (claims: object) => team.api.merge(compositionPath(team, "harbor"), { spec: { for: claims } });
    await change(except(["harbor"], [`${other.namespace}?`, "TEAM-*"]));
    await untilMade(["harbor-old-s3"], []);
    await change(except(["harbor-?"], [`${other.namespace}?`, "TEAM-*"]));
    await untilMade(["harbor-old-s3", "harbor-s3"], ["harbor-s3"]);
    await change(except([], [team.namespace]));
    await untilMade([], ["harbor-s3"]);
  });

  it("are reported as NameTaken while another binding has the name, and get a binding when that one is deleted", async () => {
    const { team } = await newTeam();
    const own = targeting(ACCESS_KEY_BASE, { name: "harbor" });
    await team.bind("harbor-s3", (own as AnyObject)["spec"]);
    const { uid } = (await team.until("harbor-s3", "Synced"))["metadata"];
    await compose(team, "harbor", { bindings: named() });
    await untilComposition(team, "harbor", "NameTaken");
    assert.equal((await team.binding("harbor-s3"))["metadata"].uid, uid);
    await team.api.delete(team.bindingPath("harbor-s3"));
    await untilComposition(team, "harbor", "Ready");
    assert.notEqual((await team.binding("harbor-s3"))["metadata"].uid, uid);
  });

  it("are reported as BindingNotMade while a policy refuses the binding", async () => {
    const { team } = await newTeam();
    const base = { spec: { ...ACCESS_KEY_BASE.spec, sources: [{ name: "bucket", configMap: { name: "bucket" } }] } };
    await compose(team, "harbor", { bindings: named(base) });
    const { status } = await untilComposition(team, "harbor", "BindingNotMade");
    assert.equal(status.problems[0].claim, `${team.namespace}/harbor`);
    await eventually(async () =>
      assert.ok((await team.events("harbor")).some(({ reason }) => reason === "BindingNotMade")),
    );
    await team.api.merge(compositionPath(team, "harbor"), { spec: { bindings: named() } });
    await untilComposition(team, "harbor", "Ready");
  });
});

describe("a composition on the API server", () => {
  before(() => installCompositions());
  after(() => removeCompositions());

  it("is accepted with every field of the example, and compiles", async () => {
    const { team } = await newTeam();
    const example = parse(await readFile("apis/examples/bindingcomposition.yaml", "utf8"));
    const { spec } = await compose(team, "everything", { ...example.spec, suspend: true });
    assert.deepEqual(spec, { ...example.spec, suspend: true });
    const kind = { group: "goharbor.io", kind: "HarborCluster", namespaced: true };
    assert.equal(compileComposition(spec, kind).bindings.length, 1);
  });

  it("is not accepted with an error, and names its path", async () => {
    const { team } = await newTeam();
    const wrong: [change: object, place: string][] = [
      [{ type: "FromEnvironmentFieldPath" }, "bindings[s3].patches[0].type"],
      [{ type: "FromComposite" }, "bindings[s3].patches[0].type"],
      [{ type: "PatchSet", patchSetName: "none" }, "bindings[s3].patches[0].patchSetName"],
      [{ transforms: [{ type: "regex" }] }, "bindings[s3].patches[0].transforms[0].type"],
      [
        { transforms: [{ type: "match", match: { patterns: [{ type: "regexp", regexp: "(", result: 1 }] } }] },
        "bindings[s3].patches[0].transforms[0].match.patterns[0].regexp",
      ],
      [{ toFieldPath: "spec.serviceAccountName" }, "bindings[s3].patches[0].toFieldPath"],
    ];
    await compose(team, "harbor", { bindings: named() });
    await untilComposition(team, "harbor", "Ready");
    for (const [change, place] of wrong) {
      const patch = "type" in change && change.type === "PatchSet" ? change : { ...TO_CLAIM, ...change };
      const bindings = [{ name: "s3", base: ACCESS_KEY_BASE, patches: [patch] }];
      await team.api.merge(compositionPath(team, "harbor"), { spec: { bindings } });
      const { status } = await untilComposition(team, "harbor", "InvalidComposition", "Accepted");
      const [{ message }] = status.conditions;
      assert.ok(message.startsWith(`${place}`), message);
    }
    assert.deepEqual(await composedNames(team), ["harbor-s3"]);
    const details = [{ ...named()[0], connectionDetails: [] }];
    await team.api.merge(compositionPath(team, "harbor"), { spec: { bindings: details } });
    await untilComposition(team, "harbor", "InvalidComposition", "Accepted");
    await team.api.merge(compositionPath(team, "harbor"), { spec: { bindings: named() } });
    await untilComposition(team, "harbor", "Ready");
  });

  it("is refused with a name that is too long for a label", async () => {
    const { team } = await newTeam();
    await assert.rejects(compose(team, "x".repeat(60), { bindings: named() }), /at most 63 characters/);
  });

  it("reports that it is out of the scope of an Inlay for one namespace, if that Inlay may read it", async () => {
    await stopSharedController();
    const one = await Installation.make();
    const { team } = one;
    for (const command of [
      "clusterrole inlay-sees",
      "clusterrole inlay-reports",
      "clusterrolebinding inlay-sees",
      "clusterrolebinding inlay-reports",
    ])
      await paste(
        (await lineOfPage("../deploy/namespaced/README.md", `kubectl create ${command}`)).replaceAll(
          "team-a",
          team.namespace,
        ),
      );
    try {
      await team.harbor();
      await compose(team, "harbor", { bindings: named() });
      await one.start();
      const { metadata } = await untilComposition(team, "harbor", "OutOfScope", "Accepted");
      assert.equal(metadata.finalizers, undefined);
      assert.deepEqual(await composedNames(team), []);
    } finally {
      await one.stop();
      for (const name of ["inlay-sees-compositions", "inlay-reports-compositions"]) {
        await team.api.remove(`/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/${name}-${team.namespace}`);
        await team.api.remove(`/apis/rbac.authorization.k8s.io/v1/clusterroles/${name}`);
      }
    }
  });
});

const CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const MAY_GET = "test-may-get-claims";

describe("a claim whose kind has versions that nothing converts", () => {
  before(async () => {
    const withoutGet = HARBOR_CLAIMS.map((rule) => ({ ...rule, verbs: rule.verbs.filter((verb) => verb !== "get") }));
    await installCompositions([...withoutGet, READS_SECRETS]);
    await applyFile(new Api(controlPlane()), join(import.meta.dirname, "..", "..", "samples", "harbor", "crd"));
  });
  after(async () => {
    await removeCompositions();
    await new Api(controlPlane()).remove(`${CLUSTER_ROLES}/${MAY_GET}`);
    await installHarbors(new Api(controlPlane()));
  });

  it("is written after the account may get it, which the problem names with the command", async () => {
    const { team } = await newTeam();
    const annotation = "example.com/state";
    const shown = {
      type: "ToCompositeFieldPath",
      fromFieldPath: "status.conditions[type=Ready].reason",
      toFieldPath: `metadata.annotations[${annotation}]`,
    };
    await compose(team, "harbor", { bindings: [{ name: "s3", base: ACCESS_KEY_BASE, patches: [TO_CLAIM, shown] }] });
    const { status } = await untilComposition(team, "harbor", "Forbidden");
    const [{ message }] = status.problems;
    assert.match(message, /may not get harborclusters\.goharbor\.io\/harbor in/);
    assert.match(message, /--verb=get,patch --resource=harborclusters\.goharbor\.io /);
    await team.api.create(CLUSTER_ROLES, {
      metadata: { name: MAY_GET, labels: { "inlay.dev/aggregate-to-compositions": "true" } },
      rules: [{ apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: ["get"] }],
    });
    await eventually(async () =>
      assert.equal((await team.api.get(team.harborPath())).metadata.annotations[annotation], "Synced"),
    );
    await untilComposition(team, "harbor", "Ready");
  });
});
