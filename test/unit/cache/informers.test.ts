/** With which identity and scope objects are watched, and who is called when one of them changes. */
import assert from "node:assert/strict";
import type { KubeObject, ObjectRef, Resource } from "../../../src/apimachinery/objects.ts";
import { SECRET_GRANTS } from "../../../src/apimachinery/resources.ts";
import { Informers } from "../../../src/cache/informers.ts";
import type { CollectionSubscription, ObjectSubscription, Subscription } from "../../../src/cache/subscription.ts";
import type { Watcher } from "../../../src/cache/watcher.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { CONTROLLER, serviceAccountIdentity } from "../../../src/kube/identity.ts";
import { fakeClock, settled } from "../clock.ts";
import { ACCOUNTS, NODES, SECRETS } from "../resources.ts";
import { FakeApi } from "./api.ts";
import { apiError, secret } from "./list-watch.ts";

const NAMESPACES: Resource = { ...NODES, kind: "Namespace", plural: "namespaces" };

const ACCOUNT = serviceAccountIdentity("registry", "inlay");
const ref = (of: Resource, name: string, namespace?: string): ObjectRef => ({
  resource: of,
  name,
  ...(namespace && { namespace }),
});
const bucket: ObjectSubscription = { identity: ACCOUNT, ref: ref(SECRETS, "bucket", "registry") };
const other: ObjectSubscription = { identity: ACCOUNT, ref: ref(SECRETS, "other", "registry") };
const account: ObjectSubscription = { identity: CONTROLLER, ref: ref(ACCOUNTS, "inlay", "registry") };

describe("informers", () => {
  let api: FakeApi;
  let informers: Informers;
  let watcher: Watcher;
  let called: string[];
  beforeEach(() => {
    api = new FakeApi();
    called = [];
    informers = new Informers(api.transport, api.client, () => {});
    watcher = informers.watcher((key) => called.push(key));
  });
  afterEach(() => informers.stop());
  // Runs after the hook that stops the streams: a timer must end in the clock in which it began.
  const clock = fakeClock();

  async function observe(dependent: string, ...interests: Subscription[]): Promise<void> {
    watcher.subscribe(dependent, interests);
    await settled();
    await settled();
  }

  describe("are as wide as they may be", () => {
    const widths: [what: string, interest: ObjectSubscription, rights: string[], open: string][] = [
      ["all objects of a kind that the platform opened to the controller", bucket, ["- secrets *"], "- secrets *"],
      [
        "all of one name, of a kind of which the controller may watch that name alone",
        account,
        ["- serviceaccounts inlay"],
        "- serviceaccounts inlay",
      ],
      [
        "those of a namespace, as the account that may",
        bucket,
        [`${ACCOUNT} registry/secrets *`],
        `${ACCOUNT} registry/secrets *`,
      ],
      [
        "one object, as the account, else",
        bucket,
        [`${ACCOUNT} registry/secrets bucket`],
        `${ACCOUNT} registry/secrets bucket`,
      ],
      [
        "objects of one name in many namespaces, as the account",
        { ...bucket, wide: true },
        [`${ACCOUNT} registry/secrets *`, `${ACCOUNT} secrets bucket`],
        `${ACCOUNT} secrets bucket`,
      ],
      [
        "objects of one name that bindings name in other namespaces, as the account",
        { ...bucket, wide: "named" },
        [`${ACCOUNT} registry/secrets *`, `${ACCOUNT} secrets bucket`],
        `${ACCOUNT} secrets bucket`,
      ],
      [
        "one object of the cluster, as the account",
        { identity: ACCOUNT, ref: ref(NODES, "n1") },
        [`${ACCOUNT} nodes n1`],
        `${ACCOUNT} nodes n1`,
      ],
    ];
    for (const [what, interest, rights, open] of widths) {
      it(`and carry ${what}`, async () => {
        for (const right of rights) api.rights.add(right);
        await observe("a", interest);
        assert.deepEqual(api.open, [open]);
        assert.equal(watcher.get("a", interest).phase, "synced");
        assert.deepEqual(called, ["a"]);
      });
    }

    it("and cover only the namespace in an installation for one namespace, even if the account may watch more", async () => {
      const isNamespaced = true;
      informers = new Informers(api.transport, api.client, () => {}, { isNamespaced });
      watcher = informers.watcher(() => {});
      api.rights.add("- serviceaccounts inlay").add("- secrets *").add(`${ACCOUNT} secrets *`);
      api.rights.add("- registry/serviceaccounts inlay").add(`${ACCOUNT} registry/secrets *`);
      await observe("a", bucket, account, { ...other, wide: true });
      assert.deepEqual(api.open, ["- registry/serviceaccounts inlay", `${ACCOUNT} registry/secrets *`]);
      assert.deepEqual(
        api.reviews.filter((review) => !review.includes("registry/")),
        [],
      );
    });

    it("and are reviewed only for the named namespace if the account may not watch the object in its own", async () => {
      const ref = { ...bucket.ref, namespace: "team" };
      const onTheName = [
        { verbs: ["list", "watch"], apiGroups: [""], resources: ["secrets"], resourceNames: ["bucket"] },
      ];
      api.rules.set(`${ACCOUNT} registry`, { incomplete: false, resourceRules: [] });
      api.rules.set(`${ACCOUNT} team`, { incomplete: false, resourceRules: onTheName });
      api.rights.add(`${ACCOUNT} team/secrets bucket`);
      await observe("a", { ...bucket, ref, wide: "named" });
      assert.deepEqual(api.open, [`${ACCOUNT} team/secrets bucket`]);
      assert.deepEqual(
        api.reviews.filter((review) => review.startsWith(`${ACCOUNT} secrets`)),
        [],
      );
    });

    it("and an account never uses the stream of a name that only the controller may watch", async () => {
      api.rights.add("- secrets bucket");
      api.rights.add(`${ACCOUNT} registry/secrets bucket`);
      await observe("a", bucket);
      assert.deepEqual(api.open, [`${ACCOUNT} registry/secrets bucket`]);
    });
  });

  it("are shared by all subscribers of the same stream, and reviewed once", async () => {
    api.rights.add(`${ACCOUNT} registry/secrets *`);
    await Promise.all([observe("a", bucket), observe("b", bucket, other), observe("c", other)]);
    assert.equal(api.open.length, 1);
    assert.equal(api.reviews.filter((review) => review.startsWith(ACCOUNT)).length, 1);
    assert.deepEqual(
      informers.states.map(({ phase }) => phase),
      ["synced"],
    );
  });

  it("are separate for two accounts", async () => {
    const theirs = { ...bucket, identity: serviceAccountIdentity("registry", "other") };
    api.rights.add(`${ACCOUNT} registry/secrets *`).add(`${theirs.identity} registry/secrets bucket`);
    await observe("a", bucket, theirs);
    assert.deepEqual(api.open, [`${ACCOUNT} registry/secrets *`, `${theirs.identity} registry/secrets bucket`]);
  });

  it("call only the dependents of the changed object", async () => {
    api.rights.add(`${ACCOUNT} registry/secrets *`);
    api.objects.set("registry/secrets", [secret("bucket", "1"), secret("other", "2")]);
    await observe("a", bucket);
    await observe("b", bucket, other);
    await observe("c", other);
    called.length = 0;
    api.streams.get(`${ACCOUNT} registry/secrets *`)?.send("MODIFIED", secret("bucket", "11"));
    await settled();
    assert.deepEqual(called, ["a", "b"]);
    assert.equal(watcher.get("a", bucket).version?.resourceVersion, "11");
    assert.equal(watcher.get("c", other).version?.resourceVersion, "2");
    api.streams.get(`${ACCOUNT} registry/secrets *`)?.send("DELETED", secret("bucket", "12"));
    await settled();
    assert.deepEqual(watcher.get("a", bucket), { phase: "synced" });
  });

  it("show an object only to its subscribers", async () => {
    api.rights.add(`${ACCOUNT} registry/secrets *`);
    await observe("a", bucket);
    assert.deepEqual(watcher.get("a", other), { phase: "pending" });
    assert.deepEqual(watcher.get("other", bucket), { phase: "pending" });
  });

  it("close when their last subscriber is removed", async () => {
    api.rights.add(`${ACCOUNT} registry/secrets *`);
    await observe("a", bucket);
    await observe("b", other);
    await observe("a");
    assert.equal(api.open.length, 1);
    await observe("b");
    assert.deepEqual([api.open, informers.states.length], [[], 0]);
  });

  it("are not opened for a subscriber that was removed before the review was answered", async () => {
    api.rights.add(`${ACCOUNT} registry/secrets *`);
    watcher.subscribe("a", [bucket]);
    await observe("a");
    assert.deepEqual([api.open, api.lists, called], [[], 0, []]);
  });

  it("review an account's permissions again once the answer has no subscribers left", async () => {
    watcher.subscribe("a", [bucket]);
    watcher.subscribe("a", []);
    await observe("b");
    api.rights.add(`${ACCOUNT} registry/secrets *`);
    await observe("c", bucket);
    assert.deepEqual(api.open, [`${ACCOUNT} registry/secrets *`]);
  });

  it("keep the answer while it has subscribers, even if the first one is removed", async () => {
    const account = `${ACCOUNT} registry/secrets *`;
    api.rights.add(account);
    await observe("a", bucket);
    for (let n = 0; n < 10; n++) {
      watcher.subscribe("b", [{ ...other, ref: ref(SECRETS, `s-${n}`, "registry") }]);
      await observe("b");
    }
    assert.equal(api.reviews.filter((review) => review === account).length, 1);
  });

  it("stay open for a dependent with two subscriptions to one object when one of them is removed", async () => {
    api.rights.add("- serviceaccounts *");
    const asSource = { identity: ACCOUNT, ref: account.ref };
    await observe("a", account, asSource);
    await observe("a", account);
    assert.deepEqual(api.open, ["- serviceaccounts inlay"]);
    assert.equal(watcher.get("a", account).phase, "synced");
    called.length = 0;
    api.streams.get("- serviceaccounts inlay")?.send("ADDED", secret("inlay", "11"));
    await settled();
    assert.deepEqual(called, ["a"]);
  });

  it("are not shared if the controller may watch everything", async () => {
    api.rights.add("- secrets *").add("- * *").add(`${ACCOUNT} registry/secrets bucket`);
    await observe("a", bucket);
    assert.deepEqual(api.open, [`${ACCOUNT} registry/secrets bucket`]);
  });

  describe("by the rules of an account", () => {
    const PLACE = `${ACCOUNT} registry`;
    const rulesFor = (...resourceNames: string[]) => ({
      incomplete: false,
      resourceRules: [{ verbs: ["list", "watch"], apiGroups: [""], resources: ["secrets"], resourceNames }],
    });
    const named = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ ...bucket, ref: ref(SECRETS, `s-${n}`, "registry") }));

    it("are opened only for names that it may watch, by one review for all names and kinds", async () => {
      api.rules.set(PLACE, rulesFor("bucket"));
      api.rights.add(`${ACCOUNT} registry/secrets bucket`);
      await observe("a", bucket, other, ...named(50));
      assert.deepEqual(api.open, [`${ACCOUNT} registry/secrets bucket`]);
      assert.equal(api.lists, 1);
      assert.deepEqual(api.ruleReviews, [PLACE]);
      const refused = watcher.get("a", other);
      assert.deepEqual(refused.phase === "failed" && refused.error.status, 403);
    });

    it("are opened within seconds after the rules changed, by one review for all names", async () => {
      api.rules.set(PLACE, rulesFor("bucket"));
      await observe("a", ...named(50));
      await clock.pass(20_000);
      assert.ok(api.ruleReviews.length < 10, `${api.ruleReviews.length}`);
      assert.equal(api.lists, 0);
      api.rules.set(PLACE, rulesFor());
      api.rights.add(`${ACCOUNT} registry/secrets *`);
      for (let n = 0; n < 6; n++) await clock.pass(1_000);
      assert.deepEqual(api.open, [`${ACCOUNT} registry/secrets *`]);
      assert.equal(watcher.get("a", named(1)[0] as ObjectSubscription).phase, "synced");
    });

    it("are limited for the names of one dependent, and one stream if it may watch all names", async () => {
      const all = named(200);
      api.rules.set(PLACE, rulesFor(...all.map((each) => each.ref.name)));
      for (const each of all) api.rights.add(`${ACCOUNT} registry/secrets ${each.ref.name}`);
      await observe("a", ...all);
      assert.equal(api.open.length, 128);
      const beyond = watcher.get("a", all[150] as ObjectSubscription);
      assert.equal(beyond.phase === "failed" && beyond.error.reason, "TooManyNames");
      await observe("a", ...all.slice(100));
      assert.equal(api.open.length, 100);
      await observe("a", ...all);
      api.rules.set(PLACE, rulesFor());
      api.rights.add(`${ACCOUNT} registry/secrets *`);
      for (let n = 0; n < 6; n++) await clock.pass(1_000);
      assert.deepEqual(api.open, [`${ACCOUNT} registry/secrets *`]);
      assert.equal(watcher.get("a", all[150] as ObjectSubscription).phase, "synced");
    });
  });

  describe("of all keys of a namespace", () => {
    const of = (name: string): ObjectSubscription => ({ identity: ACCOUNT, ref: ref(SECRETS, name, "registry") });
    const [a, b, c] = ["a", "b", "c"].map(of) as [ObjectSubscription, ObjectSubscription, ObjectSubscription];
    const whyNot = (key: string, each: ObjectSubscription) => {
      const state = watcher.get(key, each);
      return state.phase === "failed" ? state.error.reason : state.phase;
    };

    beforeEach(() => {
      const restarted = () => {};
      informers = new Informers(api.transport, api.client, restarted, { mostSubscriptions: 3 });
      watcher = informers.watcher(
        (key) => called.push(key),
        (key) => key.split("/")[0] as string,
      );
      api.rights.add(`${ACCOUNT} registry/secrets *`);
    });

    it("have a limit: the last ones of the list fail until others end, and other namespaces have their own", async () => {
      await observe("registry/one", a, b);
      await observe("registry/two", a, b, c);
      await observe("storage/one", a, b, c);
      assert.deepEqual(
        [a, b, c].map((each) => whyNot("registry/two", each)),
        ["synced", ...Array(2).fill("TooManySubscriptions")],
      );
      assert.equal(whyNot("storage/one", c), "synced");
      called.length = 0;
      await observe("registry/one", b);
      assert.deepEqual(called, ["registry/two"]);
      await observe("registry/two", a, b, c);
      assert.deepEqual([whyNot("registry/two", b), whyNot("registry/two", c)], ["synced", "TooManySubscriptions"]);
      await observe("registry/two", a, b);
      assert.equal(whyNot("registry/two", c), "pending");
    });

    it("may be replaced at once by as many others", async () => {
      await observe("registry/one", a, b, c);
      const others = ["d", "e", "f"].map(of);
      await observe("registry/one", ...others);
      assert.deepEqual(
        others.map((each) => whyNot("registry/one", each)),
        Array(3).fill("synced"),
      );
    });

    it("are replaced in steps", () => {
      const [steps, more] = [watcher.subscribing("storage/one", [a, b]), watcher.subscribing("storage/one", [c])];
      assert.deepEqual([[...steps].length, [...more].length], [4, 4]);
    });
  });

  describe("that are refused", () => {
    it("move to the next narrower scope, and stay at the narrowest", async () => {
      api.promised.add("- secrets *").add(`${ACCOUNT} registry/secrets *`);
      await observe("a", bucket, other);
      for (let attempt = 0; attempt < 5; attempt++) await clock.pass(4_000);
      const { phase } = watcher.get("a", bucket);
      assert.equal(phase, "failed");
      assert.equal(informers.states.length, 2);
      assert.deepEqual(api.reviews, ["- secrets *", "- * *"]);
      api.rights.add(`${ACCOUNT} registry/secrets bucket`);
      called.length = 0;
      await clock.pass(4_000);
      // One after the other.
      await clock.pass(500);
      assert.equal(watcher.get("a", bucket).phase, "synced");
      assert.equal(watcher.get("a", other).phase, "failed");
      assert.deepEqual(api.open, [`${ACCOUNT} registry/secrets bucket`]);
      assert.ok(called.includes("a"));
    });

    it("later, such as when a kind is no longer opted in, continue with the account", async () => {
      api.rights.add("- secrets *").add(`${ACCOUNT} registry/secrets *`);
      await observe("a", bucket);
      assert.deepEqual(api.open, ["- secrets *"]);
      api.rights.delete("- secrets *");
      api.streams.get("- secrets *")?.end(apiError(403));
      for (let attempt = 0; attempt < 3; attempt++) await clock.pass(4_000);
      assert.deepEqual(api.open, [`${ACCOUNT} registry/secrets *`]);
      assert.equal(watcher.get("a", bucket).phase, "synced");
    });

    it("keep their scope while the controller may not impersonate the account", async () => {
      const all = `${ACCOUNT} registry/secrets *`;
      api.rights.add(all);
      await observe("a", bucket, other);
      const details = { kind: "serviceaccounts", name: ACCOUNT.split(":").at(-1) };
      api.streams.get(all)?.end(new ApiError("GET /x", 403, "Forbidden", { details }));
      await settled();
      assert.deepEqual([informers.states.length, watcher.get("a", bucket).phase], [1, "failed"]);
      await clock.pass(4_000);
      assert.deepEqual([api.open, watcher.get("a", other).phase], [[all], "synced"]);
    });

    it("report the reason, and call their dependents", async () => {
      await observe("a", bucket);
      const look = watcher.get("a", bucket);
      assert.equal(look.phase === "failed" && look.error.status, 403);
      assert.deepEqual(called, ["a"]);
    });
  });

  describe("of collections", () => {
    const inTeam = (more: Partial<CollectionSubscription> = {}): CollectionSubscription => ({
      identity: ACCOUNT,
      resource: SECRETS,
      namespace: "registry",
      labels: "",
      names: undefined,
      ...more,
    });
    const namesOf = (collection: CollectionSubscription) => {
      const { phase, members } = watcher.list("a", collection);
      return [phase, ...members.map(({ name }) => name)];
    };
    const NAMESPACE = `${ACCOUNT} registry/secrets *`;

    it("show their objects, and call only for changes of these", async () => {
      api.rights.add(NAMESPACE);
      api.objects.set("registry/secrets", [secret("web-1", "1"), secret("db", "2")]);
      const web = inTeam({ names: ["web-*"] });
      assert.deepEqual(namesOf(web), ["pending"]);
      await observe("a", web);
      await observe("b", bucket);
      assert.deepEqual([api.open, namesOf(web)], [[NAMESPACE], ["synced", "web-1"]]);
      called.length = 0;
      api.streams.get(NAMESPACE)?.send("ADDED", secret("web-2", "11"));
      api.streams.get(NAMESPACE)?.send("ADDED", secret("bucket", "12"));
      api.streams.get(NAMESPACE)?.send("ADDED", secret("other", "13"));
      await settled();
      assert.deepEqual(
        [called, namesOf(web)],
        [
          ["a", "b"],
          ["synced", "web-1", "web-2"],
        ],
      );
      api.streams.get(NAMESPACE)?.send("DELETED", secret("web-1", "14"));
      await settled();
      assert.deepEqual(
        [called, namesOf(web)],
        [
          ["a", "b", "a"],
          ["synced", "web-2"],
        ],
      );
    });

    it("call for all changes if comparing names with all patterns takes too long", async () => {
      api.rights.add(NAMESPACE);
      const slow = inTeam({ names: Array.from({ length: 16 }, (_, n) => `*${"a*".repeat(100)}b${n}*`) });
      for (let n = 0; n < 80; n++) await observe(`slow-${n}`, slow);
      called.length = 0;
      api.streams.get(NAMESPACE)?.send("ADDED", secret("a".repeat(253), "11"));
      await settled();
      assert.ok(called.length > 0 && called.length < 40, `${called.length}`);
    });

    it("show the spec of SecretGrants if a subscription asks for it", async () => {
      api.rights.add("- secretgrants *");
      api.objects.set("registry/secretgrants", [{ ...secret("x", "1"), spec: { to: [] }, data: {} }]);
      const grants = inTeam({ identity: CONTROLLER, resource: SECRET_GRANTS });
      const [whole, plain] = [{ ...grants, whole: true as const }, grants];
      await observe("a", whole);
      const seen = (collection: CollectionSubscription) =>
        watcher.list("a", collection).members.map(({ version }) => version);
      const version = { uid: "uid-x", resourceVersion: "1", generation: undefined };
      assert.deepEqual([seen(whole), seen(plain)], [[{ ...version, spec: { to: [] } }], []]);
    });

    it("of namespaces are not shared by the controller, which watches them for itself", async () => {
      const all = inTeam({ resource: NAMESPACES, namespace: undefined });
      api.rights.add("- namespaces *").add(`${ACCOUNT} namespaces *`);
      await observe("a", all, { ...all, identity: CONTROLLER });
      await observe("b", { identity: ACCOUNT, ref: ref(NAMESPACES, "other") });
      assert.deepEqual(api.open, ["- namespaces *", `${ACCOUNT} namespaces *`]);
    });

    it("are filtered by the server if labels select, by one stream for each selector", async () => {
      api.rights.add(NAMESPACE);
      await observe("a", inTeam({ labels: "tier=prod" }), inTeam({ labels: "tier=test" }));
      await observe("b", inTeam({ labels: "tier=prod", names: ["x"] }));
      assert.deepEqual(api.open, [`${NAMESPACE} tier=prod`, `${NAMESPACE} tier=test`]);
    });

    it("of many namespaces use one stream of the cluster if the account may, else one for each", async () => {
      const others = ["one", "two"].map((namespace) => inTeam({ namespace, wide: true }));
      api.rights.add(`${ACCOUNT} secrets *`).add(`${ACCOUNT} one/secrets *`).add(`${ACCOUNT} two/secrets *`);
      api.objects.set("one/secrets", [secret("x", "1", "one")]).set("two/secrets", [secret("y", "2", "two")]);
      await observe("a", ...others);
      assert.deepEqual(api.open, [`${ACCOUNT} secrets *`]);
      assert.deepEqual(others.map(namesOf), [
        ["synced", "x"],
        ["synced", "y"],
      ]);
      api.rights.delete(`${ACCOUNT} secrets *`);
      api.streams.get(`${ACCOUNT} secrets *`)?.end(apiError(403));
      for (let attempt = 0; attempt < 3; attempt++) await clock.pass(4_000);
      assert.deepEqual(api.open, [`${ACCOUNT} one/secrets *`, `${ACCOUNT} two/secrets *`]);
      assert.deepEqual(others.map(namesOf), [
        ["synced", "x"],
        ["synced", "y"],
      ]);
    });

    it("of an opted-in kind are shared only with accounts that may list them", async () => {
      api.rights.add("- secrets *");
      const mine = inTeam();
      await observe("a", mine);
      assert.deepEqual([api.open, namesOf(mine)], [[], ["failed"]]);
      await observe("a");
      api.rights.add(NAMESPACE);
      await observe("a", mine);
      assert.deepEqual([api.open, namesOf(mine)], [["- secrets *"], ["synced"]]);
    });

    it("of an opted-in kind are hidden from an account that may no longer list them, once the shared stream is restarted", async () => {
      api.rights.add("- secrets *").add(NAMESPACE);
      const theirs = inTeam({ identity: serviceAccountIdentity("registry", "other") });
      const ofOther = NAMESPACE.replace(ACCOUNT, theirs.identity);
      api.rights.add(ofOther);
      api.objects.set("registry/secrets", [secret("x", "1")]);
      const mine = inTeam();
      await observe("a", mine, theirs);
      assert.deepEqual([api.open, namesOf(mine), namesOf(theirs)], [["- secrets *"], ["synced", "x"], ["synced", "x"]]);
      api.rights.delete(NAMESPACE);
      await clock.pass(61_000);
      api.streams.get("- secrets *")?.end();
      await clock.pass(4_000);
      assert.deepEqual([api.open, namesOf(mine), namesOf(theirs)], [["- secrets *"], ["failed"], ["synced", "x"]]);
    });

    it("of an opted-in kind are not shown to a new subscriber a minute after its account could list them", async () => {
      api.rights.add("- secrets *").add(NAMESPACE);
      api.objects.set("registry/secrets", [secret("x", "1")]);
      await observe("b", inTeam());
      const reviews = api.reviews.length;
      await observe("c", inTeam({ names: ["y"] }));
      assert.equal(api.reviews.length, reviews);
      api.rights.delete(NAMESPACE);
      await clock.pass(61_000);
      const guess = inTeam({ names: ["x"] });
      await observe("a", guess);
      assert.deepEqual(namesOf(guess), ["failed"]);
    });

    it("that are refused report the reason, and are shown when they are allowed", async () => {
      const mine = inTeam();
      await observe("a", mine);
      assert.deepEqual([namesOf(mine), called], [["failed"], ["a"]]);
      api.rights.add(NAMESPACE);
      await clock.pass(4_000);
      assert.deepEqual([namesOf(mine), called], [["synced"], ["a", "a"]]);
    });
  });

  it("of a text in a field show and report only objects that have it, before or after the change, and share a stream", async () => {
    const fields = ["status.class", "status.objects"];
    const mounting = (text: string): CollectionSubscription => ({
      identity: ACCOUNT,
      resource: { ...SECRETS, plural: "statuses" },
      namespace: "registry",
      labels: "",
      names: undefined,
      fields,
      having: { field: "status.class", text },
    });
    const pod = (name: string, version: string, text: unknown, objects: string[] = []) => ({
      ...secret(name, version),
      status: { class: text, objects },
    });
    const key = `${ACCOUNT} registry/statuses *`;
    api.rights.add(key);
    api.objects.set("registry/statuses", [pod("a", "1", "red"), pod("b", "2", "blue"), pod("c", "3", 7)]);
    await observe("red", mounting("red"));
    await observe("blue", mounting("blue"));
    const named = (text: string) => watcher.list(text, mounting(text)).members.map(({ name }) => name);
    assert.deepEqual([api.open, named("red"), named("blue")], [[key], ["a"], ["b"]]);
    const calledFor = async (object: KubeObject) => {
      called.length = 0;
      api.streams.get(key)?.send("MODIFIED", object);
      await settled();
      return called.toSorted();
    };
    assert.deepEqual(await calledFor(pod("a", "11", "red", ["one"])), ["red"]);
    assert.deepEqual(await calledFor(pod("a", "12", "blue", ["one"])), ["blue", "red"]);
    assert.deepEqual([named("red"), named("blue").toSorted()], [[], ["a", "b"]]);
    assert.deepEqual(await calledFor(pod("c", "13", 7, ["one"])), []);
  });

  it("all close when they are stopped", async () => {
    api.rights.add(`${ACCOUNT} registry/secrets *`).add("- serviceaccounts *");
    await observe("a", bucket, account);
    assert.equal(api.open.length, 2);
    await informers.stop();
    assert.deepEqual([api.open, informers.states], [[], []]);
  });
});
