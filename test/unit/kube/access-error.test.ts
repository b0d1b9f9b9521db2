/** Which problem a user sees when the API server refuses a request, and how to fix it. */
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
import { ApiError, type Asked } from "../../../src/kube/api-error.ts";
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
    [413, "RequestEntityTooLarge", "TooLarge"],
    [422, "Invalid", "Rejected"],
  ];
  for (const [status, reason, becomes] of reasons) {
    it(`of ${status} ${reason} is ${becomes}`, () => {
      const problem = refusal(answer(status, reason), harbor, "patch");
      assert.equal(problem.reason, becomes);
      assert.match(problem.message, becomes === "KindNotFound" ? /HarborCluster/ : /web|HarborCluster web\/harbor/);
    });
  }

  it("of a creation in a namespace that is being deleted names the namespace, and no rule", () => {
    const causes = [{ reason: "NamespaceTerminating", message: "namespace web is being terminated", field: "" }];
    const body = { message: "unable to create new content in namespace web", details: { kind: "jobs", causes } };
    const problem = refusal(new ApiError("POST /x", 403, "Forbidden", body), harbor, "create");
    assert.equal(problem.reason, "TargetNotFound");
    assert.equal(problem.message, "namespace web is being deleted; nothing can be created in it");
  });

  it("of a missing permission names the verb and the resource of the refused request, whatever its caller does", () => {
    const path = "/apis/goharbor.io/v1alpha3/namespaces/web/harborclusters/harbor";
    const cases: [method: Asked["method"], path: string, meant: string, says: string, grants: string][] = [
      [
        "GET",
        path,
        "patch",
        "get harborclusters.goharbor.io/harbor",
        "--verb=get,list,watch,patch --resource=harborclusters.goharbor.io",
      ],
      ["PATCH", path, "patch", "patch harborclusters.goharbor.io/harbor", "--verb=get,list,watch,patch --resource"],
      ["PATCH", path, "create", "create harborclusters.goharbor.io/harbor", "--resource=harborclusters.goharbor.io"],
      ["DELETE", path, "patch", "delete harborclusters.goharbor.io/harbor", "--verb=get,list,watch,patch,delete"],
      [
        "PATCH",
        `${path}/status?fieldManager=x`,
        "patch",
        "patch harborclusters.goharbor.io/status/harbor",
        "--verb=patch --resource=harborclusters.goharbor.io/status --resource-name=harbor",
      ],
      ["GET", "/api/v1/namespaces/web/secrets/bucket", "patch", "get secrets/bucket", "--verb=get --resource=secrets"],
    ];
    for (const [method, asked, meant, says, grants] of cases) {
      const error = answer(403, "Forbidden");
      error.asked = { method, path: asked, identity: ACCOUNT };
      const { reason, message } = refusal(error, harbor, meant);
      assert.equal(reason, "Forbidden");
      assert.ok(message.includes(`may not ${says} `), message);
      assert.ok(message.includes(grants), message);
    }
  });

  it("names the request, the object and the server's reason for a failure that is retried", () => {
    assert.equal(
      refusal(answer(503, "ServiceUnavailable"), harbor, "patch").message,
      "the API server did not patch HarborCluster web/harbor (ServiceUnavailable); Inlay retries",
    );
  });

  it("of a watch beyond a limit names the limit and what to do, for each of the limits", () => {
    for (const [reason, advice] of [
      ["TooManyNames", "split the binding"],
      ["TooManyStreams", "name fewer objects"],
      ["TooManyPaths", "too many different template or restartPath for HarborCluster"],
    ] as const) {
      const problem = refusal(new ApiError("WATCH", 0, reason), harbor, "list");
      assert.equal(problem.reason, "TooManyWatches");
      assert.match(problem.message, new RegExp(advice));
    }
  });

  it("of an unknown kind names its group and version, and its CRD", () => {
    const { message } = refusal(answer(404, "Error"), harbor, "get");
    assert.match(message, /no HarborCluster in goharbor\.io\/v1beta1; install its CRD/);
  });

  it("returns an existing problem unchanged", () => {
    const problem = new Problem("Conflict", "taken");
    assert.equal(refusal(problem, harbor, "patch"), problem);
  });

  it("rethrows errors that are no answers of the API server", () => {
    const bug = new TypeError("a bug");
    assert.throws(
      () => refusal(bug, harbor, "patch"),
      (error) => error === bug,
    );
  });
});

describe("a failure that lasts until it is fixed", () => {
  const failed = (message: string, status = 500) => ApiError.fromAnswer("GET /x", status, JSON.stringify({ message }));
  const conversion = failed("conversion webhook for goharbor.io/v1alpha3, Kind=HarborCluster failed: hunter2-s3cr3t");

  it("of a conversion webhook names the CustomResourceDefinition, for each verb", () => {
    for (const verb of ["get", "patch", "create"]) {
      const { reason, retryPolicy, message } = refusal(conversion, harbor, verb);
      assert.deepEqual([reason, retryPolicy], ["ConversionFailed", "Slowing"]);
      assert.ok(message.startsWith(`the API server can't ${verb} HarborCluster web/harbor, because `), message);
      assert.ok(message.includes("CustomResourceDefinition harborclusters.goharbor.io fails"), message);
      assert.doesNotMatch(message, /hunter2|v1alpha3/);
    }
  });

  it("of a conversion webhook is reported for a list and a watch of the kind too", () => {
    const { name: _, ...all } = harbor.ref;
    for (const verb of ["list", "watch"] as const)
      assert.equal(streamRefusal(conversion, { ...harbor, ref: all }, verb).reason, "ConversionFailed");
  });

  it("of a webhook that can't be called names the webhook, and how to find it", () => {
    const text = 'Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: hunter2';
    const { reason, retryPolicy, message } = refusal(failed(text), harbor, "patch");
    assert.deepEqual([reason, retryPolicy], ["WebhookFailed", "Slowing"]);
    assert.match(message, /admission webhook hook\.example\.com; .*kubectl get validatingwebhookconfigurations,/);
    assert.doesNotMatch(message, /hunter2/);
  });

  it("of a stored object names the object, or its kind for a list", () => {
    const broken = failed("illegal base64 data at input byte 3");
    assert.match(
      refusal(broken, secret, "get").message,
      /can't get Secret registry\/bucket, because it can't decode it/,
    );
    const all = { ...secret, ref: { resource: SECRETS, namespace: "registry" } };
    const { reason, retryPolicy, message } = refusal(broken, all, "list");
    assert.deepEqual([reason, retryPolicy], ["UndecodableObject", "Slow"]);
    assert.match(message, /can't list secrets in namespace registry, .* an object of the kind Secret/);
  });
});

describe("a denied write", () => {
  const denied = (status: number, message: string) =>
    refusal(ApiError.fromAnswer("PATCH /x", status, JSON.stringify({ message, reason: "Invalid" })), harbor, "patch");

  it("names the policy with its binding, and a command that shows it", () => {
    const text =
      "harborclusters \"harbor\" is forbidden: ValidatingAdmissionPolicy 'keys' with binding 'all' denied request: ";
    for (const status of [403, 422]) {
      const { reason, message } = denied(status, `${text}hunter2`);
      assert.equal(reason, "Rejected");
      assert.ok(message.startsWith("ValidatingAdmissionPolicy keys with binding all denied the request to "), message);
      assert.ok(message.endsWith("kubectl get validatingadmissionpolicy keys -o yaml"), message);
      assert.doesNotMatch(message, /hunter2/);
    }
  });

  it("names the webhook, whichever status code the webhook chose", () => {
    for (const status of [400, 403, 404, 409, 500, 503]) {
      const { reason, message } = denied(status, 'admission webhook "hook.example.com" denied the request: hunter2');
      assert.equal(reason, "Rejected");
      assert.ok(message.startsWith("the admission webhook hook.example.com denied the request to patch "), message);
      assert.doesNotMatch(message, /hunter2/);
    }
  });
});

describe("a refused watch", () => {
  it("is retried by the watch itself if a permission is missing, and like any request otherwise", () => {
    const account = { resource: SECRETS, namespace: "registry", name: "deployer" };
    const policies = [403, 503, 422].map((status) => [
      streamRefusal(answer(status, "Error"), harbor, "list").retryPolicy,
      accountRefusal(answer(status, "Error"), ACCOUNT, account).retryPolicy,
      accountRefusal(answer(status, "Error"), ACCOUNT, { ...account, name: "inlay" }).retryPolicy,
    ]);
    assert.deepEqual(policies, [
      ["OnChange", "OnChange", "OnChange"],
      ["Backoff", "Backoff", "Backoff"],
      ["Slow", "Slow", "Slow"],
    ]);
  });
});

describe("a missing permission", () => {
  /** The role's name in the commands, which is equal in each of them. */
  function granted({ message }: Problem, commands: (role: string) => string): void {
    const [, role = ""] = /kubectl create (?:cluster)?role (\S+)/.exec(message) ?? [];
    assert.notEqual(role, "");
    assert.ok(message.endsWith(`; allow it with: ${commands(role)}`), message);
  }

  it("names account, verb, resource, name and namespace, with the commands that grant it", () => {
    const problem = refusal(answer(403, "Forbidden", { name: "bucket", kind: "secrets" }), secret, "watch");
    assert.ok(
      problem.message.startsWith("ServiceAccount registry/inlay may not watch secrets/bucket in namespace registry; "),
      problem.message,
    );
    granted(
      problem,
      (role) =>
        `kubectl create role ${role} -n registry --verb=get,list,watch --resource=secrets --resource-name=bucket; ` +
        `kubectl create rolebinding ${role} -n registry --role=${role} --serviceaccount=registry:inlay`,
    );
  });

  it("on all objects of a kind is granted without a name", () => {
    const { name: _, ...all } = harbor.ref;
    const problem = refusal(answer(403, "Forbidden"), { ...harbor, ref: all }, "list");
    const refused =
      "namespace web does not exist, or ServiceAccount registry/inlay may not list harborclusters.goharbor.io in it ";
    assert.ok(problem.message.startsWith(refused), problem.message);
    granted(
      problem,
      (role) =>
        `kubectl create role ${role} -n web --verb=get,list,watch,patch --resource=harborclusters.goharbor.io; ` +
        `kubectl create rolebinding ${role} -n web --role=${role} --serviceaccount=registry:inlay`,
    );
  });

  it("in another namespace is granted there, to the binding's account", () => {
    const problem = refusal(answer(403, "Forbidden"), harbor, "patch");
    const refused =
      "namespace web does not exist, or ServiceAccount registry/inlay may not patch harborclusters.goharbor.io/harbor in it (kubectl get namespace web shows which); ";
    assert.ok(problem.message.startsWith(refused), problem.message);
    granted(
      problem,
      (role) =>
        `kubectl create role ${role} -n web --verb=get,list,watch,patch --resource=harborclusters.goharbor.io --resource-name=harbor; ` +
        `kubectl create rolebinding ${role} -n web --role=${role} --serviceaccount=registry:inlay`,
    );
  });

  it("on a cluster-scoped object is granted by a ClusterRole and its binding", () => {
    const problem = refusal(answer(403, "Forbidden"), issuer, "get");
    assert.ok(problem.message.includes("may not get clusterissuers.cert-manager.io/acme; "), problem.message);
    granted(
      problem,
      (role) =>
        `kubectl create clusterrole ${role} --verb=get,list,watch,patch --resource=clusterissuers.cert-manager.io --resource-name=acme; ` +
        `kubectl create clusterrolebinding ${role} --clusterrole=${role} --serviceaccount=registry:inlay`,
    );
  });

  it("of the controller itself refers to the page on installing its permissions", () => {
    const problem = refusal(answer(403, "Forbidden"), { ...secret, identity: CONTROLLER }, "list");
    assert.equal(problem.reason, "Forbidden");
    assert.match(
      problem.message,
      /^Inlay's own account may not list secrets\/bucket in namespace registry; .*docs\/tasks\/install\.md/,
    );
  });
});

describe("an account that Inlay may not impersonate", () => {
  const refused = answer(403, "Forbidden", { name: "deployer", kind: "serviceaccounts" });
  const deployer = serviceAccountIdentity("registry", "deployer");

  it("is named, with the verbs, resource and namespace of the Role that opens it", () => {
    const problem = refusal(refused, { ...secret, identity: deployer }, "get");
    assert.equal(problem.reason, "ImpersonationForbidden");
    for (const part of [
      "may not impersonate ServiceAccount registry/deployer",
      "only accounts named inlay",
      "docs/tasks/allow-a-namespace.md",
    ]) {
      assert.ok(problem.message.includes(part), problem.message);
    }
  });

  it("is allowed by the commands of its condition, for the controller of that installation", () => {
    const ref = { resource: ACCOUNTS, namespace: "registry", name: "deployer" };
    for (const own of ["inlay-system", "registry"]) {
      const { reason, message } = accountRefusal(refused, deployer, ref, own);
      assert.equal(reason, "ImpersonationForbidden");
      const [, role = ""] = /kubectl create role (\S+)/.exec(message) ?? [];
      const commands =
        `kubectl create role ${role} -n registry --verb=get,list,watch,impersonate --resource=serviceaccounts --resource-name=deployer; ` +
        `kubectl create rolebinding ${role} -n registry --role=${role} --serviceaccount=${own}:inlay-controller`;
      assert.ok(message.endsWith(`; use that name, or allow this one with: ${commands}`), message);
    }
  });

  it("differs from a source that is an account and may not be read", () => {
    const ref = { resource: ACCOUNTS, namespace: "registry", name: "deployer" };
    assert.equal(refusal(refused, { identity: deployer, ref, verbs: READ_VERBS }, "get").reason, "Forbidden");
  });

  it("is not the cause of a refusal about another account, or about another kind of that name", () => {
    for (const details of [
      { name: "other", kind: "serviceaccounts" },
      { name: "deployer", kind: "secrets" },
    ]) {
      const problem = refusal(answer(403, "Forbidden", details), { ...secret, identity: deployer }, "get");
      assert.equal(problem.reason, "Forbidden");
    }
  });

  it("names a separate Role for create, because RBAC can't restrict create to names", () => {
    const forbidden = answer(403, "Forbidden", { kind: "harborclusters", name: "harbor" });
    const made: RequiredAccess = { ...harbor, verbs: verbsFor(true, "Remove") };
    const create = refusal(forbidden, made, "create").message;
    assert.match(
      create,
      /; kubectl create role (\S+) -n web --verb=create --resource=harborclusters\.goharbor\.io; kubectl create rolebinding \1 -n web --role=\1 --serviceaccount=registry:inlay$/,
    );
    const makes = create.slice(create.indexOf("kubectl create"));
    const { message } = refusal(forbidden, made, "watch");
    assert.match(message, /--verb=get,list,watch,patch,delete .*--resource-name=harbor;/);
    assert.ok(message.endsWith(` with: ${makes}`));
    assert.ok(message.length < 1024);
    assert.doesNotMatch(refusal(forbidden, { ...harbor, verbs: verbsFor(true, "Retain") }, "watch").message, /delete/);
  });
});
