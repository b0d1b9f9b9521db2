/** Which SecretGrants of a namespace count, and which are considered for a source. */
import assert from "node:assert/strict";
import { Problem } from "../../../src/apimachinery/problem.ts";
import type { ListedObject } from "../../../src/cache/watcher.ts";
import { indexOf } from "../../../src/sources/grant-index.ts";
import { observeGrants } from "../../../src/sources/grants.ts";
import { finish } from "../../../src/workqueue/cpu-scheduler.ts";
import { bindingOf } from "../bindings.ts";
import { SECRETS } from "../resources.ts";
import { watched } from "./watched.ts";

const limits = { grantsPerNamespace: 3, grantsPerSource: 2 };
const bucket = { resource: SECRETS, namespace: "storage", name: "bucket" };
const asker = { namespace: "registry", account: "inlay", composition: "none" } as const;

/** A grant of that age for a Secret. */
function grant(
  name: string,
  createdAt: number,
  secret = "bucket",
  more: Partial<ListedObject["version"]> = {},
): ListedObject {
  const spec = { from: [{ namespace: "registry" }], to: [{ kind: "Secret", name: secret }] };
  const version = { uid: `uid-${name}`, resourceVersion: name, generation: 1, createdAt, spec, ...more };
  return { namespace: "storage", name, version };
}

const counted = (...members: ListedObject[]) => finish(indexOf(members, limits)).index;
const namesFor = (...members: ListedObject[]) =>
  counted(...members)
    .for(asker, bucket)
    .map(({ name }) => name);

function observed(...members: ListedObject[]) {
  const list = () => ({ phase: "synced" as const, members });
  const reported: string[] = [];
  const options = {
    limits,
    steps: async <T>(work: Generator<unknown, T>) => finish(work),
    limited: (namespace: string) => reported.push(namespace),
  };
  const source = watched(bucket, undefined, true);
  const look = () => finish(observeGrants({ list }, "registry/b", bindingOf(), [source], () => "none", options));
  const grants = look().grantsFor(bucket);
  return { result: grants instanceof Problem ? grants.reason : grants?.map(({ name }) => name), reported, look };
}

describe("the SecretGrants of a namespace", () => {
  it("count up to the limit, the oldest first, and by name if they were created in one second", () => {
    const members = [grant("a", 9), grant("b", 2), grant("d", 5), grant("c", 5), grant("e", 1)];
    assert.deepEqual(namesFor(...members), ["e", "b", "c"]);
    assert.deepEqual(
      counted(...members).uncounted.map(({ name }) => name),
      ["a", "d"],
    );
  });

  it("don't count while they are being deleted, or if they are too large", () => {
    const members = [grant("a", 1, "bucket", { isDeleted: true }), grant("b", 2, "bucket", { spec: undefined })];
    const index = counted(...members, grant("c", 3), grant("d", 4));
    assert.deepEqual(
      index.for(asker, bucket).map(({ name }) => name),
      ["c", "d"],
    );
    assert.deepEqual([index.uncounted.length, index.tooLarge.length], [0, 1]);
  });

  it("are found by the object that they name or select, and by the namespace that they name", () => {
    const to = [{ kind: "Secret", selector: { names: ["b*"] } }];
    const selecting = grant("b", 2, "", { spec: { from: [{ namespaceSelector: { names: ["r*"] } }], to } });
    const elsewhere = grant("c", 3, "", { spec: { from: [{ namespace: "other" }], to } });
    assert.deepEqual(namesFor(grant("a", 1, "other"), selecting, elsewhere), ["b"]);
  });

  it("are indexed once until one of them changes", () => {
    const members = [grant("a", 1)];
    const { index, isNew } = finish(indexOf(members, limits));
    assert.deepEqual([isNew, finish(indexOf(members, limits))], [true, { index, isNew: false }]);
    assert.equal(finish(indexOf([...members], limits)).isNew, true);
  });

  it("permit a source although others don't count, which is reported once", () => {
    const { result, reported, look } = observed(grant("a", 1), ...[2, 3, 4].map((at) => grant(`o${at}`, at, "other")));
    assert.deepEqual([result, reported], [["a"], ["storage"]]);
    look();
    assert.deepEqual(reported, ["storage"]);
  });

  it("leave it unknown whether one permits a source if some don't count", () => {
    const others = [1, 2, 3].map((at) => grant(`o${at}`, at, "other"));
    assert.deepEqual(observed(...others).result, []);
    assert.equal(observed(...others, grant("z", 9)).result, "LimitExceeded");
  });

  it("are considered for one source up to a limit, the oldest first", () => {
    const byUID = {
      spec: { from: [{ namespace: "registry", namespaceUID: "other" }], to: [{ kind: "Secret", name: "bucket" }] },
    };
    assert.deepEqual(observed(grant("a", 1), grant("b", 2), grant("c", 3)).result, ["a", "b"]);
    const others = [1, 2].map((at) => grant(`o${at}`, at, "bucket", byUID));
    assert.equal(observed(...others, grant("z", 9)).result, "LimitExceeded");
  });
});
