/** Reads from other namespaces while grants can't be listed, change during the read, or can't be checked. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../src/api/binding.ts";
import type { ObjectRef } from "../../../src/apimachinery/objects.ts";
import { MissingValue, Problem } from "../../../src/apimachinery/problem.ts";
import type { Watcher } from "../../../src/cache/watcher.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { ProducedBy } from "../../../src/sources/grant-rules.ts";
import { asWithdrawn, copiedSources, observeGrants, readGranted } from "../../../src/sources/grants.ts";
import { parseSources } from "../../../src/sources/registry.ts";
import type { LiveSource } from "../../../src/transform/live-source.ts";
import { finish } from "../../../src/workqueue/cpu-scheduler.ts";
import { SECRETS } from "../resources.ts";
import { secret } from "../transform/sources.ts";
import { watched } from "./watched.ts";

const policy = { onMissing: "Wait" as const, optional: false };
const binding = {
  metadata: { name: "b", namespace: "registry" },
  spec: { serviceAccountName: "inlay" },
} as SecretBinding;
const bucket = { resource: SECRETS, namespace: "storage", name: "bucket" };
const spec = { from: [{ namespace: "registry" }], to: [{ kind: "Secret", name: "bucket" }] };
const byLabels = { ...spec, from: [{ namespaceSelector: { matchLabels: { env: "prod" } } }] };
const byUID = { ...spec, from: [{ namespace: "registry", namespaceUID: "a1" }] };
const bySourceLabels = { ...spec, to: [{ kind: "Secret", selector: { matchLabels: { env: "prod" } } }] };
const byComposition = { ...spec, from: [{ composition: "harbors" }] };
const none: ProducedBy = "none";
const noComposition = (): ProducedBy => none;
const version = (shown: object) => ({ uid: "u", resourceVersion: "1", generation: undefined, ...shown });
const forbidden = new ApiError("WATCH", 403, "Forbidden");

/** The content of the streams of a kind: the specs of its grants, the uid and labels of its namespaces, or the error. */
type Shown = Record<string, object[] | ApiError>;
const consentWith = (shown: Shown, sources = [watched(bucket, undefined, true)], compositionOf = noComposition) => {
  const list: Watcher["list"] = (_key, { resource: { plural } }) => {
    const there = shown[plural] ?? [];
    if (there instanceof ApiError) return { phase: "failed", error: there, members: [] };
    const shownOf = (each: object) => version(plural === "namespaces" ? each : { spec: each });
    return { phase: "synced", members: there.map((each, at) => ({ name: `${plural}-${at}`, version: shownOf(each) })) };
  };
  return finish(observeGrants({ list }, "registry/b", binding, sources, compositionOf));
};

/** The answers of the API server by path; a missing path is not found. */
type Answers = Record<string, object | ApiError>;
async function read(shown: Shown, answers: Answers, compositionOf = noComposition) {
  const asked: string[] = [];
  const get = async <T>(identity: string, { resource, namespace, name }: ObjectRef) => {
    assert.equal(identity, "");
    const path = [resource.plural, namespace, name].filter(Boolean).join("/");
    asked.push(path);
    const answer = answers[path] ?? new ApiError(`GET ${path}`, 404, "NotFound");
    if (answer instanceof ApiError) throw answer;
    return answer as T;
  };
  const readSource = async () => {
    asked.push("source");
    return secret({ key: "value" });
  };
  const source = watched(bucket, readSource, true);
  const observed = consentWith(shown, [source], compositionOf);
  const found = await readGranted({ get }, observed, bucket, source, undefined);
  const outcome =
    found instanceof Problem ? `!${found.reason}` : found.kind === "absent" ? found.problem.reason : "read";
  return { outcome, asked };
}
const storage = { "namespaces/storage": { metadata: {} } };
const granted = { ...storage, "secretgrants/storage/secretgrants-0": { metadata: {}, spec } };

describe("a required grant", () => {
  it("is not looked up for a source that needs no grant", () => {
    const own = watched({ ...bucket, namespace: "registry" });
    const consent = consentWith({ secretgrants: forbidden }, [own], () => assert.fail("it is not asked"));
    assert.deepEqual([consent.dependencies, consent.state, consent.grantsFor(own.watched)], [[], "", undefined]);
  });

  it("is looked up for a source in the binding's own namespace that needs a grant", () => {
    const own = watched({ ...bucket, namespace: "registry" }, undefined, true);
    const granting = (from: object) => consentWith({ secretgrants: [{ ...spec, from: [from] }] }, [own]);
    const grants = [{ namespace: "registry" }, { namespaceSelector: { names: ["*"] } }].map((from) =>
      granting(from).grantsFor(own.watched),
    );
    assert.deepEqual(
      grants.map((each) => (each instanceof Problem ? each.reason : each?.length)),
      [1, 0],
    );
    assert.deepEqual(
      granting({}).dependencies.map(({ namespace }) => namespace),
      ["registry"],
    );
  });

  describe("for a composition", () => {
    const by = (name: string): ProducedBy => ({ by: name });
    const shown = { secretgrants: [byComposition] };
    const answers = { ...storage, "secretgrants/storage/secretgrants-0": { metadata: {}, spec: byComposition } };
    const unknown = (): ProducedBy => "unknown";
    /** The answers in order; the last one is repeated. */
    const inTurn = (...all: ProducedBy[]) => {
      let at = 0;
      return () => all[Math.min(at++, all.length - 1)] as ProducedBy;
    };

    it("permits that composition's bindings, and reads nothing for others", async () => {
      assert.equal((await read(shown, answers, () => by("harbors"))).outcome, "read");
      const nothing = { outcome: "NotGranted", asked: [] };
      for (const other of [by("other"), none]) assert.deepEqual(await read(shown, answers, () => other), nothing);
    });

    it("reads nothing and removes nothing while the binding's composition is unknown", async () => {
      assert.deepEqual(await read(shown, answers, unknown), { outcome: "!Unavailable", asked: [] });
    });

    it("is not needed if another grant permits the read", async () => {
      const both = { ...answers, "secretgrants/storage/secretgrants-1": { metadata: {}, spec } };
      assert.equal((await read({ secretgrants: [byComposition, spec] }, both, unknown)).outcome, "read");
      assert.equal((await read({ secretgrants: [] }, answers, unknown)).outcome, "NotGranted");
    });

    it("removes nothing if the source's labels exclude the other grant, and the composition is unknown", async () => {
      const both = { ...answers, "secretgrants/storage/secretgrants-1": { metadata: {}, spec: bySourceLabels } };
      const { outcome, asked } = await read({ secretgrants: [byComposition, bySourceLabels] }, both, unknown);
      assert.deepEqual([outcome, asked[0]], ["!Unavailable", "source"]);
    });

    it("uses the binding's composition after the value was read", async () => {
      for (const [now, outcome] of [
        [none, "NotGranted"],
        ["unknown", "!Unavailable"],
      ] as const)
        assert.equal((await read(shown, answers, inTurn(by("harbors"), now))).outcome, outcome);
    });

    it("changes the state with the binding's composition, which other grants do not", () => {
      const stateOf = (grants: object[], answer: ProducedBy) =>
        consentWith({ secretgrants: grants }, undefined, () => answer).state;
      const all = [by("harbors"), by("other"), none, "unknown"] as const;
      assert.equal(new Set(all.map((answer) => stateOf([byComposition], answer))).size, 4);
      assert.equal(new Set(all.map((answer) => stateOf([], answer))).size, 4);
      assert.equal(new Set(all.map((answer) => stateOf([spec], answer))).size, 1);
    });
  });

  it("permits a source by a grant that exists after the value was read", async () => {
    const { outcome, asked } = await read({ secretgrants: [spec] }, granted);
    assert.equal(outcome, "read");
    assert.deepEqual([asked[0], asked.length], ["source", 3]);
  });

  it("reads nothing without a grant", async () => {
    assert.deepEqual(await read({ secretgrants: [{ ...spec, from: [] }] }, granted), {
      outcome: "NotGranted",
      asked: [],
    });
  });

  it("reads nothing and removes nothing if grants can't be listed", async () => {
    const unseen = await read({ secretgrants: forbidden }, granted);
    assert.deepEqual(unseen, { outcome: "!Forbidden", asked: [] });
    const unknown = await read({ secretgrants: new ApiError("WATCH", 404, "NotServed") }, granted);
    assert.deepEqual(unknown, { outcome: "!KindNotFound", asked: [] });
  });

  it("denies the read if the grant is deleted, being deleted, or changed at the time of the read", async () => {
    const path = "secretgrants/storage/secretgrants-0";
    const outcomes: Record<string, object> = {
      gone: storage,
      going: { ...storage, [path]: { metadata: { deletionTimestamp: "now" }, spec } },
      other: { ...storage, [path]: { metadata: {}, spec: { ...spec, to: [] } } },
    };
    for (const [how, answers] of Object.entries(outcomes)) {
      assert.equal((await read({ secretgrants: [spec] }, answers as Answers)).outcome, "NotGranted", how);
    }
  });

  it("uses the next matching grant if one is deleted", async () => {
    const second = { ...storage, "secretgrants/storage/secretgrants-1": { metadata: {}, spec } };
    assert.equal((await read({ secretgrants: [spec, spec] }, second)).outcome, "read");
  });

  it("denies the read while the namespace of the grant is being deleted, or missing", async () => {
    const ending = { ...granted, "namespaces/storage": { metadata: { deletionTimestamp: "now" } } };
    assert.equal((await read({ secretgrants: [spec] }, ending)).outcome, "NotGranted");
    const { "namespaces/storage": _, ...gone } = granted;
    assert.equal((await read({ secretgrants: [spec] }, gone)).outcome, "NotGranted");
  });

  it("fails, and does not deny, if the API server does not return the grant", async () => {
    for (const path of Object.keys(granted)) {
      const failing = { ...granted, [path]: new ApiError("GET", 503, "ServiceUnavailable") };
      assert.equal((await read({ secretgrants: [spec] }, failing)).outcome, "!Unavailable", path);
    }
  });

  it("compares the labels of the binding's namespace at the time of the read", async () => {
    const grant = { ...storage, "secretgrants/storage/secretgrants-0": { metadata: {}, spec: byLabels } };
    const labelled = (env: string) => ({ ...grant, "namespaces/registry": { metadata: { labels: { env } } } });
    const shown = { secretgrants: [byLabels], namespaces: [{ labels: { env: "prod" } }] };
    assert.equal((await read(shown, labelled("prod"))).outcome, "read");
    assert.equal((await read(shown, labelled("test"))).outcome, "NotGranted");
    assert.equal((await read(shown, grant)).outcome, "NotGranted");
  });

  it("reads nothing unless labels and uid of the binding's namespace are known to match", async () => {
    const nothing = { outcome: "NotGranted", asked: [] };
    for (const grant of [byLabels, byUID])
      for (const namespaces of [[], [{ uid: "b2" }], [{ uid: "b2", labels: { env: "test" } }]])
        assert.deepEqual(await read({ secretgrants: [grant], namespaces }, granted), nothing);
    const grant = { ...storage, "secretgrants/storage/secretgrants-0": { metadata: {}, spec: byUID } };
    const home = { "namespaces/registry": { metadata: { uid: "a1" } } };
    const fits = { secretgrants: [byUID], namespaces: [{ uid: "a1" }] };
    assert.equal((await read(fits, { ...grant, ...home })).outcome, "read");
    const twice = await read(
      { secretgrants: [byUID, spec] },
      { ...storage, "secretgrants/storage/secretgrants-1": { metadata: {}, spec } },
    );
    assert.equal(twice.outcome, "read");
  });

  it("reads a source to know its labels, and permits it if they match", async () => {
    const { outcome, asked } = await read({ secretgrants: [bySourceLabels] }, granted);
    assert.deepEqual([outcome, asked[0]], ["NotGranted", "source"]);
    const fromOthers = { ...bySourceLabels, from: byUID.from };
    const unread = await read({ secretgrants: [fromOthers], namespaces: [{ uid: "b2" }] }, granted);
    assert.deepEqual(unread, { outcome: "NotGranted", asked: [] });
  });

  it("ignores only the grant with namespace labels if namespaces can't be watched", async () => {
    const unseen = await read({ secretgrants: [byLabels], namespaces: forbidden }, granted);
    assert.deepEqual(unseen, { outcome: "!Forbidden", asked: [] });
    assert.equal((await read({ secretgrants: [spec], namespaces: forbidden }, granted)).outcome, "read");
  });

  it("changes the state with each grant that may apply, and with no other", () => {
    const other = { ...spec, to: [{ kind: "Secret", name: "other" }] };
    const stateOf = (...grants: object[]) => consentWith({ secretgrants: grants }).state;
    assert.equal(stateOf(), stateOf(other));
    assert.notEqual(stateOf(), stateOf(spec));
  });
});

describe("a source that is not granted", () => {
  const problem = new MissingValue("NotGranted", "no SecretGrant", policy);
  const absent = { kind: "absent", description: "Secret storage/bucket", version: "none", policy, problem } as const;
  const reasonOf = (copied: string[], source: LiveSource = absent) => {
    const said = asWithdrawn(source, { ...consentWith({}), copied });
    return !(said instanceof Problem) && said.kind === "absent" ? said.problem.reason : undefined;
  };

  it("was withdrawn if status records copies of its values", () => {
    assert.equal(reasonOf(["Secret storage/bucket"]), "GrantWithdrawn");
    for (const copied of [[], ["Secret storage/other"], ["ConfigMap storage/bucket"]])
      assert.equal(reasonOf(copied), "NotGranted");
    const gone = new MissingValue("SourceNotFound", "there is none", policy);
    assert.equal(reasonOf(["Secret storage/bucket"], { ...absent, problem: gone }), "SourceNotFound");
  });

  it("stays on record as long as the binding names it", () => {
    const { resource: _, ...secret } = bucket;
    const named = { sources: [{ secret }], defaults: { onMissing: "Wait" } };
    const sources = parseSources({ ...binding, spec: { ...binding.spec, ...named } } as unknown as SecretBinding);
    const known = "Secret storage/bucket";
    assert.deepEqual(copiedSources({}, sources), {});
    assert.deepEqual(copiedSources({}, sources, [known]), { copiedSources: [known] });
    assert.deepEqual(copiedSources({ status: { copiedSources: [known] } }, sources), { copiedSources: [known] });
    assert.deepEqual(copiedSources({ status: { copiedSources: [known] } }, []), {});
    const own = { ...binding, metadata: { ...binding.metadata, namespace: "storage" } };
    const ungranted = parseSources({ ...own, spec: { ...own.spec, ...named } } as unknown as SecretBinding);
    assert.deepEqual(copiedSources({ status: { copiedSources: [known] } }, ungranted), {});
  });
});
