/** Which objects that a watch has shown are used instead of a request, and how long they are kept. */
import assert from "node:assert/strict";
import type { KubeObject, ObjectRef } from "../../../src/apimachinery/objects.ts";
import { ChangedObjects } from "../../../src/cache/changed-objects.ts";
import type { AccessRules } from "../../../src/kube/access-rules.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { fakeClock } from "../clock.ts";
import { SECRETS } from "../resources.ts";

const [INLAY, OTHER] = ["system:serviceaccount:registry:inlay", "system:serviceaccount:registry:other"];
const named = (name: string): ObjectRef => ({ resource: SECRETS, namespace: "registry", name });
const BUCKET = named("bucket");

describe("objects that a watch has shown", () => {
  const clock = fakeClock();
  let reviews: number[];
  let rules: AccessRules | ApiError;
  let changed: ChangedObjects;
  const allowed = (...resourceNames: string[]): AccessRules => ({
    incomplete: false,
    resourceRules: [{ verbs: ["get"], apiGroups: [""], resources: ["secrets"], resourceNames }],
  });
  const objectOf = ({ name }: ObjectRef, resourceVersion: string, text = "x"): KubeObject => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, uid: "u", resourceVersion },
    data: { text },
  });
  const offer = (ref: ObjectRef, version: string, text?: string) =>
    changed.offer(INLAY, ref, objectOf(ref, version, text));
  /** Others that wait for their bindings. */
  const offerOthers = (count = 8) => {
    for (let n = 0; n < count; n++) offer(named(`waiting-${n}`), "1");
  };

  beforeEach(() => {
    reviews = [];
    rules = allowed();
    changed = new ChangedObjects({
      of: async (_, withinMs = Number.NaN) => {
        reviews.push(withinMs);
        if (rules instanceof ApiError) throw rules;
        return rules;
      },
    });
  });

  it("are used once, by their account, in the version that the watch shows", async () => {
    offerOthers();
    offer(BUCKET, "7");
    assert.equal(await changed.take(OTHER, BUCKET, "7"), undefined);
    assert.equal(await changed.take(INLAY, BUCKET, "8"), undefined);
    assert.equal(await changed.take(INLAY, named("other"), "7"), undefined);
    assert.deepEqual(await changed.take(INLAY, BUCKET, "7"), objectOf(BUCKET, "7"));
    assert.equal(await changed.take(INLAY, BUCKET, "7"), undefined);
  });

  it("are not used if fewer than eight others wait: then a request costs less than a review", async () => {
    offerOthers(7);
    offer(BUCKET, "7");
    assert.equal(await changed.take(INLAY, BUCKET, "7"), undefined);
    assert.deepEqual(reviews, []);
  });

  it("replace earlier versions", async () => {
    offerOthers();
    offer(BUCKET, "7");
    offer(BUCKET, "8");
    assert.equal(await changed.take(INLAY, BUCKET, "7"), undefined);
    assert.deepEqual(await changed.take(INLAY, BUCKET, "8"), objectOf(BUCKET, "8"));
  });

  it("are used only if the account may read them, by a review after the change and at most half a second ago", async () => {
    offerOthers();
    rules = allowed("bucket");
    for (const name of ["bucket", "other"]) offer(named(name), "7");
    await clock.pass(100);
    assert.ok(await changed.take(INLAY, BUCKET, "7"));
    await clock.pass(1_000);
    assert.equal(await changed.take(INLAY, named("other"), "7"), undefined);
    assert.deepEqual(
      reviews.filter((withinMs) => !Number.isNaN(withinMs)),
      [100, 500],
    );
  });

  it("are not used if the API server can't list all rules, or gives no answer", async () => {
    offerOthers();
    rules = { ...allowed(), incomplete: true };
    offer(BUCKET, "7");
    assert.equal(await changed.take(INLAY, BUCKET, "7"), undefined);
    offer(BUCKET, "8");
    rules = new ApiError("POST", 403, "Forbidden");
    assert.equal(await changed.take(INLAY, BUCKET, "8"), undefined);
  });

  it("are forgotten after ten seconds", async () => {
    offer(BUCKET, "7");
    await clock.pass(10_000);
    offerOthers();
    assert.equal(await changed.take(INLAY, BUCKET, "7"), undefined);
  });

  it("are kept up to 64 KiB each, and 4 MiB in all, of which the oldest are forgotten", async () => {
    offer(BUCKET, "7", "x".repeat(64 * 1024));
    offerOthers();
    assert.equal(await changed.take(INLAY, BUCKET, "7"), undefined);
    const names = Array.from({ length: 80 }, (_, at) => named(`s-${at}`));
    for (const each of names) offer(each, "7", "x".repeat(60 * 1024));
    offerOthers();
    const kept = await Promise.all(names.map((each) => changed.take(INLAY, each, "7")));
    assert.deepEqual(
      kept.map((each) => each !== undefined),
      names.map((_, at) => at >= 12),
    );
  });
});
