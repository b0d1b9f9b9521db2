/** What changed is read as new as it was seen at least, and from the API server's memory, which spares etcd. */
import assert from "node:assert/strict";
import { Client } from "../../src/kube/client.ts";
import { loadCredentials } from "../../src/kube/credentials.ts";
import { CONTROLLER as OURSELVES } from "../../src/kube/identity.ts";
import { Transport } from "../../src/kube/transport.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/hunted.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { newTeam } from "../controller/team.ts";

describe("a read", () => {
  it("of a changed source and its target asks for the versions that the watches showed, or later ones", async () => {
    const team = await newTeam();
    await team.boundHarbor();
    const mark = await auditLog().mark();
    const accessKey = secretText("rotated");
    await team.secret("bucket", { accessKeyID: accessKey });
    await eventually(async () => assert.equal((await team.s3()).accesskey, accessKey));
    const { metadata } = await team.api.get(`${team.path("v1", "secrets")}/bucket`);
    const reads = (await requestsFor(team, mark)).filter(({ verb }) => verb === "get");
    const versions = Object.fromEntries(
      reads
        .toReversed()
        .map(({ resource, uri }) => [resource, new URL(uri, "https://x").searchParams.get("resourceVersion")]),
    );
    assert.equal(versions["secrets"], metadata.resourceVersion);
    assert.match(versions["goharbor.io/harborclusters"] ?? "", /^\d+$/);
  });

  it("of a version that the API server does not know, as after a restored backup, brings what there is", async () => {
    const team = await newTeam({ controller: false });
    const file = await controlPlane().kubeconfigForServiceAccount("inlay-system", "inlay-controller");
    const transport = new Transport(await loadCredentials(file));
    try {
      const namespaces = {
        group: "",
        version: "v1",
        kind: "Namespace",
        plural: "namespaces",
        namespaced: false,
        hasStatus: true,
      };
      const ref = { resource: namespaces, name: team.namespace };
      const { metadata } = await new Client(transport).get(OURSELVES, ref, "999999999999");
      assert.equal(metadata.name, team.namespace);
    } finally {
      await transport.close();
    }
  });
});
