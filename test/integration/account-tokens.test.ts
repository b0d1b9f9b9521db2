/**
 * An account that the controller may impersonate gets only tokens for Vault, for 10 minutes. Tokens that other users
 * request do not change.
 */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { untilMay } from "../controller/access.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { createNamespace, type Rule, type TestNamespace } from "../controller/test-namespace.ts";

const root = join(import.meta.dirname, "..", "..");
const read = (file: string) => readFile(join(root, file), "utf8");
/** The only audience of the API server, which is its issuer. */
const API_SERVER = "https://kubernetes.default.svc";
const RBAC = "rbac.authorization.k8s.io/v1";

const tokensOf = (...resourceNames: string[]): Rule => ({
  apiGroups: [""],
  resources: ["serviceaccounts/token"],
  resourceNames,
  verbs: ["create"],
});
const FOR_VAULT = { audiences: ["vault"], expirationSeconds: 600 };
const OTHER_AUDIENCE = /may request tokens only for the audiences/;
const TOO_LONG = /may request tokens for at most 600 seconds/;

let team: TestNamespace;
const user = (account: string) => `system:serviceaccount:${team.namespace}:${account}`;
const tokenPath = (account: string) => `${team.path("v1", "serviceaccounts")}/${account}/token`;
/** Requests a token of the account `of` as an account, or as another user. */
const request = (as: string, spec: object, of = as): Promise<AnyObject> =>
  team.api.as(as.includes(":") ? as : user(as)).create(tokenPath(of), { spec });
const claimsOf = ({ status }: AnyObject) =>
  JSON.parse(Buffer.from(status.token.split(".")[1], "base64url").toString()) as {
    aud: string[];
    exp: number;
    iat: number;
  };

/** Runs the command from the manifest of the role. */
async function bindLogin(account = "inlay"): Promise<void> {
  const manifest = await read("deploy/manifests/31-account-role.yaml");
  const command = /kubectl (create rolebinding inlay-vault-login .*)$/m.exec(manifest)?.[1] ?? assert.fail();
  await controlPlane().kubectl(...command.replaceAll("registry", team.namespace).split(" "));
  await untilMayGetToken(account, account);
}

const untilMayGetToken = (as: string, of: string) =>
  untilMay(user(as), {
    verb: "create",
    resource: "serviceaccounts",
    subresource: "token",
    namespace: team.namespace,
    name: of,
  });

async function newAccount(account: string, ...rules: Rule[]): Promise<void> {
  await team.createAccount(account);
  await team.grant(rules, { account, role: `${account}-tokens` });
}

/** Permits the controller of an installation to impersonate an account. */
async function opens(account: string, controllerNamespace = "inlay-system"): Promise<void> {
  const name = `inlay-may-act-as-${account}`;
  const rule = { apiGroups: [""], resources: ["serviceaccounts"], resourceNames: [account], verbs: ["impersonate"] };
  await team.api.create(team.path(RBAC, "roles"), { metadata: { name }, rules: [rule] });
  await team.api.create(team.path(RBAC, "rolebindings"), {
    metadata: { name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name },
    subjects: [{ kind: "ServiceAccount", name: "inlay-controller", namespace: controllerNamespace }],
  });
  const controller = `system:serviceaccount:${controllerNamespace}:inlay-controller`;
  await untilMay(controller, {
    verb: "impersonate",
    resource: "serviceaccounts",
    namespace: team.namespace,
    name: account,
  });
}

beforeEach(async () => {
  team = await createNamespace({ rules: [], controller: false });
});

describe("the policy on tokens of accounts", () => {
  it("permits an account with the role to request its own token for Vault or OpenBao, for 10 minutes", async () => {
    await assert.rejects(request("inlay", FOR_VAULT), /cannot create resource "serviceaccounts\/token"/);
    await bindLogin();
    for (const audience of ["vault", "openbao"]) {
      const { aud, exp, iat } = claimsOf(await request("inlay", { ...FOR_VAULT, audiences: [audience] }));
      assert.deepEqual(aud, [audience]);
      assert.equal(exp - iat, 600);
    }
    await request("inlay", { ...FOR_VAULT, audiences: ["vault", "openbao"] });
  });

  for (const [what, spec] of Object.entries({
    "the audience of the API server": { audiences: [API_SERVER] },
    "no audience, which means that of the API server": {},
    "empty audiences": { audiences: [] },
    "an audience that is not listed": { audiences: ["https://vault.example.com"] },
    "one audience that is listed and one that is not": { audiences: ["vault", API_SERVER] },
    "a listed audience in capital letters": { audiences: ["Vault"] },
  })) {
    it(`refuses ${what}`, async () => {
      await bindLogin();
      const refusal = await request("inlay", { expirationSeconds: 600, ...spec }).then(
        () => assert.fail("it was accepted"),
        ({ message }: Error) => message,
      );
      assert.match(refusal, OTHER_AUDIENCE);
      assert.match(refusal, /variables\.audiences\b.*inlay-account-tokens/);
    });
  }

  it("refuses a longer lifetime, also the default, and the API server refuses a shorter one", async () => {
    await bindLogin();
    await assert.rejects(request("inlay", { audiences: ["vault"] }), TOO_LONG);
    for (const expirationSeconds of [601, 3607, 31_536_000])
      await assert.rejects(request("inlay", { ...FOR_VAULT, expirationSeconds }), TOO_LONG);
    await assert.rejects(
      request("inlay", { ...FOR_VAULT, expirationSeconds: 599 }),
      /may not specify a duration less than/,
    );
  });

  it("applies when the controller requests a token as the account, with its own token and only the name of the account", async () => {
    await bindLogin();
    // The login is Connection, so the policy also compares the request of the account with the VaultConnections.
    const auth = { kubernetes: { role: "inlay", as: "Connection" } };
    const spec = { address: "https://vault.vault.svc:8200", auth, paths: ["kv/*"] };
    const vault = { apiVersion: "inlay.dev/v1alpha1", kind: "VaultConnection", metadata: { name: "vault" }, spec };
    await team.api.create(team.path("inlay.dev/v1alpha1", "vaultconnections"), vault);
    const ownToken = await controlPlane().kubectl("create", "token", "inlay-controller", "--namespace=inlay-system");
    const asController = [
      `--token=${ownToken.stdout.trim()}`,
      `--as=${user("inlay")}`,
      `--namespace=${team.namespace}`,
    ];
    const create = (...more: string[]) => controlPlane().kubectl("create", "token", "inlay", ...asController, ...more);
    const { stdout } = await create("--audience=vault", "--duration=10m");
    assert.deepEqual(claimsOf({ status: { token: stdout.trim() } }).aud, ["vault"]);
    await assert.rejects(create("--duration=10m"), OTHER_AUDIENCE);
    await assert.rejects(create(`--audience=${API_SERVER}`, "--duration=10m"), OTHER_AUDIENCE);
    await assert.rejects(create("--audience=vault", "--duration=24h"), TOO_LONG);
  });

  it("permits tokens that the API server does not accept", async () => {
    await bindLogin();
    const { status } = await request("inlay", FOR_VAULT);
    const reviewed = await team.api.create("/apis/authentication.k8s.io/v1/tokenreviews", {
      spec: { token: status.token, audiences: [API_SERVER] },
    });
    assert.notEqual(reviewed.status.authenticated, true);
    await assert.rejects(controlPlane().kubectl(`--token=${status.token}`, "get", "pods"), /Unauthorized|logged in/);
  });

  it("applies to an account of another name as soon as the controller may impersonate it", async () => {
    await newAccount("rotator", tokensOf("rotator"));
    await request("rotator", { expirationSeconds: 3600 });
    await opens("rotator");
    await eventually(() => assert.rejects(request("rotator", { expirationSeconds: 3600 }), OTHER_AUDIENCE));
    await request("rotator", FOR_VAULT);
  });

  it("applies to an account that the controller of a namespaced installation may impersonate", async () => {
    await newAccount("rotator", tokensOf("rotator"));
    await opens("rotator", team.namespace);
    await eventually(() => assert.rejects(request("rotator", { expirationSeconds: 3600 }), OTHER_AUDIENCE));
    await request("rotator", FOR_VAULT);
  });

  it("applies to accounts of an installation in another namespace, with the command of the documentation", async () => {
    const elsewhere = `${team.namespace}-inlay`;
    await newAccount("rotator", tokensOf("rotator"));
    await opens("rotator", elsewhere);
    await request("rotator", { expirationSeconds: 3600 });
    const policy = `${elsewhere}-tokens`;
    const [, name = assert.fail(), other = assert.fail()] =
      /\| sed 's\/([\w-]+)\/([\w-]+)\/g'/.exec(await read("docs/tasks/install-with-kustomize.md")) ?? [];
    assert.equal(other, "my-namespace");
    const file = join(controlPlane().folder, `${policy}.yaml`);
    const text = await read("deploy/policies/tokens.yaml");
    await writeFile(file, text.replaceAll("inlay-account-tokens", policy).replaceAll(name, elsewhere));
    await controlPlane().kubectl("apply", `--filename=${file}`);
    try {
      await eventually(() => assert.rejects(request("rotator", { expirationSeconds: 3600 }), OTHER_AUDIENCE));
      await request("rotator", FOR_VAULT);
    } finally {
      await controlPlane().kubectl("delete", `--filename=${file}`);
    }
  });

  it("refuses the request by which the documentation verifies it", async () => {
    await bindLogin();
    const command =
      /^kubectl (create token \S+ -n \S+ --as=\S+)/m.exec(await read("docs/tasks/allow-a-namespace.md"))?.[1] ??
      assert.fail();
    const args = command.replaceAll("registry", team.namespace).split(" ");
    await assert.rejects(controlPlane().kubectl(...args), OTHER_AUDIENCE);
  });

  it("applies when such an account requests a token of another account, which a ClusterRoleBinding of the role would permit", async () => {
    await newAccount("builder");
    await team.grant([tokensOf("builder")], { role: "tokens-of-builder" });
    await assert.rejects(request("inlay", { expirationSeconds: 600 }, "builder"), OTHER_AUDIENCE);
    await assert.rejects(request("inlay", { ...FOR_VAULT, expirationSeconds: 3600 }, "builder"), TOO_LONG);
  });

  it("does not apply to tokens that users, other accounts and nodes request, also of these accounts", async () => {
    const { stdout } = await controlPlane().kubectl(
      ...["create", "token", "inlay", `--namespace=${team.namespace}`, "--duration=24h"],
    );
    assert.deepEqual(claimsOf({ status: { token: stdout.trim() } }).aud, [API_SERVER]);
    await newAccount("builder", tokensOf("builder", "inlay"));
    for (const account of ["builder", "inlay"]) {
      const { aud } = claimsOf(await request("builder", { expirationSeconds: 86_400 }, account));
      assert.deepEqual(aud, [API_SERVER]);
    }
    await team.api.create(team.path(RBAC, "rolebindings"), {
      metadata: { name: "others" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "builder-tokens" },
      subjects: ["alice", "system:node:n1"].map((name) => ({
        kind: "User",
        name,
        apiGroup: "rbac.authorization.k8s.io",
      })),
    });
    const alice = new Api(controlPlane(), "alice");
    await eventually(() => alice.create(tokenPath("inlay"), { spec: { expirationSeconds: 3600 } }));
    await eventually(() => request("system:node:n1", { expirationSeconds: 3600 }, "inlay"));
  });
});
