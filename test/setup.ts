/**
 * What a run of the tests has in common: the specs that were chosen come in, and where one of them needs an API server,
 * out goes one control plane with Inlay installed, for all of them.
 */
import { join, sep } from "node:path";
import type { Runner, Suite } from "mocha";
import { startControlPlane } from "./control-plane/control-plane.ts";
import { install } from "./control-plane/install.ts";
import { share, stopShared } from "./control-plane/shared.ts";
import { AuditLog } from "./controller/audit.ts";
import { shareAuditLog, stopSharedController } from "./controller/shared.ts";

const needControlPlane = ["integration", "demand", "e2e", "faults", "last"].map(
  (folder) => join(import.meta.dirname, folder) + sep,
);
const ENDS_WITHIN = 10_000;

/** People without rights of their own, for tests to grant them some. */
const users = { alice: ["team-a"], bob: ["team-b"], carol: [] };

/** In the control plane's folder, with which it goes. */
const AUDIT_LOG = "audit.log";

export async function mochaGlobalSetup(this: Runner): Promise<void> {
  // Whatever a test starts finds the test's cluster, or none, but never that of who runs the tests.
  process.env["KUBECONFIG"] = "/nowhere";
  if (!this.suite.suites.some((suite) => inNeed(suite) && this.grepTotal(suite) > 0)) return;
  const policy = join(import.meta.dirname, "controller", "audit-policy.yaml");
  const started = await startControlPlane({
    users,
    // In one file, in MB: tests ask for all that was done since the beginning.
    apiServerFlags: [`--audit-policy-file=${policy}`, `--audit-log-path=${AUDIT_LOG}`, "--audit-log-maxsize=10000"],
  });
  share(started);
  shareAuditLog(new AuditLog(join(started.folder, AUDIT_LOG)));
  process.env["KUBECONFIG"] = started.kubeconfigFile;
  try {
    await install(started);
    const crd = join(import.meta.dirname, "..", "samples", "harbor", "crd");
    await started.kubectl("apply", `--filename=${crd}`);
    await started.kubectl("wait", "--for=condition=Established", `--filename=${crd}`);
  } catch (error) {
    await started.stop();
    throw error;
  }
}

export async function mochaGlobalTeardown(): Promise<void> {
  await stopSharedController();
  await stopShared();
  // A test that leaves something open keeps this process alive, which is a fault to show rather than to hide.
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().join(", ");
    process.stderr.write(`The tests ended, but something of theirs stays open: ${open}\n`);
    // Mocha sets the exit code on the same event, so this must come after it.
    process.once("exit", () => {
      process.exitCode ||= 1;
    });
    process.exit();
  }, ENDS_WITHIN).unref();
}

const inNeed = ({ file = "" }: Suite) => needControlPlane.some((folder) => file.startsWith(folder));
