/** Which workloads restart for a binding, by what the watches show. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../../src/api/binding.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import type { Owners } from "../../../../src/rollout/discover/dependents.ts";
import {
  apartFrom,
  type Dependents,
  dependentsFingerprint,
  dependentsOf,
  usedByFields,
} from "../../../../src/rollout/discover/dependents.ts";
import type { WorkloadLookup } from "../../../../src/rollout/discover/lookups.ts";
import type { PodReference } from "../../../../src/workloads/pod-references.ts";
import { finish } from "../../../../src/workqueue/cpu-scheduler.ts";
import { bindingOf, lookupOf, targetOf, workloadDataOf } from "../../objects.ts";

const AS = { identity: "system:serviceaccount:registry:inlay" };

/** Watches that show workloads of these names, which the object with the uid `harbor` owns. */
function found(
  find: WorkloadLookup["find"],
  owners: Owners,
  names = ["core"],
  namesBeside = () => ["cores", "portal"],
  more: Parameters<typeof workloadDataOf>[0] | "too large" = {},
): Dependents {
  const facts =
    more === "too large"
      ? { isTooLarge: true as const }
      : { workload: workloadDataOf({ owners: ["harbor"], ...more }) };
  const members = names.map((name) => ({
    name,
    version: { uid: name, resourceVersion: "1", generation: 1, ...facts },
  }));
  const state = { phase: "synced" } as const;
  const informers = { get: () => state, list: () => ({ ...state, members }), namesBeside };
  const lookups = [lookupOf({ find })];
  const references = { steps: [], lookups, closed: [], problem: undefined };
  return finish(dependentsOf(informers, "registry/b", AS, bindingOf(), references, () => owners));
}
/** The values of the fields of a binding with this spec. */
function usedBy(spec: Partial<SecretBinding["spec"]>): string[] {
  const used = finish(usedByFields(bindingOf({ spec })));
  assert.ok(!(used instanceof Problem));
  return [...used];
}
const OWNERS: Owners = { uids: new Set(), problem: undefined };
/** Workloads that refer to the Secret bucket, in which `uses` are behind each key. */
function consumers(count: number, uses: (keys: readonly string[] | undefined) => readonly string[], keys = ["a"]) {
  const references: PodReference[] = [{ kind: "Secret", name: "bucket", keys, by: "env" }];
  const names = Array.from({ length: count }, (_, at) => `core-${at}`);
  return found({ by: "reference", kind: "Secret", name: "bucket", uses }, OWNERS, names, undefined, { references });
}
const namesOf = ({ all }: Dependents) => all.map(({ ref }) => ref.name);

describe("the workloads of a binding", () => {
  it("are those that a target owns; a target that can't be known does not count as deleted", () => {
    const known = { uids: new Set(["harbor"]), problem: undefined };
    assert.deepEqual(namesOf(found({ by: "owner" }, known)), ["core"]);
    assert.deepEqual(namesOf(found({ by: "owner" }, { ...known, uids: new Set() })), []);
    const problem = new Problem("Forbidden", "it may not be watched", "OnChange");
    assert.equal(found({ by: "owner" }, { uids: new Set(), problem }).problem, problem);
    assert.equal(
      found({ by: "choice", names: undefined, labels: "" }, { uids: new Set(), problem }).problem,
      undefined,
    );
  });

  it("are reported if they are named and do not exist, with a name that was probably meant", () => {
    const none = { uids: new Set<string>(), problem: undefined };
    const problemOf = (name: string) => apartFrom(found({ by: "name", name }, none));
    assert.equal(
      problemOf("core")?.message,
      "spec.rollout: there is no Deployment registry/core (did you mean cores?); create it, or correct the name",
    );
    assert.equal(
      problemOf("other")?.message,
      "spec.rollout: there is no Deployment registry/other; create it, or correct the name",
    );
  });

  it("are not known if comparing their names with patterns takes too long", () => {
    const lookups = [lookupOf({ find: { by: "choice", names: ["*a*b*"], labels: "" } })];
    const references = { steps: [], lookups, closed: [], problem: undefined };
    const list = (_key: string, _of: object, effort = { left: 0 }) => {
      effort.left = -1;
      return { phase: "synced" as const, members: [] };
    };
    const watcher = { get: () => ({ phase: "synced" as const }), list, namesBeside: () => [] };
    const owners = () => ({ uids: new Set<string>(), problem: undefined });
    const { problem } = finish(dependentsOf(watcher, "registry/b", AS, bindingOf(), references, owners));
    assert.deepEqual([problem?.reason, problem?.retryPolicy], ["InvalidBinding", "OnChange"]);
  });

  it("are reported and not restarted if they have too many references, unless the binding names them", () => {
    const none = { uids: new Set<string>(), problem: undefined };
    const reference = { by: "reference", kind: "Secret", name: "bucket", uses: () => ["bucket"] } as const;
    const unread = found(reference, none, ["core", "portal"], undefined, { hasTooManyReferences: true });
    assert.deepEqual(namesOf(unread), []);
    const { reason, message } = apartFrom(unread) as Problem;
    assert.equal(reason, "TooLarge");
    assert.match(
      message,
      /^spec\.rollout: the pods of Deployment registry\/core, Deployment registry\/portal refer to more .*name the workload/,
    );
    const mounted = { ...reference, kind: "SecretProviderClass", isTooLarge: true } as const;
    assert.deepEqual(found(mounted, none).unread.length, 1);
    const named = found({ by: "choice", names: ["core"], labels: "" }, none, ["core"], undefined, {
      hasTooManyReferences: true,
    });
    assert.deepEqual([namesOf(named), apartFrom(named)], [["core"], undefined]);
  });

  it("are reported and not restarted if they are too large together, even if the binding names them", () => {
    const none = { uids: new Set<string>(), problem: undefined };
    const all: WorkloadLookup["find"][] = [
      { by: "choice", names: ["core"], labels: "" },
      { by: "reference", kind: "Secret", name: "bucket", uses: () => ["bucket"] },
      { by: "owner" },
    ];
    for (const find of all) {
      const large = found(find, none, ["core"], undefined, "too large");
      assert.deepEqual(namesOf(large), []);
      const { reason, message } = apartFrom(large) as Problem;
      assert.equal(reason, "TooLarge");
      assert.match(message, /^spec\.rollout: Inlay does not restart Deployment registry\/core, .*too large together/);
    }
  });

  it("are compared with a missing one only for its message", () => {
    let asked = 0;
    const namesBeside = () => {
      asked++;
      return ["cores"];
    };
    const none = { uids: new Set<string>(), problem: undefined };
    const dependents = found({ by: "name", name: "core" }, none, [], namesBeside);
    assert.deepEqual([dependents.missing.length, asked], [1, 0]);
    const missing = Array.from({ length: 20 }, () => dependents.missing).flat();
    assert.match(apartFrom({ ...dependents, missing })?.message ?? "", /did you mean cores\?\).* and 17 more/);
    assert.equal(asked, 3);
  });

  it("are reported if they are more than the status has room for", () => {
    const all = { uids: new Set<string>(), problem: undefined };
    const names = (count: number, length: number) =>
      Array.from({ length: count }, (_, at) => `${at}`.padEnd(length, "x"));
    const problemOf = (given: string[]) => found({ by: "choice", names: undefined, labels: "" }, all, given).problem;
    assert.equal(problemOf(names(3_000, 20)), undefined);
    assert.match(problemOf(names(3_000, 200))?.message ?? "", /selects more workloads than .*split it/);
  });

  it("share the values that they use, in their fingerprint too", () => {
    let asked = 0;
    const uses = (value: string) => () => {
      asked++;
      return ["s/b", value];
    };
    const { all, used, ...others } = consumers(1_000, uses("s/a"));
    assert.deepEqual([asked, new Set(all.map((each) => each.uses)).size], [1, 1]);
    assert.deepEqual(
      [[...used], [...(all[0]?.uses ?? [])]],
      [
        ["s/a", "s/b"],
        ["s/a", "s/b"],
      ],
    );
    assert.equal([...dependentsFingerprint({ all, used, ...others })].length, 1);
    const fingerprint = (value: string) => finish(dependentsFingerprint(consumers(2, uses(value))));
    assert.equal(fingerprint("s/a"), fingerprint("s/a"));
    assert.notEqual(fingerprint("s/a"), fingerprint("s/c"));
  });

  it("are none, with a problem that says what to do, if they use more values than a rollout may have", () => {
    const many = (length: number) => () => Array.from({ length }, (_, at) => `s/${at}`);
    const outcome = ({ all, problem }: Dependents) => [all.length, problem?.reason, problem?.retryPolicy];
    const refused = [0, "InvalidBinding", "OnChange"];
    assert.deepEqual(outcome(consumers(50, many(5_000))), [50, undefined, undefined]);
    assert.deepEqual(outcome(consumers(51, many(5_000))), refused);
    const different = consumers(1, many(5_001));
    assert.deepEqual(outcome(different), refused);
    assert.match(different.problem?.message ?? "", /more than 5,000 different values; .*split the binding$/);
  });

  it("restart for the fields that templates name, and for a whole list if they name an element of it", () => {
    const object = { apiVersion: "v1", resource: "services", name: "web", scope: "Namespaced" } as const;
    const used = (template: string) => {
      const targets = [targetOf({ fields: [{ path: "spec.x", template }] })];
      return usedBy({ sources: [{ object }], targets });
    };
    assert.deepEqual(used("http://{{web.spec.clusterIP}}"), ["web/spec.clusterIP"]);
    assert.deepEqual(used("{{web.spec.ports.[0].port}}"), ["web/spec.ports"]);
  });

  it("restart for all keys of a source without fields, but for metadata from Vault only for the time of the last version", () => {
    const at = { connection: { name: "vault" }, refresh: "1m" };
    const path = { mount: "kv", path: "shop/db" };
    const sources = [
      { name: "data", vault: { ...at, data: { ...path, kv: 2 as const } } },
      { name: "metadata", vault: { ...at, metadata: path } },
    ];
    const used = usedBy({ sources, targets: [] });
    assert.deepEqual(used, ["data/*", "metadata/updated_time"]);
  });
});
