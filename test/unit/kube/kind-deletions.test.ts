/** Whether a kind of Inlay is being deleted is known for certain, at the cost of few requests. */
import assert from "node:assert/strict";
import { SECRET_BINDINGS } from "../../../src/apimachinery/resources.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { KindDeletions } from "../../../src/kube/kind-deletions.ts";
import type { Request } from "../../../src/kube/transport.ts";
import { settled } from "../clock.ts";
import { fakeTransport } from "../fakes.ts";

const CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/secretbindings.inlay.dev";
const GROUP = "/apis/inlay.dev/v1alpha1";
const NOW = "2026-01-01T00:00:10Z";
const deleted = { creationTimestamp: "2026-01-01T00:00:00Z", deletionTimestamp: NOW };

class Fixture {
  /** What a path answers: an object, or the status of a refusal. */
  answers: Record<string, object | number> = { [CRD]: { metadata: {} } };
  /** The requests that were sent, and not answered yet if the test holds them. */
  readonly sent: string[] = [];
  readonly #held: (() => void)[] = [];
  isHolding = false;
  now = Date.parse(NOW);
  readonly #transport = fakeTransport({
    serverTime: () => this.now,
    request: async ({ method, path }: Request) => {
      this.sent.push(path);
      if (this.isHolding) await new Promise<void>((resolve) => this.#held.push(resolve));
      const answer = this.answers[path] ?? 404;
      if (typeof answer === "number") throw new ApiError(`${method} ${path}`, answer, "Refused");
      return answer;
    },
  });
  readonly #deletions = new KindDeletions(this.#transport);

  isOngoing(object: Parameters<KindDeletions["isOngoing"]>[1] = deleted) {
    return this.#deletions.isOngoing(SECRET_BINDINGS, object);
  }

  end(): void {
    this.answers[CRD] = { metadata: { deletionTimestamp: NOW } };
  }

  async release(): Promise<void> {
    for (const each of this.#held.splice(0)) each();
    await settled();
  }
}

describe("the deletion of a kind", () => {
  it("is ongoing if its CRD is being deleted or gone", async () => {
    const fixture = new Fixture();
    assert.equal(await fixture.isOngoing(), false);
    fixture.end();
    assert.equal(await fixture.isOngoing(), true);
    const gone = new Fixture();
    gone.answers = {};
    assert.equal(await gone.isOngoing(), true);
  });

  it("is asked for once by all who ask meanwhile, with a request that is sent after they have asked", async () => {
    const fixture = new Fixture();
    fixture.isHolding = true;
    const first = fixture.isOngoing();
    await settled();
    const others = Array.from({ length: 1_000 }, () => fixture.isOngoing());
    await settled();
    assert.equal(fixture.sent.length, 1);
    await fixture.release();
    fixture.end();
    await fixture.release();
    assert.deepEqual([await first, new Set(await Promise.all(others))], [false, new Set([true])]);
    assert.equal(fixture.sent.length, 2);
  });

  it("is not asked for again for older objects, but for those of a CRD that exists again", async () => {
    const fixture = new Fixture();
    fixture.end();
    for (let n = 0; n < 3; n++) assert.equal(await fixture.isOngoing(), true);
    assert.equal(fixture.sent.length, 1);
    fixture.answers[CRD] = { metadata: {} };
    assert.equal(await fixture.isOngoing({ ...deleted, creationTimestamp: NOW }), false);
  });

  it("was that of the former CRD, if its objects are there again with the next one", async () => {
    const fixture = new Fixture();
    fixture.answers[CRD] = { metadata: { creationTimestamp: "2026-01-01T00:00:05Z" } };
    const before = "2026-01-01T00:00:04Z";
    assert.equal(await fixture.isOngoing({ creationTimestamp: before, deletionTimestamp: before }), true);
    assert.equal(await fixture.isOngoing({ creationTimestamp: before }), true);
    // A user deleted it later.
    assert.equal(await fixture.isOngoing({ creationTimestamp: before, deletionTimestamp: NOW }), false);
    assert.equal(await fixture.isOngoing({ creationTimestamp: NOW }), false);
  });

  it("is not known if the API server fails", async () => {
    const fixture = new Fixture();
    fixture.answers[CRD] = 503;
    await assert.rejects(fixture.isOngoing(), ApiError);
    fixture.end();
    assert.equal(await fixture.isOngoing(), true);
  });

  it("is seen in discovery without permission to read the CRD, once discovery certainly shows it", async () => {
    const fixture = new Fixture();
    const serve = (...verbs: string[]) => ({ resources: [{ name: "secretbindings", verbs }] });
    fixture.answers = { [CRD]: 403, [GROUP]: serve("create", "list") };
    fixture.now = Date.parse(NOW) + 1_999;
    assert.equal(await fixture.isOngoing(), undefined);
    fixture.now++;
    assert.equal(await fixture.isOngoing(), false);
    fixture.answers = { [CRD]: 403, [GROUP]: serve("list") };
    assert.equal(await fixture.isOngoing(), true);
    fixture.answers = { [CRD]: 403 };
    assert.equal(await fixture.isOngoing(), true);
  });
});
