/**
 * A claim that names a VaultConnection. Its binding uses the connection only with a SecretGrant, whatever the composition's
 * account may use.
 */
import assert from "node:assert/strict";
import {
  ACCESS_KEY_BASE,
  compose,
  composedIn,
  HARBOR_CLAIMS,
  installCompositions,
  removeCompositions,
  TO_CLAIM,
} from "../controller/compositions.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { createNamespace } from "../controller/test-namespace.ts";

const CONNECTION = "example.com/connection";
const PATH = "example.com/path";
const USES_VAULT = { apiGroups: ["inlay.dev"], resources: ["vaultconnections"], verbs: ["use"] };
const annotationTo = (key: string, toFieldPath: string) => ({
  fromFieldPath: `metadata.annotations[${key}]`,
  toFieldPath: `spec.sources[0].vault.${toFieldPath}`,
});

describe("a source from Vault of a composition", function () {
  this.timeout("2m");
  before(() => installCompositions([...HARBOR_CLAIMS, USES_VAULT]));
  after(() => removeCompositions());

  it("requires a grant for the connection if the claim names it, and none for mount and path", async () => {
    const team = await createNamespace();
    const vault = { connection: { name: "main" }, data: { mount: "kv", path: "s3" } };
    const base = { spec: { ...ACCESS_KEY_BASE.spec, sources: [{ name: "bucket", vault }] } };
    const patches = [TO_CLAIM, annotationTo(CONNECTION, "connection.name"), annotationTo(PATH, "data.path")];
    await team.harbor("harbor");
    await team.harbor("other");
    const annotate = (name: string, annotations: object) =>
      team.api.merge(team.harborPath(name), { metadata: { annotations } });
    await annotate("harbor", { [CONNECTION]: "theirs" });
    await annotate("other", { [PATH]: "deep/s3" });
    await compose(team, "harbor", { bindings: [{ name: "s3", base, patches }] });

    // No such VaultConnection exists. A source that requires no grant reports that, and one that requires a grant does not.
    await team.until("other-s3", "ConnectionNotFound");
    const { status } = await team.until("harbor-s3", "NotGranted");
    const sources = (await composedIn(team)).map(({ metadata, spec }) => [metadata.name, spec.sources[0].vault]);
    assert.deepEqual(Object.fromEntries(sources), {
      "harbor-s3": {
        ...vault,
        connection: { name: "theirs", granted: true },
      },
      "other-s3": { ...vault, data: { ...vault.data, path: "deep/s3" } },
    });
    const { message } = status.conditions[0];
    assert.match(message, /BindingComposition \S+ .*VaultConnection \S+\/theirs/);
    assert.deepEqual(await paste(commandsIn(message)), []);
    await team.until("harbor-s3", "ConnectionNotFound");
  });
});
