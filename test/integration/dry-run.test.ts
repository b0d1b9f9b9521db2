/** `inlay controller --dry-run` on a real API server: it changes no object, says what it would write, and comes to an end. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import {
  ACCESS_KEY_BASE,
  compose,
  HARBOR_CLAIMS,
  installCompositions,
  READS_SECRETS,
  removeCompositions,
  TO_CLAIM,
} from "../controller/compositions.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { loggedUntilNow } from "../controller/requests.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { accessKeySpec, createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const SUMMARY = /the first pass is over/;

/** Every object that Inlay could write, with its version. */
async function versionsIn(team: TestNamespace): Promise<string[]> {
  const kinds = [
    ["v1", "secrets"],
    ["v1", "configmaps"],
    ["v1", "events"],
    ["apps/v1", "deployments"],
    ["apps/v1", "replicasets"],
    ["goharbor.io/v1beta1", "harborclusters"],
    ["inlay.dev/v1alpha1", "secretbindings"],
  ] as const;
  const cluster = [
    "/apis/inlay.dev/v1alpha1/bindingcompositions",
    "/apis/coordination.k8s.io/v1/namespaces/inlay-system/leases",
    "/api/v1/namespaces/inlay-system/secrets",
  ];
  const paths = [...kinds.map(([apiVersion, plural]) => team.path(apiVersion, plural)), ...cluster];
  const lists = await Promise.all(
    paths.map(async (path) => ({ path, items: (await team.api.get(path)).items as AnyObject[] })),
  );
  return lists
    .flatMap(({ path, items }) => items.map(({ metadata }) => `${path}/${metadata.name} ${metadata.resourceVersion}`))
    .sort();
}

describe("a dry run of the controller", () => {
  let team: TestNamespace;
  let dry: ControllerProcess;
  let mark: number;
  let versions: string[];
  const planned = () =>
    dry.output
      .split("\n")
      .filter((line) => line.includes('"would write"'))
      .map((line) => JSON.parse(line));
  const plannedOn = (resource: string, name: string) =>
    planned().filter(({ object }) => object === `${resource} ${team.namespace}/${name}`.replace(/\/$/, ""));

  before(async function () {
    this.timeout("3m");
    await installCompositions([...HARBOR_CLAIMS, READS_SECRETS]);
    const creates = {
      apiGroups: [""],
      resources: ["configmaps"],
      verbs: ["get", "list", "watch", "create", "patch", "delete"],
    };
    team = await createNamespace({ rules: [...rolloutRules, creates] });
    await team.boundHarbor();
    const workloads = new Workloads(team);
    await workloads.deploy({ web: { env: { bucket: ["accessKeyID"] } } });
    const sources = [{ secret: { name: "bucket" } }];
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"] } });
    await workloads.rolledOut("rolls", 0);
    await team.harbor("second");
    await team.bind("suspended", { ...accessKeySpec({ name: "second" }), suspend: true });
    await team.until("suspended", "Suspended");
    await team.barrier();
    await stopSharedController();
    // From now on, no controller runs.
    await team.secret("bucket", { accessKeyID: secretText("access") });
    const target = { apiVersion: "v1", kind: "ConfigMap", name: "made", create: { manifest: {} } };
    const fields = [{ path: "data.key", from: { source: "bucket", key: "accessKeyID" } }];
    await team.bind("creates", { sources, targets: [{ ...target, fields }], acknowledge: ["ReadableCopies"] });
    await team.bind("waits", {
      sources: [{ secret: { name: "nothing" } }],
      targets: [
        {
          ...target,
          create: undefined,
          name: "other",
          fields: [{ path: "data.key", from: { source: "nothing", key: "a" } }],
        },
      ],
    });
    await compose(team, "harbor", { bindings: [{ name: "s3", base: ACCESS_KEY_BASE, patches: [TO_CLAIM] }] });
    versions = await versionsIn(team);
    mark = await auditLog().mark();
    dry = new ControllerProcess(controlPlane(), "--dry-run");
    await dry.start();
    await eventually(() => assert.match(dry.output, SUMMARY), 60_000);
  });
  after(async () => {
    await dry.stop();
    await removeCompositions();
  });

  it("names the targets, the objects to create, the bindings to compose and the workloads to restart", () => {
    const [apply] = plannedOn("harborclusters.goharbor.io", "harbor");
    assert.deepEqual(
      [apply.verb, apply.fields, apply.as],
      ["apply", ["spec.storage.spec.s3.accesskey"], `ServiceAccount ${team.namespace}/inlay`],
    );
    assert.ok(plannedOn("configmaps", "").some(({ verb, fields }) => verb === "create" && fields.includes("data.key")));
    assert.ok(
      plannedOn("secretbindings.inlay.dev", "").some(
        ({ verb, fields }) => verb === "create" && fields.includes("spec.targets"),
      ),
    );
    const [restart] = plannedOn("deployments.apps", "web");
    assert.match(restart.fields.join(), /template/);
    assert.deepEqual(
      plannedOn("harborclusters.goharbor.io", "second").filter(({ as }) => as.includes("/inlay")),
      [],
    );
  });

  it("plans each write once, so that the first pass ends", () => {
    const lines = planned()
      .filter(({ object }) => object.includes(team.namespace) && !object.includes("/status"))
      .map(({ verb, object, fields }) => [verb, object, ...fields].join(" "));
    assert.deepEqual(lines.sort(), [...new Set(lines)].sort());
    const { writes, objects } = JSON.parse(dry.output.split("\n").find((line) => SUMMARY.test(line)) ?? "");
    assert.ok(writes >= 4 && objects >= 3, `${writes} ${objects}`);
  });

  it("changes no object, and sends no write but dry runs and reviews", async () => {
    assert.deepEqual(await versionsIn(team), versions);
    await loggedUntilNow(team);
    const sent = (await auditLog().since(mark)).filter(
      ({ user, verb }) => user.endsWith(":inlay-controller") && !["get", "list", "watch"].includes(verb),
    );
    const real = sent.filter(
      ({ uri }) => !uri.includes("dryRun=All") && !/accessreviews|rulesreviews|tokenreviews/.test(uri),
    );
    assert.deepEqual(
      real.map(({ verb, uri }) => `${verb} ${uri}`),
      [],
    );
    assert.ok(sent.some(({ uri }) => uri.includes("dryRun=All")));
  });

  it("follows later changes", async () => {
    const count = plannedOn("harborclusters.goharbor.io", "harbor").length;
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await eventually(() => assert.ok(plannedOn("harborclusters.goharbor.io", "harbor").length > count));
  });
});
