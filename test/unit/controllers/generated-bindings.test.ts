/** Which writes give a namespace its generated bindings, and which bindings stay unchanged. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../src/api/binding.ts";
import { type GeneratedBindingServices, GeneratedBindings } from "../../../src/controllers/generated-bindings.ts";
import {
  bindingsOf,
  obsoleteOf,
  RELOADER_BINDINGS,
  type ReloaderBinding,
} from "../../../src/controllers/reloader/bindings.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { serviceAccountIdentity } from "../../../src/kube/identity.ts";
import { ContentionBudget } from "../../../src/targets/contention-budget.ts";
import { dependenciesOf } from "../fakes.ts";
import { bindingOf, kubeObjectOf } from "../objects.ts";

const owner = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "web-1" };
const [made] = bindingsOf(owner, [{ kind: "Secret", name: "a" }], { minInterval: undefined, restartAt: false }) as [
  ReloaderBinding,
];
const NAME = made.name;

interface Change {
  owner?: Partial<typeof owner>;
  name?: string;
  spec?: Partial<SecretBinding["spec"]>;
}
const binding = (change: Change = {}): SecretBinding =>
  bindingOf({
    metadata: {
      name: change.name ?? NAME,
      namespace: "shop",
      uid: "1",
      labels: { "inlay.dev/generated-for": "reloader" },
      ownerReferences: [{ ...owner, ...change.owner }],
    },
    spec: { ...made.spec, ...change.spec },
  });

class Cluster {
  readonly writes: string[] = [];
  readonly warnings: object[] = [];
  readonly unchanged: string[] = [];
  /** What the API server does with the next replacements: an error, or what it stores. */
  /** Why the API server refuses creations. */
  refusal: ApiError | undefined;
  answers: (ApiError | ((object: SecretBinding) => SecretBinding))[] = [];
  readonly bindings: GeneratedBindings<ReloaderBinding>;

  constructor() {
    const client = {
      createObject: async () => {
        this.writes.push("create");
        if (this.refusal !== undefined) throw this.refusal;
        return kubeObjectOf();
      },
      delete: async () => void this.writes.push("delete"),
      replace: async (_: unknown, __: unknown, object: SecretBinding) => {
        this.writes.push("replace");
        const answer = this.answers.shift();
        if (answer instanceof ApiError) throw answer;
        return answer?.(object) ?? object;
      },
    };
    const log = { warn: (about: object) => this.warnings.push(about) };
    const contention = new ContentionBudget();
    const services = dependenciesOf<GeneratedBindingServices>({ client, contention, events: { recordOn() {} }, log });
    const identity = serviceAccountIdentity("inlay-system", "inlay-reloader");
    this.bindings = new GeneratedBindings(services, { ...RELOADER_BINDINGS, identity }, (key) =>
      this.unchanged.push(key),
    );
  }

  async result(wanted: ReloaderBinding): Promise<unknown> {
    return await this.bindings.sync("shop", [wanted], [], () => undefined).catch((problem) => problem.reason);
  }

  async sync(there: SecretBinding[], { wanted = [made], unseen = [] as string[] } = {}): Promise<string[]> {
    const before = this.writes.length;
    const obsolete = obsoleteOf(there, new Map(wanted.map((each) => [each.name, each])), unseen);
    await this.bindings.sync("shop", wanted, obsolete, ({ name }) =>
      there.find(({ metadata }) => metadata.name === name),
    );
    return this.writes.slice(before);
  }
}

const isReplaced = (object: SecretBinding): SecretBinding => ({
  ...object,
  spec: { ...object.spec, addedLater: "new" } as SecretBinding["spec"],
});

describe("of the generated bindings,", () => {
  it("a missing one is created, a right one is not written, and a changed one is corrected", async () => {
    const cluster = new Cluster();
    assert.deepEqual(await cluster.sync([]), ["create"]);
    assert.deepEqual(await cluster.sync([binding()]), []);
    assert.deepEqual(await cluster.sync([binding({ spec: { suspend: true } })]), ["replace"]);
  });

  it("one is not missing in a namespace that is deleted together with its owner, and is created if the namespace returns", async () => {
    const cluster = new Cluster();
    const causes = [{ reason: "NamespaceTerminating" }];
    cluster.refusal = new ApiError("POST", 403, "Forbidden", { message: "unable to create", details: { causes } });
    assert.deepEqual(await cluster.result(made), { retry: "after", ms: 30_000 });
    assert.deepEqual([...cluster.bindings.failuresOf("shop")], []);
    // An owner elsewhere stays without its binding.
    const elsewhere = { ...made, owner: { ...owner, namespace: "office" } };
    assert.equal(await cluster.result(elsewhere), "TargetNotFound");
    assert.deepEqual([...cluster.bindings.failuresOf("shop").keys()], [NAME]);
  });

  it("one is under way while it is corrected, and until a watch shows that", async () => {
    const cluster = new Cluster();
    const before = binding({ spec: { suspend: true } });
    before.metadata.resourceVersion = "5";
    const versioned = (resourceVersion: string) => ({
      ...binding(),
      metadata: { ...before.metadata, resourceVersion },
    });
    const isUnderWay = (resourceVersion: string) => cluster.bindings.isUnderWay("shop", versioned(resourceVersion));
    assert.equal(isUnderWay("5"), false);
    let during = false;
    cluster.answers = [
      () => {
        during = isUnderWay("5");
        return versioned("6");
      },
    ];
    await cluster.sync([before]);
    assert.deepEqual([during, isUnderWay("5"), isUnderWay("6")], [true, true, false]);
    cluster.bindings.gone(before);
    assert.equal(isUnderWay("5"), false);
    // It is retried at once if another client wrote it in the meantime, for example its status.
    cluster.answers = [new ApiError("PUT", 409, "Conflict", ""), () => versioned("5")];
    await cluster.sync([before]);
    assert.equal(isUnderWay("5"), true);
    // A write that the API server stores without a change is not under way.
    await cluster.sync([before]);
    assert.equal(isUnderWay("5"), false);
  });

  it("one with an integer beyond the range of a double is corrected too", async () => {
    const cluster = new Cluster();
    const manifest = { spec: { serial: 9_007_199_254_740_993n } };
    const target = { apiVersion: "example.com/v1", kind: "Shop", name: "shop", fields: [], create: { manifest } };
    const large = { ...made, spec: { ...made.spec, targets: [target] as unknown as SecretBinding["spec"]["targets"] } };
    assert.deepEqual(await cluster.sync([binding()], { wanted: [large] }), ["replace"]);
  });

  it("one of a deleted workload is deleted, although another workload has the name now", async () => {
    const cluster = new Cluster();
    assert.deepEqual(await cluster.sync([binding({ owner: { uid: "web-0" } })]), ["delete"]);
    // Another client removed the owner.
    const orphan = binding();
    orphan.metadata.ownerReferences = [];
    assert.deepEqual(await cluster.sync([orphan]), ["replace"]);
  });

  it("one is not deleted while the kind of its workload can't be seen", async () => {
    const cluster = new Cluster();
    const other = binding({ name: "reloader-rollout-web", owner: { kind: "Rollout" } });
    assert.deepEqual(await cluster.sync([other], { wanted: [], unseen: ["Rollout"] }), []);
    assert.deepEqual(await cluster.sync([other], { wanted: [], unseen: ["CronJob"] }), ["delete"]);
  });

  it("one that the API server stores differently counts as generated once that is known, and is requeued", async () => {
    const cluster = new Cluster();
    const kept = isReplaced(binding());
    assert.equal(cluster.bindings.isAsGenerated(kept, made), false);
    cluster.answers = [isReplaced];
    assert.deepEqual(await cluster.sync([kept]), ["replace"]);
    assert.ok(cluster.bindings.isAsGenerated(kept, made));
    assert.deepEqual(cluster.unchanged, [`shop/${NAME}`]);
    assert.deepEqual(await cluster.sync([kept]), []);
    assert.deepEqual(cluster.warnings, []);
    // A change by another client does not count as generated.
    const sources = [{ name: "b", secret: { name: "b" } }];
    assert.equal(cluster.bindings.isAsGenerated(binding({ spec: { ...kept.spec, sources } }), made), false);
    // Nor does the stored form of another write.
    const [other] = bindingsOf(owner, [{ kind: "Secret", name: "b" }], { minInterval: undefined, restartAt: false });
    assert.equal(cluster.bindings.isAsGenerated(kept, other as ReloaderBinding), false);
    cluster.bindings.gone(kept);
    assert.equal(cluster.bindings.isAsGenerated(kept, made), false);
  });

  it("one that watches show with the defaults of another CRD counts as generated, if the own write made no new version", async () => {
    for (const [version, isAsMade] of [
      ["5", true],
      ["6", false],
    ] as const) {
      const cluster = new Cluster();
      const [shown, now] = [isReplaced(binding()), binding()];
      shown.metadata.resourceVersion = "5";
      now.metadata.resourceVersion = version;
      cluster.answers = [() => now];
      assert.deepEqual(await cluster.sync([shown]), ["replace"]);
      assert.equal(cluster.bindings.isAsGenerated(shown, made), isAsMade);
      assert.ok(cluster.bindings.isAsGenerated(now, made));
    }
  });

  it("one that is not stored as generated is logged", async () => {
    const cluster = new Cluster();
    const stripped = (object: SecretBinding) => ({ ...object, metadata: { ...object.metadata, labels: {} } });
    cluster.answers = [stripped];
    assert.deepEqual(await cluster.sync([stripped(binding())]), ["replace"]);
    assert.deepEqual(cluster.warnings, [{ binding: `shop/${NAME}` }]);
  });

  it("one that changes while it is written is not contended: it is corrected as often as necessary", async () => {
    const cluster = new Cluster();
    const conflict = new ApiError("PUT", 409, "Conflict", "");
    for (let n = 0; n < 10; n++) {
      cluster.answers = [conflict];
      assert.deepEqual(await cluster.sync([binding({ spec: { suspend: true } })]), ["replace"]);
    }
  });
});
