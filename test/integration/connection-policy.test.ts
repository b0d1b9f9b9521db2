/**
 * A user may write a VaultConnection only if that user may impersonate its account, read what it names and request the
 * tokens that it uses. Its schema refuses invalid values.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { namespaceWithoutRights, policyAuthor } from "../controller/policy-author.ts";
import { CONTROLLER } from "../controller/requests.ts";
import { stopSharedController } from "../controller/shared.ts";
import type { Rule, TestNamespace } from "../controller/test-namespace.ts";

const ADDRESS = "https://vault.vault.svc:8200";

const key = (name: string) => ({ name, key: "value" });
const kubernetes = (changes: object = {}) => ({ kubernetes: { role: "inlay-{namespace}", ...changes } });
const appRole = (changes: object = {}) => ({
  appRole: { roleID: "inlay", secretID: { secret: key("approle") }, ...changes },
});
const connection = (changes: object = {}) => ({
  apiVersion: "inlay.dev/v1alpha1",
  kind: "VaultConnection",
  metadata: { name: "vault" },
  spec: { address: ADDRESS, ...changes },
});
const withAuth = (auth: object, changes: object = {}) => connection({ auth, paths: ["kv/{namespace}/*"], ...changes });

const rule = (resource: string, verb: string, ...resourceNames: string[]): Rule => ({
  apiGroups: [""],
  resources: [resource],
  ...(resourceNames.length > 0 && { resourceNames }),
  verbs: [verb],
});
const actAs = (name = "inlay") => rule("serviceaccounts", "impersonate", name);

let team: TestNamespace;
const {
  author,
  collection: connections,
  accepted,
  bindRole,
  give,
  lets,
  refuses,
} = policyAuthor("carol", "vaultconnections", () => team);
const connectionPath = () => `${connections()}/vault`;
const inNewNamespace = async () => {
  team = await namespaceWithoutRights();
};

describe("the policy on a connection's author", () => {
  before(async () => {
    // A running controller would write the status of connections too.
    await stopSharedController();
    await inNewNamespace();
    await bindRole("ClusterRole", "inlay-connect");
    await refuses(connection(), /inlay-connection-authors.* denied request/);
  });
  beforeEach(inNewNamespace);

  it("permits users with the role admin to write connections of every kind", async () => {
    await bindRole("ClusterRole", "admin");
    await lets(connection());
    await lets(withAuth(kubernetes()));
    await lets(withAuth(kubernetes({ as: "Connection" }), { serviceAccountName: "vault" }));
    await lets(withAuth(appRole(), { tls: { ca: { configMap: key("ca") } } }));
    await lets(withAuth({ token: { secret: key("token") } }, { tls: { ca: { secret: key("ca") } } }));
  });

  for (const role of ["edit", "view", undefined]) {
    it(`does not refuse users with ${role ? `the role ${role}` : "no role"}, because RBAC does`, async () => {
      if (role) await bindRole("ClusterRole", role);
      await refuses(connection(), /cannot create resource "vaultconnections"/);
    });
  }

  it("refuses an account that the author may not impersonate, and permits it after a grant of the rule in the message", async () => {
    await bindRole("ClusterRole", "inlay-connect");
    await give(actAs("rotator"));
    await lets(connection({ serviceAccountName: "rotator" }));
    const denial = /carol may not impersonate serviceaccounts "inlay" in namespace team-\d+/;
    const refusal = await refuses(connection(), denial);
    await give(parse(/a Role in that namespace with (\{.*\})/.exec(refusal)?.[1] ?? "") as Rule);
    await lets(connection());
  });

  for (const [what, object, named] of [
    ["a Secret with the CA", connection({ tls: { ca: { secret: key("ca") } } }), 'secrets "ca"'],
    ["a ConfigMap with the CA", connection({ tls: { ca: { configMap: key("ca") } } }), 'configmaps "ca"'],
    ["a SecretID", withAuth(appRole()), 'secrets "approle"'],
    ["a token", withAuth({ token: { secret: key("token") } }), 'secrets "token"'],
    ["a token in a ConfigMap", withAuth({ token: { configMap: key("token") } }), 'configmaps "token"'],
  ] as const) {
    it(`refuses ${what} that the author may not get, and permits it after a grant of the rule in the message`, async () => {
      await bindRole("ClusterRole", "inlay-connect");
      await give(actAs(), rule("secrets", "get", "other"), rule("configmaps", "get", "other"));
      const denial = new RegExp(`carol may not get ${named} in namespace team-\\d+`);
      const refusal = await refuses(object, denial);
      await give(parse(/a Role in that namespace with (\{.*\})/.exec(refusal)?.[1] ?? "") as Rule);
      await lets(object);
    });
  }

  it("checks the CA and the login separately", async () => {
    await bindRole("ClusterRole", "inlay-connect");
    const both = withAuth(appRole(), { tls: { ca: { configMap: key("ca") } } });
    await give(actAs(), rule("configmaps", "get", "ca"));
    await refuses(both, /carol may not get secrets "approle"/);
    await give(rule("secrets", "get", "approle"));
    await lets(both);
    await refuses(withAuth(appRole(), { tls: { ca: { configMap: key("roots") } } }), /may not get configmaps "roots"/);
  });

  it("requires permission to request the account's tokens for a connection that logs in as its account", async () => {
    await bindRole("ClusterRole", "inlay-connect");
    await give(actAs(), rule("serviceaccounts/token", "create", "rotator"));
    const object = withAuth(kubernetes({ as: "Connection" }));
    const denial = /carol may not create serviceaccounts\/token of "inlay" in namespace team-\d+/;
    const refusal = await refuses(object, denial);
    await give(parse(/a Role in that namespace with (\{.*\})/.exec(refusal)?.[1] ?? "") as Rule);
    await lets(object);
    await refuses(withAuth(kubernetes()), /may not create serviceaccounts\/token of all accounts/);
  });

  it("requires permission to request tokens of all accounts of the namespace for a connection through which each binding logs in", async () => {
    await bindRole("ClusterRole", "inlay-connect");
    await give(actAs(), rule("serviceaccounts/token", "create", "inlay"), rule("serviceaccounts", "create"));
    const denial = /carol may not create serviceaccounts\/token of all accounts in namespace team-\d+/;
    const refusal = await refuses(withAuth(kubernetes()), denial);
    await refuses(withAuth(kubernetes({ as: "Binding" })), denial);
    await give(parse(/a Role in that namespace with (\{.*\})/.exec(refusal)?.[1] ?? "") as Rule);
    await lets(withAuth(kubernetes()));
  });

  it("requires no permission for tokens if a connection uses none", async () => {
    await bindRole("ClusterRole", "inlay-connect");
    await give(actAs(), rule("secrets", "get"));
    await lets(connection());
    await lets(withAuth(appRole()));
    await lets(withAuth({ token: { secret: key("token") } }));
  });

  describe("for a connection that exists", () => {
    beforeEach(async () => {
      await team.api.create(connections(), withAuth(kubernetes({ as: "Connection" })));
      await bindRole("ClusterRole", "inlay-connect");
    });
    const patch = (body: object) => author().merge(connectionPath(), body);

    it("checks users who send the account of another user to another address, in whatever way", async () => {
      const denial = /carol may not impersonate serviceaccounts "inlay"/;
      const spec = { address: "https://vault.stranger.example.com" };
      await eventually(() => assert.rejects(patch({ spec }), denial));
      const moved = withAuth(kubernetes({ as: "Connection" }), spec);
      await assert.rejects(author().apply(connectionPath(), moved, "author", true), denial);
      const { metadata } = await team.api.get(connectionPath());
      await assert.rejects(author().replace(connectionPath(), { ...moved, metadata }), denial);
      await give(actAs());
      await eventually(() => assert.rejects(patch({ spec }), /may not create serviceaccounts\/token of "inlay"/));
      await give(rule("serviceaccounts/token", "create", "inlay"));
      await eventually(() => patch({ spec }));
    });

    it("permits users who may write connections to annotate and delete it", async () => {
      await eventually(() => patch({ metadata: { annotations: { "inlay.dev/refresh": "now" } } }));
      await author().delete(connectionPath());
      assert.equal(await team.api.find(connectionPath()), undefined);
    });

    it("permits the controller to set the status, and nothing else", async () => {
      const controller = team.api.as(CONTROLLER);
      const found = await team.api.get(connectionPath());
      await controller.replace(`${connectionPath()}/status`, { ...found, status: { version: "1.21.4" } });
      await assert.rejects(controller.merge(connectionPath(), { spec: { address: ADDRESS } }), /cannot patch resource/);
      const { status } = await team.api.get(connectionPath());
      assert.deepEqual(status, { version: "1.21.4" });
    });
  });
});

describe("the schema of VaultConnection", () => {
  before(async () => {
    await stopSharedController();
    await inNewNamespace();
  });

  it("sets the defaults", async () => {
    const { spec } = await accepted(withAuth(kubernetes()));
    assert.deepEqual(spec, {
      address: ADDRESS,
      serviceAccountName: "inlay",
      timeout: "5s",
      auth: { kubernetes: { role: "inlay-{namespace}", mount: "kubernetes", audiences: ["vault"], as: "Binding" } },
      paths: ["kv/{namespace}/*"],
    });
    const filled = await accepted(withAuth(appRole()));
    assert.equal(filled.spec.auth.appRole.mount, "approle");
  });

  const address = (text: string) => connection({ address: text });
  const paths = (...texts: string[]) => withAuth(kubernetes(), { paths: texts });
  const { address: _, ...none } = connection().spec;
  const refused: Record<string, [object, RegExp]> = {
    "no address": [{ ...connection(), spec: { ...none } }, /spec.address: Required value/],
    "an empty address": [address(""), /spec.address/],
    "an address without a scheme": [address("vault.vault.svc:8200"), /spec.address: .*not the URL of a server/],
    "an address of another scheme": [address("ftp://vault.vault.svc"), /spec.address: .*not the URL of a server/],
    "an address with a path": [address(`${ADDRESS}/v1`), /spec.address: .*not the URL of a server/],
    "an address with a query": [address(`${ADDRESS}/?a=b`), /spec.address: .*not the URL of a server/],
    "an address with a user": [address("https://inlay@vault.vault.svc"), /spec.address: .*not the URL of a server/],
    "an address with a line break": [address(`${ADDRESS}\n`), /spec.address: .*not the URL of a server/],
    "two logins": [
      withAuth({ ...kubernetes(), token: { secret: key("token") } }),
      /exactly one of kubernetes, appRole and token/,
    ],
    "no login in auth": [withAuth({}), /spec.auth: .*exactly one of kubernetes, appRole and token/],
    "a login without paths": [connection({ auth: kubernetes() }), /auth and paths must be set together/],
    "paths without a login": [connection({ paths: ["kv/*"] }), /auth and paths must be set together/],
    "empty paths": [withAuth(kubernetes(), { paths: [] }), /spec.paths in body should have at least 1 items/],
    "65 paths": [paths(...Array(65).fill("kv/a")), /must have at most 64 items/],
    "an empty path": [paths(""), /should be at least 1 chars long/],
    "a path with two dots": [paths("kv/../other"), /a path may not contain/],
    "a path with a dot": [paths("kv/./other"), /a path may not contain/],
    "a path with two slashes": [paths("kv//other"), /is not mount\/path/],
    "a path that begins with a slash": [paths("/kv/other"), /is not mount\/path/],
    "a path that ends with a slash": [paths("kv/other/"), /is not mount\/path/],
    "a path with another placeholder": [paths("kv/{name}/*"), /is not mount\/path/],
    "a wildcard before the namespace": [paths("kv/*/{namespace}/a"), /before \{namespace\}/],
    "a wildcard beside the namespace": [paths("kv/{namespace}-*"), /before \{namespace\}/],
    "a path with a space": [paths("kv/a b"), /is not mount\/path/],
    "a token from a Secret and a ConfigMap": [
      withAuth({ token: { secret: key("token"), configMap: key("token") } }),
      /spec.auth.token: .*exactly one of secret and configMap/,
    ],
    "a SecretID in a ConfigMap": [
      withAuth(appRole({ secretID: { configMap: key("approle") } })),
      /unknown field "spec.auth.appRole.secretID.configMap"/,
    ],
    "a CA from a Secret and a ConfigMap": [
      connection({ tls: { ca: { secret: key("ca"), configMap: key("ca") } } }),
      /spec.tls.ca: .*exactly one of secret and configMap/,
    ],
    "a Secret without a key": [
      withAuth({ token: { secret: { name: "token" } } }),
      /spec.auth.token.secret.key: Required value/,
    ],
    "a switch that turns TLS off": [connection({ tls: { insecureSkipVerify: true } }), /unknown field/],
    "a role with a slash": [withAuth(kubernetes({ role: "a/b" })), /not a role in Vault/],
    "no role": [withAuth({ kubernetes: {} }), /spec.auth.kubernetes.role: Required value/],
    "a mount with two dots": [withAuth(kubernetes({ mount: "a/../b" })), /a mount may not contain/],
    "a mount with two slashes": [withAuth(kubernetes({ mount: "a//b" })), /not a mount path/],
    "no audience": [withAuth(kubernetes({ audiences: [] })), /should have at least 1 items/],
    "an audience twice": [withAuth(kubernetes({ audiences: ["vault", "vault"] })), /Duplicate value/],
    "a login as another user": [
      withAuth(kubernetes({ as: "Controller" })),
      /supported values: "Binding", "Connection"/,
    ],
    "a timeout that is not a duration": [connection({ timeout: "soon" }), /timeout is not a duration/],
    "a timeout of zero": [connection({ timeout: "0s" }), /timeout is not a duration/],
    "a timeout of an hour": [connection({ timeout: "1h" }), /timeout is not a duration/],
    "an account of another namespace": [connection({ serviceAccountName: "vault/inlay" }), /not the name of an object/],
    "a namespace of Vault with two dots": [connection({ namespace: "team-a/../b" }), /may not contain \. or/],
  };
  for (const [what, [object, denial]] of Object.entries(refused)) {
    it(`refuses ${what}`, () => assert.rejects(accepted(object), denial));
  }

  it("accepts the example of every field", async () => {
    const example = parse(await readFile("apis/examples/vaultconnection.yaml", "utf8"));
    const { spec } = await accepted({ ...example, metadata: { name: "everything" } });
    assert.deepEqual(spec, example.spec);
  });

  it("accepts the largest connection within the API server's limits for rules", async () => {
    const long = (length: number, end = "") => "x".repeat(length - end.length) + end;
    const deep = `${"x/".repeat(255)}xy`;
    const auth = kubernetes({
      mount: long(256),
      role: long(256),
      audiences: Array.from({ length: 8 }, (_, i) => long(253, `-${i}`)),
    });
    await accepted(withAuth(auth, { paths: Array(64).fill(deep), namespace: deep }));
  });

  it("lists connections by their short name and by Inlay's category, with their state", async () => {
    const made = await team.api.create(connections(), connection());
    const condition = { type: "Ready", status: "False", reason: "Unreachable", message: "" };
    const conditions = [{ ...condition, lastTransitionTime: made.metadata.creationTimestamp }];
    await team.api.replace(`${connectionPath()}/status`, { ...made, status: { conditions, version: "1.21.4" } });
    for (const name of ["vc", "inlay"]) {
      const { stdout } = await controlPlane().kubectl("get", name, `--namespace=${team.namespace}`);
      assert.match(stdout, /^NAME +ADDRESS +READY +REASON +VERSION +AGE\s/);
      assert.match(stdout, /vault +https:\/\/vault.vault.svc:8200 +False +Unreachable +1.21.4 /);
    }
  });
});
