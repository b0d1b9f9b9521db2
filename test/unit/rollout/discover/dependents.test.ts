/** Which workloads restart for a binding, by what streams show. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../../src/api/binding.ts";
import { FieldPath } from "../../../../src/apimachinery/field-path.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import type { Streams } from "../../../../src/cache/informers.ts";
import type { Owners } from "../../../../src/controllers/binding/observed-state.ts";
import { type Dependents, dependentsOf, usedByFields } from "../../../../src/rollout/discover/dependents.ts";
import type { Lookup } from "../../../../src/rollout/discover/lookups.ts";
import { CONFIGMAPS } from "../../resources.ts";

const AS = { identity: "system:serviceaccount:registry:inlay" };
const BINDING = { spec: { sources: [{ secret: { name: "bucket" } }], targets: [] } } as unknown as SecretBinding;
const LOOKUP = {
  step: 0,
  resource: CONFIGMAPS,
  paths: { template: "spec.template" },
  stampAt: FieldPath.parse('spec.template.metadata.annotations["inlay.dev/rollout"]'),
  namespace: "registry",
};

/** Streams that show workloads of these names, which belong to the object of uid `harbor`. */
function found(find: Lookup["find"], owners: Owners, names = ["core"]): Dependents {
  const workload = { references: [], owners: ["harbor"] };
  const members = names.map((name) => ({
    name,
    version: { uid: name, resourceVersion: "1", generation: 1, workload },
  }));
  const streams = { members: () => ({ phase: "synced", members }) } as unknown as Streams;
  const lookups = [{ ...LOOKUP, find }];
  return dependentsOf(streams, "registry/b", AS, BINDING, { steps: [], lookups, problem: undefined }, () => owners);
}
const namesOf = ({ all }: Dependents) => all.map(({ ref }) => ref.name);

describe("the workloads of a binding", () => {
  it("are those that belong to a target; where one can't be known, it is not taken for gone", () => {
    const known = { uids: new Set(["harbor"]), problem: undefined };
    assert.deepEqual(namesOf(found({ by: "owner" }, known)), ["core"]);
    assert.deepEqual(namesOf(found({ by: "owner" }, { ...known, uids: new Set() })), []);
    const problem = new Problem("Forbidden", "it may not be watched", "event");
    assert.equal(found({ by: "owner" }, { uids: new Set(), problem }).problem, problem);
    assert.equal(
      found({ by: "choice", names: undefined, labels: "" }, { uids: new Set(), problem }).problem,
      undefined,
    );
  });

  it("are so many as status has room for, else it is told", () => {
    const all = { uids: new Set<string>(), problem: undefined };
    const names = (count: number, length: number) =>
      Array.from({ length: count }, (_, at) => `${at}`.padEnd(length, "x"));
    const problemOf = (given: string[]) => found({ by: "choice", names: undefined, labels: "" }, all, given).problem;
    assert.equal(problemOf(names(3_000, 20)), undefined);
    assert.match(problemOf(names(3_000, 200))?.message ?? "", /concerns 3000 workloads.*split it/);
  });

  it("restart for the fields that templates name, and for all of a list of which they name a place", () => {
    const object = { apiVersion: "v1", resource: "services", name: "web", scope: "Namespaced" };
    const used = (template: string) => [
      ...usedByFields({
        spec: { sources: [{ object }], targets: [{ fields: [{ path: "spec.x", template }] }] },
      } as unknown as SecretBinding),
    ];
    assert.deepEqual(used("http://{{web.spec.clusterIP}}"), ["web/spec.clusterIP"]);
    assert.deepEqual(used("{{web.spec.ports.[0].port}}"), ["web/spec.ports"]);
  });
});
