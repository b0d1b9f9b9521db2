/**
 * A user may write a SecretGrant only if that user may get everything that it grants. Its schema refuses entries that would
 * grant more than they say.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { namespaceWithoutRights, policyAuthor } from "../controller/policy-author.ts";
import type { Rule, TestNamespace } from "../controller/test-namespace.ts";

const registry = { namespace: "registry" };
const bucket = { kind: "Secret", name: "bucket" };
const vault = { kind: "VaultConnection", name: "vault" };
const allConnections = { kind: "VaultConnection", selector: { names: ["*"] } };
const grant = (to: object[] = [bucket], from: object[] = [registry]) => ({
  apiVersion: "inlay.dev/v1alpha1",
  kind: "SecretGrant",
  metadata: { name: "bucket" },
  spec: { from, to },
});
const use = (...resourceNames: string[]): Rule => ({
  apiGroups: ["inlay.dev"],
  resources: ["vaultconnections"],
  ...(resourceNames.length > 0 && { resourceNames }),
  verbs: ["use"],
});
const get = (resource: string, ...resourceNames: string[]): Rule => ({
  apiGroups: [""],
  resources: [resource],
  ...(resourceNames.length > 0 && { resourceNames }),
  verbs: ["get"],
});

let team: TestNamespace;
const {
  author,
  collection: grants,
  accepted,
  bindRole,
  give,
  lets,
  refuses,
} = policyAuthor("carol", "secretgrants", () => team);
const grantPath = () => `${grants()}/bucket`;
const inNewNamespace = async () => {
  team = await namespaceWithoutRights();
};

describe("the policy on a grant's author", () => {
  before(async () => {
    await inNewNamespace();
    await bindRole("ClusterRole", "inlay-grant");
    await refuses(grant(), /inlay-grant-authors.* denied request/);
  });
  beforeEach(inNewNamespace);

  it("permits a user with the role admin, who may read everything in the namespace anyway", async () => {
    await bindRole("ClusterRole", "admin");
    await lets(grant([bucket, { kind: "ConfigMap", name: "ca" }, { kind: "Secret", selector: { names: ["*"] } }]));
    await lets(grant([vault, allConnections]));
  });

  for (const role of ["edit", "view", undefined]) {
    it(`does not refuse a user with ${role ? `the role ${role}` : "no role"}, because RBAC does`, async () => {
      if (role) await bindRole("ClusterRole", role);
      await refuses(grant(), /cannot create resource "secretgrants"/);
    });
  }

  it("refuses a user who may write grants and read nothing, or only other objects", async () => {
    await bindRole("ClusterRole", "inlay-grant");
    await refuses(grant(), /carol may not get secrets "bucket" in namespace team-\d+/);
    await bindRole("ClusterRole", "view");
    await lets(grant([{ kind: "ConfigMap", name: "ca" }]));
    await lets(grant([{ kind: "ConfigMap", selector: { names: ["*"] } }]));
    await refuses(grant(), /carol may not get secrets "bucket"/);
    await give(get("secrets", "other"));
    await lets(grant([{ kind: "Secret", name: "other" }]));
    await refuses(grant(), /carol may not get secrets "bucket"/);
  });

  it("checks the same for a grant to a composition", async () => {
    await bindRole("ClusterRole", "inlay-grant");
    const toComposition = grant([bucket], [{ composition: "harbors" }]);
    await refuses(toComposition, /carol may not get secrets "bucket"/);
    await give(get("secrets", "bucket"));
    await lets(toComposition);
  });

  const selectors: Record<string, object> = {
    "a wildcard": { names: ["b*"] },
    "exactly the permitted name": { names: ["bucket"] },
    labels: { matchLabels: { shared: "yes" } },
    "all names except some": { exceptNames: ["a*"] },
    "exactly the permitted name, without another": { names: ["bucket"], exceptNames: ["other"] },
    expressions: { names: ["bucket"], matchExpressions: [{ key: "shared", operator: "Exists" }] },
  };
  for (const [what, selector] of Object.entries(selectors)) {
    it(`requires permission for all Secrets of the namespace for a grant by ${what}`, async () => {
      await bindRole("ClusterRole", "inlay-grant");
      await give(get("secrets", "bucket"));
      await lets(grant());
      await refuses(grant([{ kind: "Secret", selector }]), /carol may not get all secrets in namespace/);
      await give(get("secrets"));
      await lets(grant([{ kind: "Secret", selector }]));
    });
  }

  it("requires permission to use a VaultConnection, and not to get it", async () => {
    await bindRole("ClusterRole", "inlay-grant");
    await bindRole("ClusterRole", "view");
    await give({ ...use(), apiGroups: [""] }, { ...use(), verbs: ["get", "update"] }, get("secrets"), use("other"));
    await lets(grant([{ ...vault, name: "other" }]));
    await refuses(grant([vault]), /carol may not use vaultconnections.inlay.dev "vault" in namespace team-\d+/);
    await refuses(grant([vault], [{ composition: "harbors" }]), /carol may not use vaultconnections.inlay.dev "vault"/);
    await give(use("vault"));
    await lets(grant([vault, bucket]));
    for (const selector of [{ names: ["vault"] }, { matchLabels: { shared: "yes" } }]) {
      const denial = /carol may not use all vaultconnections.inlay.dev in namespace/;
      await refuses(grant([{ kind: "VaultConnection", selector }]), denial);
    }
    await give(use());
    await lets(grant([allConnections]));
  });

  for (const [what, entry] of Object.entries({
    "one object": bucket,
    all: { kind: "ConfigMap", selector: { names: ["*"] } },
    "one VaultConnection": vault,
    "all VaultConnections": allConnections,
  })) {
    it(`permits the author after a grant of the rule in the message, for ${what}`, async () => {
      await bindRole("ClusterRole", "inlay-grant");
      const refusal = await refuses(grant([entry]), /with \{.*\} bound to the author/);
      await give(parse(/a Role in that namespace with (\{.*\})/.exec(refusal)?.[1] ?? "") as Rule);
      await lets(grant([entry]));
    });
  }

  it("checks each of sixteen entries", async () => {
    await bindRole("ClusterRole", "inlay-grant");
    const names = Array.from({ length: 16 }, (_, i) => `bucket-${i}`);
    await give(get("secrets", ...names));
    const to = names.map((name) => ({ kind: "Secret", name }));
    await lets(grant(to));
    for (const index of names.keys()) {
      await refuses(grant(to.with(index, { kind: "Secret", name: "foreign" })), /carol may not get secrets "foreign"/);
    }
  });

  it("does not accept a permission in another namespace as one in the grant's namespace", async () => {
    await bindRole("ClusterRole", "admin");
    await lets(grant());
    await inNewNamespace();
    await bindRole("ClusterRole", "inlay-grant");
    await refuses(grant(), /carol may not get secrets "bucket"/);
  });

  describe("for a grant that exists", () => {
    beforeEach(async () => {
      await team.api.create(grants(), grant());
      await bindRole("ClusterRole", "inlay-grant");
    });
    const patch = (body: object) => author().merge(grantPath(), body);

    it("checks a user who adds an entry, or changes what is granted, in whatever way", async () => {
      const denial = /carol may not get secrets "(bucket|other)"/;
      const wider = grant([bucket], [registry, { namespace: "mine" }]);
      const other = { spec: { to: [{ kind: "Secret", name: "other" }] } };
      await eventually(() => assert.rejects(patch({ spec: wider.spec }), denial));
      await assert.rejects(patch(other), denial);
      await assert.rejects(author().apply(grantPath(), wider, "author", true), denial);
      const { metadata } = await team.api.get(grantPath());
      await assert.rejects(author().replace(grantPath(), { ...wider, metadata }), denial);
      await give(get("secrets", "bucket"));
      await eventually(() => patch({ spec: wider.spec }));
      await assert.rejects(patch(other), denial);
    });

    it("permits any user who may write grants to label and to delete it", async () => {
      await eventually(() => patch({ metadata: { labels: { team: "storage" } } }));
      await author().delete(grantPath());
    });
  });
});

describe("the schema of SecretGrant", () => {
  before(inNewNamespace);

  const refused: Record<string, [object, RegExp]> = {
    "an entry of from without a namespace": [
      grant([bucket], [{ serviceAccountName: "inlay" }]),
      /spec.from\[0\]: .*exactly one of namespace, namespaceSelector and composition/,
    ],
    "an entry of from with a namespace and a selector": [
      grant([bucket], [{ namespace: "a", namespaceSelector: { names: ["b"] } }]),
      /exactly one of namespace, namespaceSelector and composition/,
    ],
    "an entry of from with a namespace and a composition": [
      grant([bucket], [{ ...registry, composition: "harbors" }]),
      /exactly one of namespace, namespaceSelector and composition/,
    ],
    "a wildcard in a composition": [grant([bucket], [{ composition: "harbor*" }]), /not the name of an object/],
    "a composition of 64 letters": [grant([bucket], [{ composition: "x".repeat(64) }]), /may not be more than 63/],
    "the uid of a namespace without its name": [
      grant([bucket], [{ namespaceUID: "a1", namespaceSelector: { names: ["a"] } }]),
      /namespaceUID needs namespace/,
    ],
    "an invalid uid": [grant([bucket], [{ ...registry, namespaceUID: "Registry" }]), /is not a uid/],
    "an entry of to without a name": [grant([{ kind: "Secret" }]), /spec.to\[0\]: .*exactly one of name and selector/],
    "an entry of to with a name and a selector": [
      grant([{ ...bucket, selector: { names: ["a"] } }]),
      /exactly one of name and selector/,
    ],
    "another kind": [
      grant([{ kind: "Service", name: "a" }]),
      /supported values: "Secret", "ConfigMap", "VaultConnection"/,
    ],
    "an empty selector": [grant([{ kind: "Secret", selector: {} }]), /should have at least 1 properties/],
    "empty labels, which would match all": [
      grant([bucket], [{ namespaceSelector: { matchLabels: {} } }]),
      /should have at least 1 properties/,
    ],
    "empty names, which would match none": [
      grant([bucket], [{ namespaceSelector: { names: [] } }]),
      /should have at least 1 items/,
    ],
    "empty expressions": [
      grant([{ kind: "Secret", selector: { matchExpressions: [] } }]),
      /should have at least 1 items/,
    ],
    "an invalid label": [
      grant([bucket], [{ namespaceSelector: { matchLabels: { "a b": "c" } } }]),
      /a key of matchLabels/,
    ],
    "an expression without values": [
      grant([{ kind: "Secret", selector: { matchExpressions: [{ key: "a", operator: "In" }] } }]),
      /In and NotIn need values/,
    ],
    "a wildcard in a name": [grant([{ kind: "Secret", name: "b*" }]), /not the name of an object/],
    "a wildcard in a namespace": [grant([bucket], [{ namespace: "team-*" }]), /not a DNS label/],
    "an empty from": [grant([bucket], []), /should have at least 1 items/],
    "an empty to": [grant([]), /should have at least 1 items/],
  };
  for (const [what, [object, denial]] of Object.entries(refused)) {
    it(`refuses ${what}`, () => assert.rejects(accepted(object), denial));
  }

  it("accepts the example of every field", async () => {
    const example = parse(await readFile("apis/examples/secretgrant.yaml", "utf8"));
    const { spec } = await accepted({ ...example, metadata: { name: "everything" } });
    assert.deepEqual(spec, example.spec);
  });

  it("accepts the largest grant within the API server's limits for rules", async () => {
    const long = (length: number, end = "") => "x".repeat(length - end.length) + end;
    const selector = (names: number) => ({
      names: Array.from({ length: 16 }, (_, i) => long(names, `-${i}`)),
      matchLabels: Object.fromEntries(
        Array.from({ length: 16 }, (_, i) => [`${long(253)}/${long(63, `-${i}`)}`, long(63)]),
      ),
      matchExpressions: Array.from({ length: 16 }, (_, i) => ({
        key: `${long(253)}/${long(63, `-${i}`)}`,
        operator: "In",
        values: Array.from({ length: 64 }, () => long(63)),
      })),
    });
    const from = Array.from({ length: 4 }, () => ({ namespaceSelector: selector(63), serviceAccountName: long(253) }));
    const to = Array.from({ length: 4 }, () => ({ kind: "Secret", selector: selector(253) }));
    await accepted(grant(to, from));
  });

  it("lists grants by their short name and by Inlay's category, with from and to", async () => {
    await team.api.create(grants(), grant());
    for (const name of ["sg", "inlay"]) {
      const { stdout } = await controlPlane().kubectl("get", name, `--namespace=${team.namespace}`);
      assert.match(stdout, /NAME +FROM +TO +AGE/);
      assert.match(stdout, /\[\{"namespace":"registry"\}\] +\[\{"kind":"Secret","name":"bucket"\}\]/);
    }
  });
});
