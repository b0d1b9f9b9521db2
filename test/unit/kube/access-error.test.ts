/** What a user is told when the API server refuses a request: which problem it is, and what to do about it. */
import assert from "node:assert/strict";
import { Problem } from "../../../src/apimachinery/problem.ts";
import {
  accountRefusal,
  READ_VERBS,
  type RequiredAccess,
  refusal,
  streamRefusal,
  verbsFor,
  WRITE_VERBS,
} from "../../../src/kube/access-error.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { CONTROLLER, serviceAccountIdentity } from "../../../src/kube/identity.ts";
import { ACCOUNTS, HARBORS, ISSUERS, SECRETS } from "../resources.ts";

const ACCOUNT = serviceAccountIdentity("registry", "inlay");

const secret: RequiredAccess = {
  identity: ACCOUNT,
  ref: { resource: SECRETS, namespace: "registry", name: "bucket" },
  verbs: READ_VERBS,
};
const harbor: RequiredAccess = {
  identity: ACCOUNT,
  ref: { resource: HARBORS, namespace: "web", name: "harbor" },
  verbs: WRITE_VERBS,
};
const issuer: RequiredAccess = { identity: ACCOUNT, ref: { resource: ISSUERS, name: "acme" }, verbs: WRITE_VERBS };

const answer = (status: number, reason: string, details: object = {}) =>
  new ApiError("GET /x", status, reason, { details });

describe("a refusal", () => {
  const reasons: [status: number, reason: string, becomes: Problem["reason"]][] = [
    [0, "ECONNREFUSED", "Unavailable"],
    [0, "DeadlineExceeded", "Unavailable"],
    [401, "Unauthorized", "Unavailable"],
    [429, "TooManyRequests", "Unavailable"],
    [500, "InternalError", "Unavailable"],
    [503, "ServiceUnavailable", "Unavailable"],
    [403, "Forbidden", "Forbidden"],
    [404, "Error", "KindNotFound"],
    [400, "BadRequest", "Rejected"],
    [409, "Conflict", "Rejected"],
    [413, "RequestEntityTooLarge", "Rejected"],
    [422, "Invalid", "Rejected"],
  ];
  for (const [status, reason, becomes] of reasons) {
    it(`of ${status} ${reason} is ${becomes}`, () => {
      const problem = refusal(answer(status, reason), harbor, "patch");
      assert.equal(problem.reason, becomes);
      assert.match(problem.message, becomes === "KindNotFound" ? /HarborCluster/ : /web|HarborCluster web\/harbor/);
    });
  }

  it("says what was tried on which object, and the server's reason, where it is tried again", () => {
    assert.equal(
      refusal(answer(503, "ServiceUnavailable"), harbor, "patch").message,
      "the API server did not patch HarborCluster web/harbor (ServiceUnavailable); it is tried again",
    );
  });

  it("of an unknown kind names its group and version, and asks for its CRD", () => {
    const { message } = refusal(answer(404, "Error"), harbor, "get");
    assert.match(message, /no HarborCluster in goharbor\.io\/v1beta1; install its CRD/);
  });

  it("that is a problem already stays what it is", () => {
    const problem = new Problem("Conflict", "taken");
    assert.equal(refusal(problem, harbor, "patch"), problem);
  });

  it("does not hide a bug: what is no answer of the API server is thrown on", () => {
    const bug = new TypeError("a bug");
    assert.throws(
      () => refusal(bug, harbor, "patch"),
      (error) => error === bug,
    );
  });
});

describe("a stream that is refused", () => {
  it("calls by itself once a right is no longer missing, and heals like any request otherwise", () => {
    const account = { resource: SECRETS, namespace: "registry", name: "deployer" };
    const healings = [403, 503, 422].map((status) => [
      streamRefusal(answer(status, "Error"), harbor, "list").retryPolicy,
      accountRefusal(answer(status, "Error"), ACCOUNT, account).retryPolicy,
      accountRefusal(answer(status, "Error"), ACCOUNT, { ...account, name: "inlay" }).retryPolicy,
    ]);
    assert.deepEqual(healings, [
      ["OnChange", "OnChange", "OnChange"],
      ["Backoff", "Backoff", "Backoff"],
      ["Slow", "Slow", "Slow"],
    ]);
  });
});

describe("a missing right", () => {
  /** The role's name in the commands, which is the same wherever it stands. */
  function granted({ message }: Problem, commands: (role: string) => string): void {
    const [, role = ""] = /kubectl create (?:cluster)?role (\S+)/.exec(message) ?? [];
    assert.notEqual(role, "");
    assert.ok(message.endsWith(`; allow it with: ${commands(role)}`), message);
  }

  it("is named by account, verb, resource, name and namespace, with the commands that grant it", () => {
    const problem = refusal(answer(403, "Forbidden", { name: "bucket", kind: "secrets" }), secret, "watch");
    assert.ok(
      problem.message.startsWith("ServiceAccount registry/inlay may not watch secrets/bucket in namespace registry; "),
      problem.message,
    );
    granted(
      problem,
      (role) =>
        `kubectl create role ${role} -n registry --verb=get,list,watch --resource=secrets --resource-name=bucket && ` +
        `kubectl create rolebinding ${role} -n registry --role=${role} --serviceaccount=registry:inlay`,
    );
  });

  it("to all objects of a kind is granted without a name", () => {
    const { name: _, ...all } = harbor.ref;
    const problem = refusal(answer(403, "Forbidden"), { ...harbor, ref: all }, "list");
    const refused = "may not list harborclusters.goharbor.io in namespace web, or there is no such namespace; ";
    assert.ok(problem.message.includes(refused), problem.message);
    granted(
      problem,
      (role) =>
        `kubectl create role ${role} -n web --verb=get,list,watch,patch --resource=harborclusters.goharbor.io && ` +
        `kubectl create rolebinding ${role} -n web --role=${role} --serviceaccount=registry:inlay`,
    );
  });

  it("in another namespace is granted there, to the account of the binding's", () => {
    const problem = refusal(answer(403, "Forbidden"), harbor, "patch");
    const refused = "may not patch harborclusters.goharbor.io/harbor in namespace web, or there is no such namespace; ";
    assert.ok(problem.message.includes(refused), problem.message);
    granted(
      problem,
      (role) =>
        `kubectl create role ${role} -n web --verb=get,list,watch,patch --resource=harborclusters.goharbor.io --resource-name=harbor && ` +
        `kubectl create rolebinding ${role} -n web --role=${role} --serviceaccount=registry:inlay`,
    );
  });

  it("on a cluster-scoped object is granted by a ClusterRole and its binding", () => {
    const problem = refusal(answer(403, "Forbidden"), issuer, "get");
    assert.ok(problem.message.includes("may not get clusterissuers.cert-manager.io/acme; "), problem.message);
    granted(
      problem,
      (role) =>
        `kubectl create clusterrole ${role} --verb=get,list,watch,patch --resource=clusterissuers.cert-manager.io --resource-name=acme && ` +
        `kubectl create clusterrolebinding ${role} --clusterrole=${role} --serviceaccount=registry:inlay`,
    );
  });

  it("of the controller itself points to its manifests", () => {
    const problem = refusal(answer(403, "Forbidden"), { ...secret, identity: CONTROLLER }, "list");
    assert.equal(problem.reason, "Forbidden");
    assert.match(problem.message, /^Inlay's own account may not list secrets\/bucket .*; see deploy\/manifests/);
  });
});

describe("an account that is not open to Inlay", () => {
  const refused = answer(403, "Forbidden", { name: "deployer", kind: "serviceaccounts" });
  const deployer = serviceAccountIdentity("registry", "deployer");

  it("is named, with the verbs, resource and namespace of the Role that opens it", () => {
    const problem = refusal(refused, { ...secret, identity: deployer }, "get");
    assert.equal(problem.reason, "ImpersonationForbidden");
    for (const part of [
      "may not act as ServiceAccount registry/deployer",
      "only accounts named inlay are open",
      "bind a Role in namespace registry",
      "impersonate, get, list, watch on serviceaccounts/deployer",
    ]) {
      assert.ok(problem.message.includes(part), problem.message);
    }
  });

  it("is told from an account, read as a source, that may not be read", () => {
    const ref = { resource: ACCOUNTS, namespace: "registry", name: "deployer" };
    assert.equal(refusal(refused, { identity: deployer, ref, verbs: READ_VERBS }, "get").reason, "Forbidden");
  });

  it("is not seen in a refusal that speaks of another account, or of another kind of the same name", () => {
    for (const details of [
      { name: "other", kind: "serviceaccounts" },
      { name: "deployer", kind: "secrets" },
    ]) {
      const problem = refusal(answer(403, "Forbidden", details), { ...secret, identity: deployer }, "get");
      assert.equal(problem.reason, "Forbidden");
    }
  });

  it("names a Role of its own for what is to be made, since RBAC knows no names there", () => {
    const forbidden = answer(403, "Forbidden", { kind: "harborclusters", name: "harbor" });
    const made: RequiredAccess = { ...harbor, verbs: verbsFor(true, "Remove") };
    const makes =
      "kubectl create role registry-inlay-makes-harborclusters.goharbor.io -n web --verb=create --resource=harborclusters.goharbor.io" +
      " && kubectl create rolebinding registry-inlay-makes-harborclusters.goharbor.io -n web" +
      " --role=registry-inlay-makes-harborclusters.goharbor.io --serviceaccount=registry:inlay";
    assert.ok(refusal(forbidden, made, "create").message.endsWith(`allow it with: ${makes}`));
    const { message } = refusal(forbidden, made, "watch");
    assert.match(message, /--verb=get,list,watch,patch,delete .*--resource-name=harbor /);
    assert.ok(message.endsWith(` && ${makes}`));
    assert.ok(message.length < 1024);
    assert.doesNotMatch(refusal(forbidden, { ...harbor, verbs: verbsFor(true, "Retain") }, "watch").message, /delete/);
  });
});
