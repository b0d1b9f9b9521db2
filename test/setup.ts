/**
 * Hooks for the tests of a worker process. mocha runs each file in a worker (.mocharc.yaml). A worker starts its own
 * control plane with Inlay for the first file that needs one, and keeps it for later files. Workers share nothing. After
 * each test, the hooks search its namespaces for values of Secrets, and delete them. After each file, they check the logs
 * and what Inlay did on the API server, and delete the kinds and namespaces that the file left.
 */
import { join } from "node:path";
import type { Context, Hook, RootHookObject, Suite } from "mocha";
import { type ControlPlane, startControlPlane } from "./control-plane/control-plane.ts";
import { findGoProgram } from "./control-plane/go-program.ts";
import { install } from "./control-plane/install.ts";
import { share } from "./control-plane/shared.ts";
import { type AnyObject, Api } from "./controller/api.ts";
import { AuditLog } from "./controller/audit.ts";
import { ControllerProcess } from "./controller/controller.ts";
import { installHarbors } from "./controller/harbor.ts";
import { Kinds } from "./controller/kinds.ts";
import { recordStatuses } from "./controller/recorded-statuses.ts";
import { loggedUntilNow } from "./controller/requests.ts";
import { auditLog, shareAuditLog, stopSharedController } from "./controller/shared.ts";
import { removeNamespace, type TestNamespace, takeNamespaces } from "./controller/test-namespace.ts";
import { assertNoValue, assertNoValueInAuditLog } from "./whole-run/leaks.ts";
import { neededPrograms } from "./whole-run/needed-programs.ts";
import { type FileResult, isOnControlPlane, keepLog, nameOf, writeResult } from "./whole-run/results.ts";
import { RightsCheck, shippedRights } from "./whole-run/rights.ts";

/** The programs are built first if the cache is empty, which takes minutes. */
const STARTS_WITHIN = "20m";
const CHECKED_WITHIN = "3m";

/** Users without permissions, to whom tests grant some. */
const users = { alice: ["team-a"], bob: ["team-b"], carol: [] };

/** A file in the folder of the control plane, which is removed with it. */
const AUDIT_LOG = "audit.log";

// Controllers and commands start in half of the time when Node finds compiled code in its cache.
process.env["NODE_COMPILE_CACHE"] ??= join(import.meta.dirname, "..", "node_modules", ".cache", "compiled");

/** The control plane of this worker, and the marks of the last file. */
let shared: { controlPlane: ControlPlane; rights: RightsCheck; cleanUp(): Promise<void> } | undefined;

/** The current file. */
let result: FileResult;
let onControlPlane = false;
let began = 0;
/** The namespaces that hooks created for all tests of the file. */
const fileNamespaces: TestNamespace[] = [];
/** When the last test ended. The time until the next one belongs to the hooks of that test. */
let lastEnd = 0;
let auditMark = 0;
let logs = 0;
/** The length of the log of each controller when the test, or the file, began. */
let testMarks = new Map<ControllerProcess, number>();
let fileMarks = new Map<ControllerProcess, number>();

export const mochaHooks: RootHookObject = {
  async beforeAll(this: Context) {
    this.timeout(STARTS_WITHIN);
    const root = this.test?.parent as Suite;
    const file = root.suites[0]?.file ?? "";
    onControlPlane = isOnControlPlane(file);
    const startedAt = performance.now();
    // Programs that a test starts find the cluster of the test or none, but never the cluster of the person who runs the
    // tests.
    process.env["KUBECONFIG"] = "/nowhere";
    if (onControlPlane) {
      shared ??= await start();
      process.env["KUBECONFIG"] = shared.controlPlane.kubeconfigFile;
      auditMark = await auditLog().mark();
    }
    began = lastEnd = performance.now();
    result = {
      file: nameOf(file),
      ms: 0,
      startMs: began - startedAt,
      tests: [],
      logs: [],
      rights: [],
      reloaderRights: [],
      compositionRights: [],
      isSearched: false,
    };
    assertNoValue("the names of the tests", titlesOf(root).join("\n"));
    fileMarks = testMarks = ControllerProcess.marks();
    // If one can't be built, the hook or test that starts it fails with the reason.
    for (const program of neededPrograms(file)) await findGoProgram(program).catch(() => {});
    began = lastEnd = performance.now();
  },

  beforeEach() {
    // The namespaces from earlier hooks belong to the file.
    fileNamespaces.push(...takeNamespaces());
    testMarks = ControllerProcess.marks();
  },

  async afterEach(this: Context) {
    const test = this.currentTest;
    if (test === undefined) return;
    const now = performance.now();
    const state = test.state ?? "pending";
    const kept = state === "failed" ? await keepLogs(testMarks) : [];
    result.tests.push({ title: test.fullTitle(), state, ms: now - lastEnd, logs: kept });
    await Promise.all(takeNamespaces().map((team) => team.remove()));
    lastEnd = performance.now();
  },

  async afterAll(this: Context) {
    this.timeout(CHECKED_WITHIN);
    if (hasFailedHook(this.test?.parent as Suite)) result.logs = await keepLogs(fileMarks);
    try {
      if (shared !== undefined && onControlPlane) {
        await Promise.all([...fileNamespaces.splice(0), ...takeNamespaces()].map((team) => team.remove()));
        for (const text of ControllerProcess.since(fileMarks)) assertNoValue("the controller's log", text);
        await loggedUntilNow({ api: new Api(shared.controlPlane), namespace: "default" });
        await assertNoValueInAuditLog(auditLog(), auditMark);
        if (process.env["INLAY_RECORD_STATUSES"]) await recordStatuses(auditLog());
        Object.assign(result, await shared.rights.check(), { isSearched: true });
        await shared.cleanUp();
      }
    } finally {
      ControllerProcess.forgetEnded();
      result.ms = performance.now() - began;
      await writeResult(result);
    }
  },
};

/** The pipes of a controller would keep this process alive, if the tests ran in it. */
export const mochaGlobalTeardown = stopSharedController;

async function start(): Promise<NonNullable<typeof shared>> {
  const policy = join(import.meta.dirname, "controller", "audit-policy.yaml");
  // Memory is plentiful here, so the API server collects garbage less often and uses more memory.
  process.env["GOGC"] ??= "400";
  const controlPlane = await startControlPlane({
    users,
    // The log is one file, with its size in MB, because tests read all requests since the beginning.
    apiServerFlags: [`--audit-policy-file=${policy}`, `--audit-log-path=${AUDIT_LOG}`, "--audit-log-maxsize=10000"],
  });
  try {
    share(controlPlane);
    shareAuditLog(new AuditLog(join(controlPlane.folder, AUDIT_LOG)));
    await install(controlPlane);
    const api = new Api(controlPlane);
    await installHarbors(api);
    const rights = new RightsCheck(api, auditLog(), await shippedRights());
    const kinds = await Kinds.of(api);
    const initial = await namespacesOf(api);
    const cleanUp = async () => {
      await kinds.removeOthers();
      await removeLeases(api);
      const others = (await namespacesOf(api)).filter((name) => !initial.includes(name));
      for (const name of others) await removeNamespace(api, name);
      await removeHarborClusters(api);
      // Pages add a version.
      await installHarbors(api);
    };
    return { controlPlane, rights, cleanUp };
  } catch (error) {
    await controlPlane.stop();
    throw error;
  }
}

/** Writes the log of each controller since a mark to a file. Returns the files. */
async function keepLogs(since: ReadonlyMap<ControllerProcess, number>): Promise<string[]> {
  const texts = ControllerProcess.since(since).filter((text) => text !== "");
  return Promise.all(texts.map((text) => keepLog(result.file, ++logs, text)));
}

function titlesOf(suite: Suite): string[] {
  return [suite.title, ...suite.tests.map(({ title }) => title), ...suite.suites.flatMap(titlesOf)];
}

async function namespacesOf(api: Api): Promise<string[]> {
  const { items } = await api.get("/api/v1/namespaces");
  return items.map(({ metadata }: AnyObject) => metadata.name);
}

/** Namespaces are removed without their objects, and the CRD, which pages delete, waits for the last one. */
async function removeHarborClusters(api: Api): Promise<void> {
  const path = "/apis/goharbor.io/v1beta1";
  const { items } = (await api.find(`${path}/harborclusters`)) ?? { items: [] };
  const namespaces = new Set(items.map(({ metadata }: AnyObject) => metadata.namespace));
  await Promise.all([...namespaces].map((name) => api.remove(`${path}/namespaces/${name}/harborclusters`)));
}

/** A Lease that is not renewed any more says that no controller runs, also one in a namespace that was removed. */
async function removeLeases(api: Api): Promise<void> {
  const leases = "/apis/coordination.k8s.io/v1";
  const { items } = await api.get(`${leases}/leases?fieldSelector=metadata.name=inlay-controller`);
  for (const { metadata } of items)
    await api.remove(`${leases}/namespaces/${metadata.namespace}/leases/${metadata.name}`);
}

/** mocha's types hide the hooks of a suite. */
type Hooks = Record<"_beforeAll" | "_beforeEach" | "_afterEach" | "_afterAll", Hook[]>;

function hasFailedHook(suite: Suite): boolean {
  const { _beforeAll, _beforeEach, _afterEach, _afterAll } = suite as unknown as Hooks;
  const hooks = [..._beforeAll, ..._beforeEach, ..._afterEach, ..._afterAll];
  return hooks.some(({ state }) => state === "failed") || suite.suites.some(hasFailedHook);
}
