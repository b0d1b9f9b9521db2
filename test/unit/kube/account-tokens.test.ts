/** How an account's token is requested, and the problem if the API server refuses it. */
import assert from "node:assert/strict";
import { inspect } from "node:util";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { requestToken } from "../../../src/kube/account-tokens.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { Request } from "../../../src/kube/transport.ts";
import { foundIn, secretText } from "../../controller/leak-detector.ts";
import { fakeTransport } from "../fakes.ts";

const INLAY = "system:serviceaccount:registry:inlay";
const USER = 'User "system:serviceaccount:inlay-system:inlay-controller"';

/** An API server that answers or refuses. */
function tokensOf(answer: object, loginRole: "clusterrole" | "role" = "clusterrole") {
  const requests: Request[] = [];
  const transport = fakeTransport({
    request: async (request: Request) => {
      requests.push(request);
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  const sender = { transport, mayBeSent: () => false, loginRole };
  return { requests, request: requestToken.bind(undefined, sender) };
}

const refused = (status: number, message: string) =>
  ApiError.fromAnswer("POST /x", status, JSON.stringify({ reason: "Forbidden", message }));
const noRight = refused(
  403,
  `serviceaccounts "inlay" is forbidden: ${USER} cannot create resource "serviceaccounts/token"`,
);

const problemOf = async (answer: Error, identity = INLAY, loginRole?: "role") => {
  const { request } = tokensOf(answer, loginRole);
  return request(identity, ["vault"]).then(
    () => assert.fail("there was a token"),
    (error: unknown) => error as Problem,
  );
};

describe("a token of an account", () => {
  it("is requested as the account itself, for the audiences and ten minutes", async () => {
    const token = secretText("jwt");
    const { requests, request } = tokensOf({ status: { token } });
    const answer = await request(INLAY, ["vault", "openbao"]);
    assert.equal(answer.reveal(), token);
    assert.deepEqual(foundIn(inspect(answer) + JSON.stringify({ answer })), []);
    const [{ method, path, identity, body = "", mayBeSent }, ...others] = requests as [Request];
    assert.deepEqual(others, []);
    assert.deepEqual(
      [method, path, identity],
      ["POST", "/api/v1/namespaces/registry/serviceaccounts/inlay/token", INLAY],
    );
    assert.deepEqual(JSON.parse(body).spec, { audiences: ["vault", "openbao"], expirationSeconds: 600 });
    // A replica that is not the leader sends nothing.
    assert.equal(mayBeSent?.(), false);
  });

  it("is Forbidden if the account may not create it, with the command that allows it", async () => {
    const { reason, message } = await problemOf(noRight);
    assert.equal(reason, "Forbidden");
    assert.match(
      message,
      / with: kubectl create rolebinding inlay-vault-login -n registry --clusterrole=inlay-vault-login --serviceaccount=registry:inlay$/,
    );
    assert.match((await problemOf(noRight, INLAY, "role")).message, / -n registry --role=inlay-vault-login /);
    assert.match(
      (await problemOf(noRight, "system:serviceaccount:registry:app")).message,
      / with: kubectl create role app-vault-login -n registry --verb=create --resource=serviceaccounts\/token --resource-name=app && kubectl create rolebinding app-vault-login -n registry --role=app-vault-login --serviceaccount=registry:app$/,
    );
  });

  it("is ImpersonationForbidden if Inlay may not impersonate the account", async () => {
    const impersonation = refused(
      403,
      `serviceaccounts "app" is forbidden: ${USER} cannot impersonate resource "serviceaccounts" in`,
    );
    assert.equal((await problemOf(impersonation)).reason, "ImpersonationForbidden");
  });

  it("is Rejected if admission refuses it, without the text of the policy", async () => {
    const value = secretText("policy");
    for (const status of [403, 422]) {
      const { reason, message } = await problemOf(refused(status, `ValidatingAdmissionPolicy says ${value}`));
      assert.equal(reason, "Rejected");
      assert.match(message, /audiences vault; .*inlay-account-tokens.*spec\.auth\.kubernetes\.audiences/);
      assert.deepEqual(foundIn(message), []);
    }
  });

  it("is ServiceAccountNotFound without the account, and Unavailable without an answer", async () => {
    const gone = ApiError.fromAnswer("POST /x", 404, JSON.stringify({ reason: "NotFound" }));
    assert.match(
      (await problemOf(gone)).message,
      /no ServiceAccount registry\/inlay, which logs in to Vault; create it/,
    );
    for (const error of [new ApiError("POST /x", 0, "ECONNRESET"), new ApiError("POST /x", 503, "Error")]) {
      const problem = await problemOf(error);
      assert.ok(problem instanceof Problem);
      assert.equal(problem.reason, "Unavailable");
    }
  });

  it("rethrows unexpected errors", async () => {
    const bug = new TypeError("a bug");
    assert.equal(await problemOf(bug), bug);
  });
});
