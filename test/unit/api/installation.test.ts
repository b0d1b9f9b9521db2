/** What an installation lets bindings write: closed namespaces, denied and allowed writes. */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  Installation,
  type InstallationRules,
  SOME_NAMESPACE,
  type Where,
  type WriteRule,
  whereOf,
} from "../../../src/api/installation.ts";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject } from "../../../src/apimachinery/objects.ts";

const harbor = { group: "goharbor.io", kind: "HarborCluster" };
const secret = { group: "", kind: "Secret" };
const namespace = { group: "", kind: "Namespace" };
/** In place of a namespace, for a cluster-scoped object. */
const CLUSTER = Symbol("cluster");
const paths = (...texts: string[]) => texts.map((text) => FieldPath.parse(text));

function refusal(
  rules: Omit<InstallationRules, "ownNamespace">,
  kind = harbor,
  where: Where | typeof CLUSTER = "team",
  writes: string[] = ["spec.a"],
  manifest?: JsonObject,
) {
  const installation = new Installation({ ownNamespace: "inlay-system", ...rules });
  return installation.refusal(kind, where === CLUSTER ? undefined : where, {
    paths: paths(...writes),
    ...(manifest && { manifest }),
  });
}
const denied = (rule: WriteRule, ...more: [typeof harbor?, (Where | typeof CLUSTER)?, string[]?, JsonObject?]) =>
  refusal({ deny: [rule] }, ...more)?.reason;
const allowed = (rule: WriteRule, ...more: [typeof harbor?, (Where | typeof CLUSTER)?, string[]?, JsonObject?]) =>
  refusal({ allow: [rule] }, ...more)?.reason;

describe("an installation", () => {
  it("opens its own namespace if it is installed for that namespace only", () => {
    const one = new Installation({ ownNamespace: "registry", scope: "registry" });
    assert.equal(one.closedNamespace("registry"), undefined);
    assert.equal(one.closedNamespace("kube-system")?.reason, "ForbiddenNamespace");
    const beside = new Installation({ ownNamespace: "inlay-system", scope: "registry" });
    assert.equal(beside.closedNamespace("inlay-system")?.reason, "ForbiddenNamespace");
  });

  it("closes kube-system and its own namespace, for writes and for bindings there", () => {
    const installation = new Installation({ ownNamespace: "inlay-system" });
    for (const closed of ["kube-system", "inlay-system"]) {
      assert.equal(refusal({}, harbor, closed)?.reason, "ForbiddenNamespace");
      assert.equal(installation.closedNamespace(closed)?.reason, "ForbiddenNamespace");
    }
    for (const open of ["team", "kube-systems", "default"]) assert.equal(installation.closedNamespace(open), undefined);
    assert.equal(refusal({}, harbor, CLUSTER), undefined);
    assert.equal(refusal({}, harbor, SOME_NAMESPACE), undefined);
  });

  it("opens the namespaces that allowSystemNamespaces lists, and refuses other names", () => {
    assert.equal(refusal({ allowSystemNamespaces: ["kube-system"] }, harbor, "kube-system"), undefined);
    assert.equal(
      refusal({ allowSystemNamespaces: ["kube-system"] }, harbor, "inlay-system")?.reason,
      "ForbiddenNamespace",
    );
    assert.throws(() => refusal({ allowSystemNamespaces: ["kube-sytem"] }), /kube-sytem is not a closed namespace/);
  });

  it("restarts by annotations of Reloader where the configuration says so, and never in closed namespaces", () => {
    const of = (rules: object) => new Installation({ ownNamespace: "inlay-system", ...rules });
    const reloader = { namespaces: ["*"], autoReloadAll: false, jobs: false };
    const where = (installation: Installation) =>
      ["team", "shop", "kube-system", "inlay-system"].filter((each) => installation.isReloading(each));
    assert.deepEqual(where(of({})), []);
    assert.deepEqual(where(of({ reloader })), ["team", "shop"]);
    assert.deepEqual(where(of({ reloader: { ...reloader, namespaces: ["sh?p"] } })), ["shop"]);
    assert.deepEqual(where(of({ reloader: { ...reloader, exceptNamespaces: ["t*m"] } })), ["shop"]);
    assert.deepEqual(where(of({ reloader, scope: "shop" })), ["shop"]);
    assert.deepEqual(where(of({ reloader, allowSystemNamespaces: ["kube-system"] })), ["team", "shop", "kube-system"]);
  });

  it("applies the rules of a namespace to its Namespace object", () => {
    assert.equal(whereOf(namespace, undefined, "kube-system"), "kube-system");
    assert.equal(whereOf(namespace, undefined, undefined), SOME_NAMESPACE);
    assert.equal(whereOf({ group: "example.com", kind: "Namespace" }, "team", "kube-system"), "team");
    assert.equal(whereOf(harbor, undefined, "x"), undefined);
  });

  it("denies kinds by group and kind, with * and ?", () => {
    assert.equal(denied({ kinds: ["Harbor*"] }), "ForbiddenKind");
    assert.equal(denied({ apiGroups: ["*.io"] }), "ForbiddenKind");
    assert.equal(denied({ apiGroups: ["goharbor.io"], kinds: ["HarborProject"] }), undefined);
    assert.equal(denied({ apiGroups: [""] }), undefined);
    assert.equal(denied({ apiGroups: [""] }, secret), "ForbiddenKind");
  });

  it("denies writes to the objects in a namespace", () => {
    assert.equal(denied({ namespaces: ["te?m"] }), "ForbiddenNamespace");
    assert.equal(denied({ namespaces: ["prod-*"] }), undefined);
    assert.equal(denied({ namespaces: ["*"] }, harbor, CLUSTER), undefined);
    assert.equal(denied({ namespaces: ["*"] }, harbor, SOME_NAMESPACE), undefined);
  });

  it("denies paths, with their children, and their parents as one value", () => {
    for (const path of ["spec.a", "spec.a.b", "spec", 'spec["a"]', "spec.a[name=x].y"]) {
      assert.equal(denied({ paths: paths("spec.a") }, harbor, "team", [path]), "ForbiddenPath", path);
    }
    for (const path of ["spec.ab", "data.a", "spec.b.a"]) {
      assert.equal(denied({ paths: paths("spec.a") }, harbor, "team", [path]), undefined, path);
    }
    assert.equal(denied({ paths: paths("spec.l[name=x].y") }, harbor, "team", ["spec.l[0].y"]), "ForbiddenPath");
    assert.equal(denied({ paths: paths("spec.l[name=x]") }, harbor, "team", ["spec.l[name=z].y"]), undefined);
  });

  it("applies the rules to manifests too", () => {
    const manifest = { metadata: { labels: { a: "b" } }, spec: { a: { b: 1 }, list: [{ name: "x" }], t: "text" } };
    const there = (path: string) => denied({ paths: paths(path) }, harbor, "team", [], manifest);
    for (const path of ["spec.a", "spec.a.b", "spec.list[name=x].y", "spec.t.below", "metadata.labels.a"]) {
      assert.equal(there(path), "ForbiddenPath", path);
    }
    for (const path of ["spec.c", "spec.a.c", "data", "metadata.annotations"])
      assert.equal(there(path), undefined, path);
    const outside = (...texts: string[]) => allowed({ paths: paths(...texts) }, harbor, "team", [], manifest);
    assert.equal(outside("spec", "metadata.labels"), undefined);
    assert.equal(outside("spec.a", "spec.list", "spec.t", "metadata"), undefined);
    assert.equal(outside("spec"), "ForbiddenPath");
    assert.equal(outside("spec.list[name=x]", "spec.a", "spec.t", "metadata"), "ForbiddenPath");
    assert.equal(allowed({ paths: paths("data") }, harbor, "team", [], {}), undefined);
  });

  it("denies only what matches all conditions of a rule", () => {
    const rule = { apiGroups: ["goharbor.io"], namespaces: ["prod"], paths: paths("spec.a") };
    assert.equal(denied(rule, harbor, "prod"), "ForbiddenPath");
    assert.equal(denied(rule, harbor, "team"), undefined);
    assert.equal(denied(rule, secret, "prod"), undefined);
    assert.equal(denied(rule, harbor, "prod", ["spec.b"]), undefined);
  });

  it("allows everything without an allow rule, and else only what a rule allows", () => {
    assert.equal(refusal({ allow: [] }), undefined);
    assert.equal(allowed({ kinds: ["HarborCluster"] }), undefined);
    assert.equal(allowed({ kinds: ["HarborCluster"] }, secret), "ForbiddenKind");
    assert.equal(allowed({ namespaces: ["team"] }), undefined);
    assert.equal(allowed({ namespaces: ["prod"] }), "ForbiddenNamespace");
    assert.equal(allowed({ namespaces: ["*"] }, harbor, CLUSTER), "ForbiddenNamespace");
    assert.equal(allowed({ namespaces: ["prod"] }, harbor, SOME_NAMESPACE), undefined);
    assert.equal(allowed({ paths: paths("spec") }), undefined);
    assert.equal(allowed({ paths: paths("spec.a.b") }), "ForbiddenPath");
  });

  it("allows a target whose paths several rules allow together", () => {
    const allow = [{ kinds: ["HarborCluster"], paths: paths("spec.a") }, { paths: paths("spec.b") }];
    assert.equal(refusal({ allow }, harbor, "team", ["spec.a", "spec.b.c"]), undefined);
    assert.equal(refusal({ allow }, secret, "team", ["spec.a", "spec.b.c"])?.reason, "ForbiddenPath");
  });

  it("names the rule that denies a write, with its message", () => {
    const deny = [{ kinds: ["Other"] }, { kinds: ["HarborCluster"], message: "use the chart" }];
    const { message = "" } = refusal({ deny }) ?? {};
    assert.match(message, /HarborCluster of goharbor\.io in namespace team \(targets\.deny\[1\]\); use the chart$/);
    assert.match(refusal({ deny: [{ kinds: ["*"] }] })?.message ?? "", /ask the administrator of Inlay/);
  });

  it("keeps deny rules and closed namespaces whatever the allow rules say", () => {
    const glob = fc.constantFrom("*", "team", "kube-system", "t*");
    const rule = fc.record({ namespaces: fc.array(glob, { minLength: 1 }) });
    fc.assert(
      fc.property(fc.array(rule), fc.array(rule), fc.constantFrom("team", "kube-system"), (deny, allow, where) => {
        const refused = refusal({ deny }, harbor, where);
        if (refused) assert.equal(refusal({ deny, allow }, harbor, where)?.message, refused.message);
        if (where === "kube-system") assert.ok(refused);
      }),
    );
  });
});
