/**
 * Tests every custom resource of docs/demand.md on the real API server. The values arrive with their types, and nothing
 * else changes. A rotation is written too. Release restores the object, or only the binding's values stay.
 */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { applyFile } from "../controller/manifests.ts";
import { createNamespace, harborTarget, usualRules } from "../controller/test-namespace.ts";
import { pem } from "./row.ts";
import { rows } from "./rows.ts";
import { live } from "./story.ts";

const samples = join(import.meta.dirname, "..", "..", "samples");

describe("custom resources that need values inline", () => {
  before("their shapes are installed", async () => {
    const folders = [join(import.meta.dirname, "crds"), ...(await foldersCalled("crd", samples))];
    const api = new Api(controlPlane());
    for (const folder of folders) await applyFile(api, folder);
    for (const { apiVersion, kind } of rows.flatMap(({ targets }) => targets)) await published(api, apiVersion, kind);
  });

  it("include every kind that docs/demand.md lists", async () => {
    const table = await readFile(join(import.meta.dirname, "..", "..", "docs", "demand.md"), "utf8");
    const listed = [...table.matchAll(/^\| +(\d*) +\| (\S+) of `(\S+)` /gm)].map(
      ([, , kind, version]) => `${version} ${kind}`,
    );
    const numbers = [...table.matchAll(/^\| (\d+) +\|/gm)].map(([, number]) => Number(number));
    const tested = rows.flatMap(({ targets }) => targets.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`));
    assert.deepEqual(
      numbers,
      rows.map(({ number }) => number),
    );
    assert.deepEqual([...new Set(tested)].toSorted(), [...new Set(listed)].toSorted());
  });

  for (const row of rows) it(`${row.number}. ${row.title}`, () => live(row));

  it("8. webhook configurations decide which requests the API server accepts: a binding that names one is ForbiddenKind", async () => {
    const team = await createNamespace({ rules: usualRules });
    const webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    const verbs = ["get", "list", "watch", "patch"];
    const resources = ["validatingwebhookconfigurations"];
    await team.grantInCluster([{ apiGroups: ["admissionregistration.k8s.io"], resources, verbs }]);
    const { apiVersion, kind } = {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingWebhookConfiguration",
    };
    const before = await team.api.create(webhooks, { apiVersion, kind, metadata: { name: "demand" } });
    await team.secret("serving", { "ca.crt": pem() });
    await team.harbor();
    const from = { source: "serving", key: "ca.crt" };
    await team.bind("ca", {
      sources: [{ secret: { name: "serving" } }],
      targets: [
        { apiVersion, kind, name: "demand", fields: [{ path: 'metadata.annotations["example.com/ca"]', from }] },
        harborTarget({ accesskey: { from } }),
      ],
    });
    const { status } = await team.until("ca", "ForbiddenKind");
    assert.equal(status.synced, "1/2");
    assert.match(status.conditions[0].message, /ValidatingWebhookConfiguration \S+/);
    assert.deepEqual(await team.api.get(`${webhooks}/demand`), before);
  });
});

async function foldersCalled(name: string, within: string): Promise<string[]> {
  const found = await readdir(within, { withFileTypes: true, recursive: true });
  return found.filter((each) => each.isDirectory() && each.name === name).map((each) => join(each.parentPath, name));
}

/** The API server publishes the schema of a kind some time after it serves the kind. */
function published(api: Api, apiVersion: string, kind: string): Promise<void> {
  return eventually(async () => {
    const address = (await api.get("/openapi/v3")).paths[`apis/${apiVersion}`]?.serverRelativeURL;
    assert.ok(address, `${apiVersion} is not published yet`);
    assert.match(JSON.stringify(await api.get(address)), new RegExp(`"kind":"${kind}"`));
  }, 30_000);
}
