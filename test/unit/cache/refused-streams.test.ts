/** Subscriptions that an account may not have yet: each is opened when it is allowed, and costs nothing once it is removed. */
import assert from "node:assert/strict";
import type { Resource } from "../../../src/apimachinery/objects.ts";
import { Informers } from "../../../src/cache/informers.ts";
import type { ObjectSubscription, Subscription } from "../../../src/cache/subscription.ts";
import type { Watcher } from "../../../src/cache/watcher.ts";
import { serviceAccountIdentity } from "../../../src/kube/identity.ts";
import { type Clock, fakeClock, settled } from "../clock.ts";
import { SECRETS } from "../resources.ts";
import { FakeApi } from "./api.ts";
import { apiError } from "./list-watch.ts";

const CONFIGMAPS: Resource = { ...SECRETS, kind: "ConfigMap", plural: "configmaps" };
const ACCOUNT = serviceAccountIdentity("registry", "inlay");
const PLACE = `${ACCOUNT} registry`;
const named = (resource: Resource, name: string, namespace = "registry"): ObjectSubscription => ({
  identity: ACCOUNT,
  ref: { resource, name, namespace },
});
const rules = (...ofKinds: [plural: string, ...names: string[]][]) => ({
  incomplete: false,
  resourceRules: ofKinds.map(([plural, ...resourceNames]) => {
    return { verbs: ["list", "watch"], apiGroups: [""], resources: [plural], resourceNames };
  }),
});
const names = Array.from({ length: 130 }, (_, n) => `s-${n}`);

describe("a subscription that is refused", () => {
  let api: FakeApi;
  let informers: Informers;
  let watcher: Watcher;
  beforeEach(() => {
    api = new FakeApi();
    informers = new Informers(api.transport, api.client, () => {});
    watcher = informers.watcher(() => {});
  });
  afterEach(() => informers.stop());
  const clock: Clock = fakeClock();

  async function observe(dependent: string, ...subscriptions: Subscription[]): Promise<void> {
    watcher.subscribe(dependent, subscriptions);
    await settled();
    await settled();
  }
  async function seconds(count: number): Promise<void> {
    for (let n = 0; n < count; n++) await clock.pass(1_000);
  }
  const phaseOf = (dependent: string, subscription: ObjectSubscription) => watcher.get(dependent, subscription).phase;
  function allowAllSecrets(): void {
    api.rules.set(PLACE, rules(["secrets"], ["configmaps", "c"]));
    api.rights.add(`${ACCOUNT} registry/secrets *`);
  }

  it("is opened if the review of another one shows first that it is allowed", async () => {
    api.rules.set(PLACE, rules(["secrets", "bucket"], ["configmaps"]));
    api.rights.add(`${ACCOUNT} registry/configmaps *`);
    await observe("a", named(SECRETS, "other"));
    await observe("b", named(CONFIGMAPS, "c"));
    await seconds(30);
    api.rules.set(PLACE, rules(["secrets", "bucket", "other"]));
    api.rights.delete(`${ACCOUNT} registry/configmaps *`);
    api.rights.add(`${ACCOUNT} registry/secrets other`);
    api.streams.get(`${ACCOUNT} registry/configmaps *`)?.end(apiError(403, "Forbidden"));
    await seconds(10);
    assert.equal(phaseOf("a", named(SECRETS, "other")), "synced");
  });

  it("is never refused by an answer from before its permission was granted", async () => {
    api.rules.set(PLACE, rules(["secrets", "bucket"]));
    api.rights.add(`${ACCOUNT} registry/secrets bucket`);
    await observe("a", named(SECRETS, "bucket"));
    await seconds(2);
    api.rules.set(PLACE, rules(["secrets", "bucket", "other", "third"], ["configmaps", "c"]));
    for (const each of ["secrets other", "secrets third", "configmaps c"])
      api.rights.add(`${ACCOUNT} registry/${each}`);
    const later = [named(CONFIGMAPS, "c"), named(SECRETS, "other"), named(SECRETS, "third")];
    await observe("b", ...later);
    assert.deepEqual(
      later.map((each) => phaseOf("b", each)),
      ["synced", "synced", "synced"],
    );
    const [bucketsOf, allOf] = [
      { identity: ACCOUNT, resource: SECRETS, namespace: "registry", labels: "", names: undefined },
      `${ACCOUNT} registry/secrets *`,
    ];
    await observe("c", bucketsOf);
    assert.equal(watcher.list("c", bucketsOf).phase, "failed");
    await observe("c");
    await seconds(2);
    allowAllSecrets();
    await observe("d", bucketsOf);
    assert.deepEqual([watcher.list("d", bucketsOf).phase, api.open.includes(allOf)], ["synced", true]);
  });

  it("is reviewed again for a later subscriber, and leaves no reviews behind", async () => {
    api.rules.set(PLACE, rules(["configmaps"]));
    api.rights.add(`${ACCOUNT} registry/configmaps *`);
    await observe("a", named(SECRETS, "other"));
    await observe("a");
    const reviews = api.ruleReviews.length;
    allowAllSecrets();
    await seconds(61);
    assert.equal(api.ruleReviews.length, reviews);
    await observe("b", named(CONFIGMAPS, "c"));
    await observe("a", named(SECRETS, "other"));
    await seconds(10);
    assert.equal(phaseOf("a", named(SECRETS, "other")), "synced");
  });

  it("for too many names, gets the slot of another one that is released", async () => {
    api.rules.set(PLACE, rules(["secrets", ...names], ["configmaps", "c"]));
    for (const name of names) api.rights.add(`${ACCOUNT} registry/secrets ${name}`);
    api.rights.add(`${ACCOUNT} registry/configmaps c`);
    const last = named(CONFIGMAPS, "c");
    await observe("a", ...names.slice(0, 128).map((name) => named(SECRETS, name)), last);
    assert.equal(phaseOf("a", last), "failed");
    allowAllSecrets();
    await seconds(10);
    assert.equal(phaseOf("a", last), "synced");
    assert.deepEqual(api.open, [`${ACCOUNT} registry/configmaps c`, `${ACCOUNT} registry/secrets *`]);
  });

  it("for lack of slots, is opened when a slot is free, and causes no reviews from then on", async () => {
    const many = Array.from({ length: 1_080 }, (_, n) => `s-${n}`);
    api.rules.set(PLACE, rules(["secrets", ...many]));
    for (const name of many) api.rights.add(`${ACCOUNT} registry/secrets ${name}`);
    const ofOne = (d: number) => many.slice(d * 120, d * 120 + 120).map((name) => named(SECRETS, name));
    for (let d = 0; d < 9; d++) await observe(`d-${d}`, ...ofOne(d));
    await seconds(5);
    assert.equal(api.open.length, 1_000);
    const last = ofOne(8).at(-1) as ObjectSubscription;
    const seen = watcher.get("d-8", last);
    assert.equal(seen.phase === "failed" && seen.error.reason, "TooManyStreams");
    await observe("d-0");
    await seconds(20);
    assert.equal(phaseOf("d-8", last), "synced");
    const reviews = api.ruleReviews.length;
    await seconds(60);
    assert.equal(api.ruleReviews.length, reviews);
  });
});
