/** Shows the errors that a namespaced Inlay reports at its start. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "../controller/eventually.ts";
import { Installation } from "../controller/one-namespace.ts";
import { stopSharedController } from "../controller/shared.ts";
import { createNamespace } from "../controller/test-namespace.ts";

const inlay = join(import.meta.dirname, "..", "..", "src", "main.ts");

describe("a namespaced Inlay that starts", () => {
  before(stopSharedController);

  it("reports missing permissions in its namespace", async () => {
    const none = new Installation(await createNamespace({ controller: false }));
    try {
      // This account has no permission at all: neither for the Lease nor for the bindings.
      const replica = await none.start("default");
      await eventually(async () => assert.equal(await none.readiness(), "unreachable: coordination.k8s.io/leases\n"));
      await replica.stop();
      await none.team.grant(
        [{ apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get", "create", "update"] }],
        { account: "default", role: "leases" },
      );
      await none.start("default");
      const failed = "failed: inlay.dev/secretbindings\nfailed: inlay.dev/vaultconnections\n";
      await eventually(async () => assert.equal(await none.readiness(1), failed));
      const said = /apis\/.*deploy\/namespaced\//;
      await eventually(() => assert.match(none.replicas[1]?.output ?? "", said));
    } finally {
      await none.stop();
    }
  });

  it("refuses a value that is not the name of a namespace", async () => {
    const names = ["", "$(POD_NAMESPACE)", "one,two", "Upper"];
    await Promise.all(
      names.map(async (name) => {
        const started = promisify(execFile)(process.execPath, [inlay, "controller", "--watch-namespace", name]);
        const isSaid = ({ code, stderr }: { code: number; stderr: string }) =>
          code === 1 && /name of one namespace/.test(stderr);
        await assert.rejects(started, isSaid);
      }),
    );
  });
});
