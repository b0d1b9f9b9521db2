/**
 * Shows that a binding follows its dependencies in whichever order they are created, deleted and recreated, without a restart.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import {
  apiVersionOf,
  createObject,
  installKind,
  type Kind,
  mayWrite,
  objectPath,
  removeKind,
} from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import {
  accessKeySpec,
  createNamespace,
  harborTarget,
  type TestNamespace,
  usualRules,
} from "../controller/test-namespace.ts";

/** The API server publishes a new kind within seconds, or a few more on a busy machine. */
const KIND_MS = 25_000;

const place: Kind = {
  group: "order.example.com",
  kind: "Place",
  plural: "places",
  scope: "Namespaced",
  spec: { type: "object", properties: { address: { type: "string" } } },
};

/** Each kind of source: how it is created, and its path. */
interface Origin {
  source: object;
  from: object;
  make(team: TestNamespace, value: string): Promise<unknown>;
  path(team: TestNamespace): string;
}

const origins: Record<string, Origin> = {
  Secret: {
    source: { secret: { name: "bucket" } },
    from: { source: "bucket", key: "address" },
    make: (team, address) => team.secret("bucket", { address }),
    path: (team) => `${team.path("v1", "secrets")}/bucket`,
  },
  ConfigMap: {
    source: { configMap: { name: "bucket" } },
    from: { source: "bucket", key: "address" },
    make: (team, address) =>
      team.api.create(team.path("v1", "configmaps"), { metadata: { name: "bucket" }, data: { address } }),
    path: (team) => `${team.path("v1", "configmaps")}/bucket`,
  },
  "custom object": {
    source: { object: { apiVersion: apiVersionOf(place), resource: place.plural, name: "bucket" } },
    from: { source: "bucket", fieldPath: "spec.address" },
    make: async (team, address) => {
      await installKind(team.api, place);
      await createObject(team.api, place, "bucket", { address }, team.namespace);
    },
    path: (team) => objectPath(place, team.namespace, "bucket"),
  },
};

const specOf = ({ source, from }: Origin) => ({ sources: [source], targets: [harborTarget({ accesskey: { from } })] });

const rules = [...usualRules, mayWrite(place)];

describe("in any order, a binding", () => {
  it("waits for an unavailable API group only in targets that name it", async () => {
    const team = await createNamespace();
    const apiServices = "/apis/apiregistration.k8s.io/v1/apiservices";
    const value = secretText("access");
    await team.secret("bucket", { accessKeyID: value });
    await team.harbor();
    await team.api.create(apiServices, {
      metadata: { name: "v1.broken.example.com" },
      spec: {
        group: "broken.example.com",
        version: "v1",
        service: { name: "missing", namespace: team.namespace },
        groupPriorityMinimum: 100,
        versionPriority: 100,
      },
    });
    try {
      const harbor = harborTarget({ accesskey: { from: { source: "bucket", key: "accessKeyID" } } });
      const broken = { ...harbor, apiVersion: "broken.example.com/v1", kind: "Thing" };
      const defaults = { onRelease: "Remove" };
      await team.bind("harbor-s3", { defaults, sources: [{ secret: { name: "bucket" } }], targets: [broken, harbor] });
      const { status } = await team.until("harbor-s3", "Unavailable");
      assert.deepEqual([status.synced, (await team.s3()).accesskey], ["1/2", value]);
      await team.unbind("harbor-s3");
      assert.equal((await team.s3()).accesskey, undefined);
    } finally {
      await team.api.delete(`${apiServices}/v1.broken.example.com`);
    }
  });

  it("becomes Synced with the right value, in whichever order the Secret, account, permissions, target and binding are created", async () => {
    const things = ["secret", "account", "rights", "target", "binding"] as const;
    /** The reason of the binding while one of them is missing. */
    const reasons = {
      secret: "SourceNotFound",
      account: "ServiceAccountNotFound",
      rights: "Forbidden",
      target: "TargetNotFound",
      binding: "",
    };
    // With `wait`, the binding reports what is missing before the next object is created.
    const steps = fc.shuffledSubarray([...things], { minLength: things.length });
    const orders = fc.tuple(steps, fc.boolean()).map(([order, wait]) => ({ order, wait }));
    const seed = Date.now();
    const run = async ({ order, wait }: { order: readonly (typeof things)[number][]; wait: boolean }) => {
      const team = await createNamespace({ account: false, rules: [] });
      const value = secretText("access");
      const make = {
        secret: () => team.secret("bucket", { accessKeyID: value }),
        account: () => team.createAccount(),
        rights: () => team.grant(usualRules, { role: "rights" }),
        target: () => team.harbor(),
        binding: () => team.bind("harbor-s3", accessKeySpec()),
      };
      for (const [position, thing] of order.entries()) {
        await make[thing]();
        const missing = order.slice(position + 1);
        if (!wait || missing.length === 0 || missing.includes("binding")) continue;
        await eventually(async () => {
          const reason = (await team.binding("harbor-s3")).status?.conditions[0].reason;
          assert.ok(missing.map((each) => reasons[each]).includes(reason), `${reason}, without ${missing}`);
        });
      }
      await team.until("harbor-s3", "Synced");
      assert.equal((await team.s3()).accesskey, value);
    };
    const samples = fc.sample(orders, { numRuns: 16, seed });
    await Promise.all(
      samples.map((sample) =>
        run(sample).catch((error: Error) => {
          throw new Error(`seed ${seed}, ${sample.order.join(" ")}, ${sample.wait ? "each waited for" : "at once"}`, {
            cause: error,
          });
        }),
      ),
    );
  });

  for (const [kind, origin] of Object.entries(origins)) {
    it(`keeps what it wrote when the ${kind} is deleted, reports SourceNotFound, and follows it when it is recreated`, async () => {
      const team = await createNamespace({ rules });
      await team.harbor();
      const [value, other] = [secretText("first"), secretText("second")];
      await origin.make(team, value);
      await team.bind("harbor-s3", specOf(origin));
      await team.until("harbor-s3", "Synced");
      await team.api.delete(origin.path(team));
      const { status } = await team.until("harbor-s3", "SourceNotFound");
      assert.equal(status.conditions[0].status, "False");
      assert.equal((await team.s3()).accesskey, value);
      await origin.make(team, other);
      await team.until("harbor-s3", "Synced");
      assert.equal((await team.s3()).accesskey, other);
    });

    it(`waits for a ${kind} that is created last`, async () => {
      const team = await createNamespace({ rules });
      await installKind(team.api, place);
      await team.harbor();
      await team.bind("harbor-s3", specOf(origin));
      await team.until("harbor-s3", "SourceNotFound");
      const value = secretText("late");
      await origin.make(team, value);
      await team.until("harbor-s3", "Synced");
      assert.equal((await team.s3()).accesskey, value);
    });
  }

  it("follows a Secret that its account may watch by name only, when it is created, deleted and recreated", async () => {
    const team = await createNamespace({
      rules: [
        { apiGroups: [""], resources: ["secrets"], resourceNames: ["bucket"], verbs: ["get", "list", "watch"] },
        ...usualRules.slice(1),
      ],
    });
    await team.harbor();
    await team.bind("harbor-s3", accessKeySpec());
    for (const time of ["first", "second"]) {
      await team.until("harbor-s3", "SourceNotFound");
      const value = secretText(time);
      await team.secret("bucket", { accessKeyID: value });
      await team.until("harbor-s3", "Synced");
      assert.equal((await team.s3()).accesskey, value);
      await team.api.delete(`${team.path("v1", "secrets")}/bucket`);
    }
    await team.until("harbor-s3", "SourceNotFound");
  });

  it("follows a key of a Secret that is added, removed and added again", async () => {
    const team = await createNamespace();
    await team.harbor();
    await team.secret("bucket", { other: "x" });
    await team.bind("harbor-s3", accessKeySpec());
    for (const time of ["first", "second"]) {
      const { status } = await team.until("harbor-s3", "KeyNotFound");
      assert.match(status.conditions[0].message, /Secret \S+\/bucket .*accessKeyID/);
      const value = secretText(time);
      await team.secret("bucket", { accessKeyID: value });
      await team.until("harbor-s3", "Synced");
      assert.equal((await team.s3()).accesskey, value);
      await team.api.merge(`${team.path("v1", "secrets")}/bucket`, { data: { accessKeyID: null } });
      assert.equal((await team.s3()).accesskey, value);
    }
    await team.until("harbor-s3", "KeyNotFound");
  });

  it("follows a target that is deleted and recreated", async () => {
    const team = await createNamespace();
    const value = await team.boundHarbor();
    await team.api.delete(team.harborPath());
    const { status } = await team.until("harbor-s3", "TargetNotFound");
    assert.equal(status.synced, "0/1");
    await team.harbor();
    await team.until("harbor-s3", "Synced");
    assert.equal((await team.s3()).accesskey, value);
  });

  it("follows the namespace of its target, which is created, deleted with its objects, and recreated", async () => {
    const team = await createNamespace();
    const there = `${team.namespace}-there`;
    const [path, object] = [
      `/apis/goharbor.io/v1beta1/namespaces/${there}/harborclusters`,
      await team.harbor("template"),
    ];
    const value = secretText("access");
    await team.secret("bucket", { accessKeyID: value });
    await team.bind("harbor-s3", accessKeySpec({ namespace: there }));
    await team.until("harbor-s3", "Forbidden");
    for (const _ of ["first", "second"]) {
      await team.api.create("/api/v1/namespaces", { metadata: { name: there } });
      await team.grant(usualRules, { namespace: there });
      await team.until("harbor-s3", "TargetNotFound");
      await team.api.create(path, { ...object, metadata: { name: "harbor" } });
      await team.until("harbor-s3", "Synced");
      assert.equal((await team.api.get(`${path}/harbor`)).spec.storage.spec.s3.accesskey, value);
      await team.api.delete(`/api/v1/namespaces/${there}`);
      await team.untilGone(`/api/v1/namespaces/${there}`, KIND_MS);
      // The permissions were deleted with it, which shows when the watch is opened again.
      await eventually(async () => {
        const { reason } = (await team.binding("harbor-s3")).status.conditions[0];
        assert.ok(["TargetNotFound", "Forbidden"].includes(reason), reason);
      });
    }
  });

  /** A kind that only one test uses. */
  const kindFor = (name: string, more: Partial<Kind> = {}): Kind => ({
    group: `${name}.order.example.com`,
    kind: "Wall",
    plural: "walls",
    scope: "Namespaced",
    spec: { type: "object", properties: { colour: { type: "string" }, size: { type: "string" } } },
    ...more,
  });
  const wallSpec = (kind: Kind) => ({
    sources: [{ secret: { name: "bucket" } }],
    targets: [
      {
        apiVersion: apiVersionOf(kind),
        kind: kind.kind,
        name: "wall",
        fields: [{ path: "spec.colour", from: { source: "bucket", key: "colour" } }],
      },
    ],
  });
  const colourOf = async (team: TestNamespace, kind: Kind) =>
    (await team.api.get(objectPath(kind, kind.scope === "Cluster" ? undefined : team.namespace, "wall"))).spec.colour;

  it("follows the CRD of its target, which is created, deleted with all objects, and recreated", async () => {
    const kind = kindFor("target");
    const team = await createNamespace({ rules: [...usualRules, mayWrite(kind)] });
    const colour = secretText("colour");
    await team.secret("bucket", { colour });
    await team.bind("wall", wallSpec(kind));
    for (const _ of ["first", "second"]) {
      const { status } = await team.until("wall", "KindNotFound", KIND_MS);
      assert.match(status.conditions[0].message, /(Wall|walls) in target\.order\.example\.com\/v1; .*CRD/);
      await installKind(team.api, kind);
      await team.until("wall", "TargetNotFound", KIND_MS);
      await createObject(team.api, kind, "wall", { size: "1" }, team.namespace);
      await team.until("wall", "Synced", KIND_MS);
      assert.equal(await colourOf(team, kind), colour);
      await removeKind(team.api, kind);
    }
    await team.until("wall", "KindNotFound", KIND_MS);
  });

  it("follows the CRD of its source, which is created, deleted with all objects, and recreated", async () => {
    const kind = kindFor("source");
    const team = await createNamespace({ rules: [...usualRules, mayWrite(kind)] });
    await team.harbor();
    await team.bind("harbor-s3", {
      sources: [{ object: { apiVersion: apiVersionOf(kind), resource: kind.plural, name: "wall" } }],
      targets: [harborTarget({ accesskey: { from: { source: "wall", fieldPath: "spec.colour" } } })],
    });
    for (const time of ["first", "second"]) {
      await team.until("harbor-s3", "KindNotFound", KIND_MS);
      await installKind(team.api, kind);
      await team.until("harbor-s3", "SourceNotFound", KIND_MS);
      const colour = secretText(time);
      await createObject(team.api, kind, "wall", { colour }, team.namespace);
      await team.until("harbor-s3", "Synced", KIND_MS);
      assert.equal((await team.s3()).accesskey, colour);
      await removeKind(team.api, kind);
      assert.equal((await team.s3()).accesskey, colour);
    }
  });

  it("finds a kind again that is recreated with another plural and cluster scope", async () => {
    const before = kindFor("moved");
    const team = await createNamespace({ rules: [...usualRules, mayWrite(before)] });
    await installKind(team.api, before);
    const colour = secretText("colour");
    await team.secret("bucket", { colour });
    await createObject(team.api, before, "wall", {}, team.namespace);
    await team.bind("wall", wallSpec(before));
    await team.until("wall", "Synced", KIND_MS);
    await removeKind(team.api, before);
    const after = kindFor("moved", { plural: "wallz", scope: "Cluster" });
    await team.grantInCluster([mayWrite(after)]);
    await installKind(team.api, after);
    await createObject(team.api, after, "wall", {});
    await team.until("wall", "Synced", KIND_MS);
    await eventually(async () => assert.equal(await colourOf(team, after), colour));
  });

  it("waits for several objects at once, and reports for each target what is missing", async () => {
    const team = await createNamespace();
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.harbor("there");
    const accesskey = { from: { source: "bucket", key: "accessKeyID" } };
    const endpoint = { from: { source: "gone", key: "endpoint" } };
    await team.bind("harbor-s3", {
      sources: [{ secret: { name: "bucket" } }, { secret: { name: "gone" } }],
      targets: [
        harborTarget({ accesskey }, { name: "there" }),
        harborTarget({ accesskey }, { name: "nowhere" }),
        harborTarget({ accesskey, regionendpoint: endpoint }, { name: "nowhere-either" }),
        harborTarget({ regionendpoint: endpoint }, { name: "late" }),
      ],
    });
    await eventually(async () => {
      const { status } = await team.binding("harbor-s3");
      assert.deepEqual(
        status.targets.map(({ reason }: AnyObject) => reason),
        ["Synced", "TargetNotFound", "SourceNotFound", "SourceNotFound"],
      );
      assert.equal(status.synced, "1/4");
      assert.equal(status.conditions[0].reason, "TargetNotFound");
    });
  });

  it("follows a source that is the target of another binding, and a chain of bindings writes once at each hop", async () => {
    const verbs = ["get", "list", "watch", "patch"];
    const team = await createNamespace({
      rules: [{ apiGroups: [""], resources: ["secrets", "configmaps"], verbs }],
    });
    const maps = team.path("v1", "configmaps");
    const names = ["one", "two", "three"];
    for (const name of names) await team.api.create(maps, { metadata: { name }, data: {} });
    const rotate = async () => {
      const text = secretText("text");
      await team.secret("zero", { text });
      return text;
    };
    const arrives = (text: string) =>
      eventually(async () => assert.equal((await team.api.get(`${maps}/three`)).data?.text, text));
    const first = await rotate();
    // Creates the last hop first: the order does not matter.
    for (const [position, name] of [...names.entries()].reverse()) {
      const source = names[position - 1];
      await team.bind(name, {
        sources: [{ name: "from", ...(source ? { configMap: { name: source } } : { secret: { name: "zero" } }) }],
        targets: [
          {
            apiVersion: "v1",
            kind: "ConfigMap",
            name,
            fields: [{ path: "data.text", from: { source: "from", key: "text" } }],
          },
        ],
      });
    }
    await arrives(first);
    for (const name of names) await team.until(name, "Synced");
    const mark = await auditLog().mark();
    await arrives(await rotate());
    for (const name of names) await team.until(name, "Synced");
    const hops = (await requestsFor(team, mark)).filter(
      ({ verb, resource }) => verb === "patch" && resource === "configmaps",
    );
    assert.deepEqual(
      hops.map(({ name }) => name),
      names,
    );
  });
});
