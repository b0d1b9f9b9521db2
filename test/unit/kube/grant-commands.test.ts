/** The commands that grant permissions: exactly these, in few Roles. */
import assert from "node:assert/strict";
import { ACCOUNT_TOKENS, CONFIG_MAPS, SECRETS } from "../../../src/apimachinery/resources.ts";
import { grantCommands, inWords, type Permission } from "../../../src/kube/grant-commands.ts";
import { serviceAccountIdentity } from "../../../src/kube/identity.ts";
import { HARBORS, ISSUERS } from "../resources.ts";

const ACCOUNT = serviceAccountIdentity("registry", "inlay");
const READ = ["get", "list", "watch"];

const on = (
  resource: Permission["ref"]["resource"],
  name: string | undefined,
  verbs: string[],
  namespace = "registry",
) => ({
  ref: { resource, namespace, ...(name !== undefined && { name }) },
  verbs,
});

/** What each command grants: verbs, resources and names, and where. */
const granted = (...permissions: Permission[]) =>
  grantCommands(ACCOUNT, permissions).map((line) => {
    const [create = "", bind = ""] = line.split("; ");
    const [, role = ""] = /^kubectl create (?:cluster)?role (inlay-\w+-[0-9a-f]{6}) /.exec(create) ?? [];
    assert.match(bind, new RegExp(`role=${role} --serviceaccount=registry:inlay$`));
    return create.replace(/^kubectl create (cluster)?role \S+ /, "$1");
  });

describe("commands that grant permissions", () => {
  it("merge names of a kind, and kinds without names, but never widen a permission", () => {
    assert.deepEqual(
      granted(
        on(SECRETS, "a", READ),
        on(SECRETS, "b", READ),
        on(CONFIG_MAPS, "a", READ),
        on(HARBORS, undefined, [...READ, "patch"]),
        on(CONFIG_MAPS, undefined, ["list", "patch", "get", "watch"]),
        on(SECRETS, "c", READ, "web"),
      ),
      [
        "-n registry --verb=get,list,watch --resource=secrets --resource-name=a --resource-name=b",
        "-n registry --verb=get,list,watch,patch --resource=harborclusters.goharbor.io,configmaps",
        "-n web --verb=get,list,watch --resource=secrets --resource-name=c",
      ],
    );
  });

  it("collect the verbs of an object, with a Role of its own for create", () => {
    assert.deepEqual(granted(on(SECRETS, "a", ["watch"]), on(SECRETS, "a", ["create", "patch", "watch"])), [
      "-n registry --verb=watch,patch --resource=secrets --resource-name=a",
      "-n registry --verb=create --resource=secrets",
    ]);
    assert.deepEqual(granted(on(ACCOUNT_TOKENS, "inlay", ["create"])), [
      "-n registry --verb=create --resource=serviceaccounts/token --resource-name=inlay",
    ]);
  });

  it("name at most 50 objects each, so that each fits into a status", () => {
    const many = Array.from({ length: 120 }, (_, at) => on(SECRETS, `s-${at}`, READ));
    assert.deepEqual(
      granted(...many).map((each) => each.split("--resource-name").length - 1),
      [50, 50, 20],
    );
  });

  it("use a ClusterRole for objects outside of namespaces", () => {
    const issuer = { ref: { resource: ISSUERS, name: "acme" }, verbs: READ };
    const [command = ""] = grantCommands(ACCOUNT, [issuer]);
    assert.match(
      command,
      /^kubectl create clusterrole (\S+) --verb=\S+ --resource=\S+ --resource-name=acme; kubectl create clusterrolebinding \1 --clusterrole=\1 --/,
    );
    assert.deepEqual(inWords(ACCOUNT, [issuer]), ["get, list, watch on clusterissuers.cert-manager.io/acme"]);
  });

  it("give Roles with other rules, and for other accounts, other names", () => {
    const roles = [
      grantCommands(ACCOUNT, [on(SECRETS, "a", READ)]),
      grantCommands(ACCOUNT, [on(SECRETS, "a", ["watch"])]),
      grantCommands(ACCOUNT, [on(SECRETS, "b", READ)]),
      grantCommands(serviceAccountIdentity("web", "inlay"), [on(SECRETS, "a", READ)]),
    ].map(([command = ""]) => command.split(" ")[3]);
    assert.equal(new Set(roles).size, 4);
    assert.deepEqual(grantCommands(ACCOUNT, [on(SECRETS, "a", READ)])[0]?.split(" ")[3], roles[0]);
  });

  it("quote what authors of bindings write", () => {
    const [command = ""] = grantCommands(ACCOUNT, [on(SECRETS, "a'; rm -rf $(x)", ["get"])]);
    assert.ok(command.includes(` --resource-name='a'\\''; rm -rf $(x)'; kubectl`), command);
  });

  it("are described in words", () => {
    assert.deepEqual(inWords(ACCOUNT, [on(SECRETS, "a", READ), on(HARBORS, undefined, ["create"], "web")]), [
      "get, list, watch on secrets/a",
      "create on harborclusters.goharbor.io in namespace web",
    ]);
  });
});
