/** What an installation for one namespace accepts, and what it refuses. */
import assert from "node:assert/strict";
import { assertWithin } from "../../../src/api/scope.ts";
import type { ObjectRef } from "../../../src/apimachinery/objects.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import type { Selection } from "../../../src/targets/selection.ts";
import { NODES, WIDGETS } from "../resources.ts";

const inside = { resource: WIDGETS, namespace: "registry", name: "w" };
const all = { names: undefined, labels: "a=b" };

const selection = (namespaces: Selection["namespaces"], resource = WIDGETS) => ({
  resource,
  objects: all,
  namespaces,
  refusedIn: () => undefined,
});

describe("an installation for one namespace", () => {
  for (const [what, at] of Object.entries<ObjectRef | Selection>({
    "an object of its namespace": inside,
    "objects that are selected there": selection(["registry"]),
  })) {
    it(`accepts ${what}`, () => assertWithin("registry", at));
  }

  for (const [what, [at, says]] of Object.entries<[ObjectRef | Selection, string]>({
    "an object of another namespace": [{ ...inside, namespace: "other" }, "Widget other/w: "],
    "an object of the cluster": [{ resource: NODES, name: "g" }, "Node g: "],
    "objects that are selected elsewhere": [selection(["other"]), "Widget selected in other namespaces: "],
    "objects of which some are elsewhere": [selection(["registry", "other"]), "Widget selected in other"],
    "namespaces by labels": [selection(all), "Widget selected in other namespaces: "],
    "namespaces by globs": [selection({ names: ["registry*"], labels: "" }), "Widget selected in other"],
    "objects of the cluster that are selected": [selection([undefined], NODES), "Node selected in the cluster: "],
  })) {
    it(`refuses ${what}, and says how to fix it`, () => {
      assert.throws(
        () => assertWithin("registry", at),
        (error) => {
          assert.ok(error instanceof Problem);
          assert.equal(error.reason, "OutOfScope");
          assert.ok(error.message.startsWith(says), error.message);
          assert.match(error.message, /namespace registry only/);
          return true;
        },
      );
    });
  }

  it("does not restrict an installation for the whole cluster", () => {
    for (const at of [{ resource: NODES, name: "g" }, selection(all)]) assertWithin(undefined, at);
  });
});
