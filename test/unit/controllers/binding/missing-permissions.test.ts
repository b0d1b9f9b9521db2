/** Which permissions an account lacks, by the reviews that the API server answers. */
import assert from "node:assert/strict";
import { ACCOUNT_TOKENS, SECRETS } from "../../../../src/apimachinery/resources.ts";
import { MissingPermissions } from "../../../../src/controllers/binding/missing-permissions.ts";
import type { AccessRules } from "../../../../src/kube/access-rules.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import type { Permission } from "../../../../src/kube/grant-commands.ts";
import { serviceAccountIdentity } from "../../../../src/kube/identity.ts";
import { HARBORS, ISSUERS } from "../../resources.ts";

const ACCOUNT = serviceAccountIdentity("registry", "inlay");
const secret = { ref: { resource: SECRETS, namespace: "registry", name: "bucket" }, verbs: ["get", "list", "watch"] };
const harbor = { ref: { resource: HARBORS, namespace: "web", name: "harbor" }, verbs: ["get", "create"] };
const issuer = { ref: { resource: ISSUERS, name: "acme" }, verbs: ["get", "patch"] };

/** An API server that knows these rules by namespace, and allows these reviews, such as `get/acme`. */
class Server {
  readonly rulesIn: Record<string, AccessRules["resourceRules"]> = {};
  incomplete = false;
  allowed: string[] = [];
  readonly asked: string[] = [];
  failure: ApiError | undefined;

  async rules(_: string, namespace: string): Promise<AccessRules> {
    this.asked.push(namespace);
    if (this.failure) throw this.failure;
    return { incomplete: this.incomplete, resourceRules: this.rulesIn[namespace] ?? [] };
  }

  async may(_: string, verb: string, __: object, ___?: string, name = ""): Promise<boolean> {
    this.asked.push(`${verb}/${name}`);
    return this.allowed.includes(`${verb}/${name}`);
  }
}

describe("the missing permissions of an account", () => {
  const of = async (server: Server, ...needed: Permission[]) =>
    (await new MissingPermissions(server).of(ACCOUNT, needed)).permissions.map(
      ({ ref: { resource, namespace = "", name }, verbs }) => `${verbs} ${namespace}/${resource.plural}/${name}`,
    );

  it("are those that no rule of their namespace allows, verb by verb", async () => {
    const server = new Server();
    server.rulesIn["registry"] = [
      { verbs: ["get"], apiGroups: [""], resources: ["secrets"] },
      { verbs: ["list"], apiGroups: [""], resources: ["secrets"], resourceNames: ["bucket"] },
      { verbs: ["*"], apiGroups: ["goharbor.io"], resources: ["*"] },
    ];
    // RBAC never allows to create by name.
    server.rulesIn["web"] = [
      { verbs: ["get", "create"], apiGroups: ["goharbor.io"], resources: ["*"], resourceNames: ["harbor"] },
    ];
    assert.deepEqual(await of(server, secret, harbor), [
      "watch registry/secrets/bucket",
      "create web/harborclusters/harbor",
    ]);
    assert.deepEqual(server.asked, ["registry", "web"]);
  });

  it("are reviewed one by one outside of namespaces, and where other authorizers may allow more", async () => {
    const server = new Server();
    server.allowed = ["get/acme", "get/bucket", "watch/bucket"];
    assert.deepEqual(await of(server, issuer), ["patch /clusterissuers/acme"]);
    server.incomplete = true;
    assert.deepEqual(await of(server, secret), ["list registry/secrets/bucket"]);
    const token = { ref: { resource: ACCOUNT_TOKENS, namespace: "registry", name: "inlay" }, verbs: ["create"] };
    server.allowed = ["create/inlay"];
    assert.deepEqual(await of(server, token), []);
  });

  it("cost one review for each namespace, for at most ten of them, and may then not be all", async () => {
    const server = new Server();
    const many = Array.from({ length: 30 }, (_, number) => ({
      ...harbor,
      ref: { ...harbor.ref, namespace: `n${number}` },
    }));
    const missing = new MissingPermissions(server);
    const { isCut } = await missing.of(ACCOUNT, many);
    await missing.of(ACCOUNT, many);
    assert.equal(server.asked.length, 10);
    assert.ok(isCut);
  });

  it("are asked for once, however many targets and objects need them", async () => {
    const server = new Server();
    const another = { ref: { resource: ISSUERS, name: "other" }, verbs: ["create"] };
    const create = { ...issuer, verbs: ["create", "create"] };
    assert.deepEqual(await of(server, ...Array(60).fill(issuer), create, another), [
      "get /clusterissuers/acme",
      "patch /clusterissuers/acme",
      "create /clusterissuers/other",
    ]);
    assert.deepEqual(server.asked, ["registry", "get/acme", "patch/acme", "create/"]);
  });

  it("are unknown if the API server does not answer", async () => {
    const server = new Server();
    server.failure = new ApiError("POST /x", 503, "ServiceUnavailable");
    assert.deepEqual(await of(server, secret), []);
  });
});
