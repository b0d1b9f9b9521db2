/** A recreated Job is never lost, at whatever step a process is killed. */
import assert from "node:assert/strict";
import type { JsonObject, KubeObject, ObjectRef } from "../../../../src/apimachinery/objects.ts";
import { JOBS } from "../../../../src/apimachinery/resources.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import { serviceAccountIdentity } from "../../../../src/kube/identity.ts";
import { finishRecreation, JOB_VERBS, recreateJob } from "../../../../src/rollout/restart/recreate-job.ts";
import { copyName, copyOf, jobToCreate, originalOf } from "../../../../src/workloads/jobs.ts";
import { fakeClient } from "../../fakes.ts";

const ACCOUNT = serviceAccountIdentity("shop", "inlay");
const MIGRATE: ObjectRef = { resource: JOBS, namespace: "shop", name: "migrate" };
const MARK = { annotation: "inlay.dev/rollout", stamp: "1-3fa9c1-09ab34de12" };

class Killed extends Error {}

/** The Jobs of a namespace. The process is killed at a chosen request: before the request arrives, or before its answer does. */
class Jobs {
  readonly all = new Map<string, KubeObject>();
  killAt = Number.POSITIVE_INFINITY;
  arrives = false;
  /** A finalizer keeps the former Job. */
  isHeld = false;
  /** The names of other objects that a finalizer keeps. */
  isKept = "";
  requests = 0;
  mayDelete = true;
  /** Of created objects that are no copies. */
  refusal: ApiError | undefined;
  /** What another client does right before a chosen request arrives. */
  meanwhile: Record<number, () => unknown> = {};
  #uids = 0;

  constructor() {
    this.all.set("migrate", this.#stored("migrate", { spec: { parallelism: 2, template: { spec: {} } } }));
  }

  #stored(name: string, { metadata, ...below }: JsonObject): KubeObject {
    const uid = `uid-${++this.#uids}`;
    return {
      ...below,
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { ...(metadata as object), name, uid, resourceVersion: "1", generation: 1 },
    };
  }

  #request<T>(act: () => T): T {
    const isKilled = ++this.requests === this.killAt;
    this.meanwhile[this.requests]?.();
    if (isKilled && !this.arrives) throw new Killed();
    try {
      return act();
    } finally {
      // At every moment the Job or its copy exists.
      assert.ok(this.all.has("migrate") || this.all.has(copyName("uid-1")), "the Job is lost");
      // biome-ignore lint/correctness/noUnsafeFinally: the answer is not used.
      if (isKilled) throw new Killed();
    }
  }

  get client() {
    const missing = (name: string) => {
      if (!this.all.has(name)) throw new ApiError("it", 404, "NotFound");
    };
    return fakeClient({
      may: async () => this.#request(() => this.mayDelete),
      get: async (_: unknown, { name }: ObjectRef) =>
        this.#request(() => {
          missing(name);
          return this.all.get(name);
        }),
      createObject: async (_: unknown, { name }: ObjectRef, below: JsonObject, __: string, dryRun = false) =>
        this.#request(() => {
          if (!name.startsWith("inlay-copy-") && this.refusal !== undefined) throw this.refusal;
          if (this.all.has(name)) throw new ApiError("it", 409, "AlreadyExists");
          const made = this.#stored(name, below);
          if (!dryRun) this.all.set(name, made);
          return made;
        }),
      delete: async (_: unknown, { name }: ObjectRef, { metadata: { uid, resourceVersion } }: KubeObject) =>
        this.#request(() => {
          missing(name);
          const { metadata } = this.all.get(name) as KubeObject;
          assert.equal(metadata.uid, uid);
          if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
            throw new ApiError("it", 409, "Conflict");
          if ((this.isHeld && uid === "uid-1") || name === this.isKept)
            metadata.deletionTimestamp = "2026-11-21T10:00:00Z";
          else this.all.delete(name);
        }),
    });
  }

  /** Another client creates it. */
  store(name: string, below: JsonObject): void {
    this.all.set(name, this.#stored(name, below));
  }

  /** Another client writes it. */
  change(name: string, labels: Record<string, string> = {}): void {
    const { metadata, ...job } = this.all.get(name) as KubeObject;
    const resourceVersion = String(Number(metadata.resourceVersion) + 1);
    this.all.set(name, { ...job, metadata: { ...metadata, resourceVersion, labels } });
  }

  /** The uid of the copy in the status. */
  recorded: string | undefined;

  get #access() {
    return { client: this.client, identity: ACCOUNT, ref: MIGRATE, verbs: JOB_VERBS };
  }

  /** Recreates the Job as a controller that reads the status first. */
  recreate = () =>
    recreateJob(this.#access, "uid-1", MARK, {
      uid: this.recorded,
      write: async (uid) =>
        this.#request(() => {
          this.recorded = uid;
        }),
    });

  finish = () => finishRecreation(this.#access, "uid-1", MARK, this.recorded);

  /** Asserts that there is exactly one Job, a new one with the same spec. */
  assertDone(): void {
    assert.deepEqual([...this.all.keys()], ["migrate"]);
    const job = this.all.get("migrate");
    assert.notEqual(job?.metadata.uid, "uid-1");
    const annotations = { "inlay.dev/rollout": MARK.stamp };
    assert.deepEqual(job?.["spec"], { parallelism: 2, template: { metadata: { labels: {}, annotations }, spec: {} } });
  }
}

describe("a recreated Job", () => {
  it("is a new object, and nothing else is left", async () => {
    const jobs = new Jobs();
    const { metadata } = await jobs.recreate();
    jobs.assertDone();
    assert.equal(jobs.all.get("migrate")?.metadata.uid, metadata.uid);
    assert.equal(await jobs.finish(), undefined);
    jobs.assertDone();
  });

  it("is never lost when the process is killed, and is created once by the next process", async () => {
    const whole = new Jobs();
    await whole.recreate();
    for (const arrives of [false, true]) {
      for (let killAt = 1; killAt <= whole.requests; killAt++) {
        const jobs = Object.assign(new Jobs(), { killAt, arrives });
        await assert.rejects(jobs.recreate(), Killed);
        const made = jobs.all.get("migrate")?.metadata.uid;
        await jobs.recreate();
        jobs.assertDone();
        if (made !== undefined && made !== "uid-1") assert.equal(jobs.all.get("migrate")?.metadata.uid, made);
      }
    }
  });

  it("waits while a finalizer keeps the former one", async () => {
    const jobs = Object.assign(new Jobs(), { isHeld: true });
    await assert.rejects(jobs.recreate(), { reason: "Unavailable", message: /the former Job is not deleted yet/ });
    await assert.rejects(jobs.recreate(), { reason: "Unavailable" });
    jobs.all.delete("migrate");
    await jobs.finish();
    jobs.assertDone();
  });

  it("is that of another binding that was faster, whatever stamp it has", async () => {
    const jobs = new Jobs();
    const { spec } = jobToCreate(
      copyOf(jobs.all.get("migrate") as KubeObject),
      originalOf(jobs.all.get("migrate") as KubeObject),
      "example.com/rollout",
      "12-3fa9c1-09ab34de12",
    );
    jobs.meanwhile = { 7: () => jobs.store("migrate", { spec: spec as JsonObject }) };
    const { metadata } = await jobs.recreate();
    assert.deepEqual([...jobs.all.keys()], ["migrate"]);
    assert.equal(jobs.all.get("migrate")?.metadata.uid, metadata.uid);
    assert.deepEqual(jobs.all.get("migrate")?.["spec"], spec);
  });

  describe("if another client has created another Job of its name first", () => {
    const COPY = copyName("uid-1");
    const rejected = {
      reason: "Rejected",
      message: new RegExp(
        `Job shop/migrate is not recreated: another user has created a different Job of that name.* kept in Job shop/${COPY}`,
      ),
    };
    const taken = async () => {
      const jobs = new Jobs();
      jobs.meanwhile = { 7: () => jobs.store("migrate", { spec: { template: { spec: { hostPID: true } } } }) };
      await assert.rejects(jobs.recreate(), rejected);
      return { jobs, foreign: jobs.all.get("migrate") as KubeObject };
    };

    it("is kept in its copy, and created when the other Job is deleted", async () => {
      const { jobs, foreign } = await taken();
      for (const again of [jobs.recreate, jobs.finish]) {
        await assert.rejects(again(), rejected);
        assert.deepEqual([...jobs.all.keys()].sort(), [COPY, "migrate"]);
        assert.equal(jobs.all.get("migrate"), foreign);
      }
      foreign.metadata.deletionTimestamp = "2026-11-21T10:00:00Z";
      await assert.rejects(jobs.finish(), {
        reason: "Unavailable",
        message: /another Job of that name is not deleted yet/,
      });
      jobs.all.delete("migrate");
      await jobs.finish();
      jobs.assertDone();
    });

    it("is given up when its copy is deleted: the other Job stays", async () => {
      const { jobs, foreign } = await taken();
      jobs.all.delete(COPY);
      assert.equal(await jobs.finish(), undefined);
      assert.deepEqual([...jobs.all.values()], [foreign]);
    });
  });

  it("is retried if it has changed in the meantime, and nothing is lost", async () => {
    const jobs = new Jobs();
    jobs.meanwhile = { 4: () => jobs.change("migrate", { team: "shop" }) };
    const changed = { reason: "Unavailable", message: /it has changed in the meantime; Inlay retries/ };
    await assert.rejects(jobs.recreate(), changed);
    await jobs.recreate();
    jobs.assertDone();
    assert.deepEqual(jobs.all.get("migrate")?.metadata.labels, { team: "shop" });
  });

  it("is created even if another client deletes its copy at the worst moment", async () => {
    const jobs = new Jobs();
    jobs.meanwhile = { 7: () => jobs.all.delete(copyName("uid-1")) };
    await jobs.recreate();
    jobs.assertDone();
  });

  it("stays if it was not deleted before a crash: its copy is deleted, and it is not created again", async () => {
    const jobs = Object.assign(new Jobs(), { killAt: 6 });
    await assert.rejects(jobs.recreate(), Killed);
    assert.equal(jobs.all.size, 2);
    for (let i = 0; i < 2; i++) assert.equal(await jobs.finish(), undefined);
    assert.deepEqual([...jobs.all.keys()], ["migrate"]);
    assert.equal(jobs.all.get("migrate")?.metadata.uid, "uid-1");
  });

  it("stays, without a copy, if the account or all clients may not delete it", async () => {
    const jobs = Object.assign(new Jobs(), { mayDelete: false });
    await assert.rejects(jobs.recreate(), {
      reason: "Forbidden",
      message: /may not delete jobs\.batch in namespace shop/,
    });
    assert.deepEqual([...jobs.all.keys()], ["migrate"]);
    const kept = new Jobs();
    const denied = new ApiError("it", 403, "Forbidden", { message: "denied by a policy" });
    kept.meanwhile = {
      6: () => {
        throw denied;
      },
    };
    await assert.rejects(kept.recreate(), { reason: "Rejected" });
    assert.deepEqual([...kept.all.keys()], ["migrate"]);
  });

  it("stays, without a copy, if it could not be created again, and is recreated when it can be", async () => {
    const jobs = new Jobs();
    jobs.refusal = new ApiError("it", 422, "Invalid");
    const message = /Job .*migrate is unchanged, because it could not be recreated: .*422 Invalid/;
    await assert.rejects(jobs.recreate(), { reason: "Rejected", message });
    assert.deepEqual([...jobs.all.keys()], ["migrate"]);
    assert.equal(jobs.all.get("migrate")?.metadata.uid, "uid-1");
    jobs.refusal = undefined;
    await jobs.recreate();
    jobs.assertDone();
  });

  it("loses its copy whatever the Job controller writes to that", async () => {
    for (let request = 3; request <= 9; request++) {
      const jobs = new Jobs();
      const copy = copyName("uid-1");
      jobs.meanwhile = { [request]: () => jobs.all.has(copy) && jobs.change(copy) };
      await jobs.recreate();
      jobs.assertDone();
    }
  });

  it("is not created again if another client deletes it while a finalizer keeps it", async () => {
    const jobs = new Jobs();
    const { metadata } = jobs.all.get("migrate") as KubeObject;
    metadata.deletionTimestamp = "2026-11-21T10:00:00Z";
    await assert.rejects(jobs.recreate(), { reason: "Unavailable", message: /another client deletes it/ });
    assert.equal(jobs.all.size, 1);
  });

  describe("if an object has the name of its copy", () => {
    const COPY = { ...MIGRATE, name: copyName("uid-1") };
    const OWNED = { ownerReferences: [{ uid: "9" }] };
    const forgedOf = (jobs: Jobs, change: (copy: JsonObject) => object) =>
      change(copyOf(jobs.all.get("migrate") as KubeObject)) as JsonObject;
    const forgeries: Record<string, (copy: JsonObject) => object> = {
      "that is no copy": () => ({ spec: {} }),
      "of another spec": ({ metadata }) => ({ metadata, spec: { template: { spec: { hostPID: true } } } }),
      "that another object owns": ({ metadata, spec }) => ({ spec, metadata: { ...(metadata as object), ...OWNED } }),
      "that says that the Job has a finalizer": (copy) =>
        JSON.parse(JSON.stringify(copy).replace('\\"ownerReferences\\":', '\\"finalizers\\":[\\"a/b\\"],$&')),
    };
    for (const [what, change] of Object.entries(forgeries))
      it(`${what}, that object is deleted, and no Job is created from it`, async () => {
        const jobs = new Jobs();
        await jobs.client.createObject(ACCOUNT, COPY, forgedOf(jobs, change), "another");
        await jobs.recreate();
        jobs.assertDone();
        assert.equal(jobs.all.get("migrate")?.metadata.finalizers, undefined);
      });

    it("is not deleted while a finalizer keeps that object, and the message names it", async () => {
      const jobs = new Jobs();
      await jobs.client.createObject(ACCOUNT, COPY, { spec: {} }, "another");
      jobs.isKept = COPY.name;
      await assert.rejects(jobs.recreate(), { reason: "Unavailable", message: new RegExp(`Job shop/${COPY.name} `) });
      assert.equal(jobs.all.get("migrate")?.metadata.uid, "uid-1");
    });

    it("is not created from that object after its deletion, unless the status has the uid of the copy", async () => {
      const jobs = new Jobs();
      const forged = forgedOf(jobs, (copy) => copy);
      await jobs.client.createObject(ACCOUNT, COPY, forged, "another");
      jobs.all.delete("migrate");
      for (const recorded of [undefined, "of-the-copy"])
        assert.equal(await Object.assign(jobs, { recorded }).finish(), undefined);
      assert.deepEqual([...jobs.all.keys()], [COPY.name]);
    });

    it("uses the copy that another binding has created", async () => {
      const jobs = new Jobs();
      const { metadata } = await jobs.client.createObject(
        ACCOUNT,
        COPY,
        forgedOf(jobs, (copy) => copy),
        "inlay",
      );
      await jobs.recreate();
      jobs.assertDone();
      assert.equal(jobs.recorded, metadata.uid);
    });
  });
});
