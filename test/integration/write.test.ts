/** Values of sources arrive in fields of targets, and stay there. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/hunted.ts";
import { harborTarget, newTeam } from "../controller/team.ts";

describe("a SecretBinding writes", () => {
  it("a key of a Secret and a template into a HarborCluster", async () => {
    const team = await newTeam();
    const accessKey = secretText("access");
    await team.secret("bucket", { accessKeyID: accessKey, host: "s3.example.com", port: "9000" });
    await team.harbor();
    await team.bind("harbor-s3", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [
        harborTarget({
          accesskey: { from: { source: "bucket", key: "accessKeyID" } },
          regionendpoint: { template: "https://{{bucket.host}}:{{bucket.port}}" },
        }),
      ],
    });
    await team.until("harbor-s3", "Synced");
    const s3 = await team.s3();
    assert.equal(s3.accesskey, accessKey);
    assert.equal(s3.regionendpoint, "https://s3.example.com:9000");
    assert.equal(s3.bucket, "harbor");
  });

  it("a rotated value at once", async () => {
    const team = await newTeam();
    await team.secret("bucket", { accessKeyID: secretText("before") });
    await team.harbor();
    await team.bind("harbor-s3", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [harborTarget({ accesskey: { from: { source: "bucket", key: "accessKeyID" } } })],
    });
    await team.until("harbor-s3", "Synced");
    const rotated = secretText("after");
    await team.secret("bucket", { accessKeyID: rotated });
    await eventually(async () => assert.equal((await team.s3()).accesskey, rotated));
  });
});
