/** Random sequences of bindings that create and delete objects. Objects of other users never change. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { ALL, configMap, LABEL } from "../controller/made.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const OBJECTS = ["a", "b", "c"];
const BINDINGS = ["x", "y", "z"];

const action = fc.oneof(
  fc.record({
    does: fc.constant("bind"),
    binding: fc.constantFrom(...BINDINGS),
    object: fc.constantFrom(...OBJECTS),
    onRelease: fc.constantFrom("Remove", "Retain"),
  }),
  fc.record({ does: fc.constant("unbind"), binding: fc.constantFrom(...BINDINGS) }),
  fc.record({ does: fc.constant("make"), object: fc.constantFrom(...OBJECTS) }),
  fc.record({ does: fc.constant("edit"), object: fc.constantFrom(...OBJECTS) }),
  fc.record({ does: fc.constant("delete"), object: fc.constantFrom(...OBJECTS) }),
  fc.record({ does: fc.constant("rotate") }),
) as fc.Arbitrary<{ does: string; binding: string; object: string; onRelease: string }>;

/** A namespace in which bindings and another user create ConfigMaps of the same names. */
class World {
  readonly #team: TestNamespace;
  /** The objects of the other user, as that user last wrote them. */
  readonly theirs = new Map<string, AnyObject>();
  readonly bound = new Map<string, { object: string; onRelease: string }>();
  #edits = 0;

  constructor(team: TestNamespace) {
    this.#team = team;
  }

  path(object: string): string {
    return `${this.#team.path("v1", "configmaps")}/${object}`;
  }

  async does(act: { does: string; binding: string; object: string; onRelease: string }): Promise<void> {
    const team = this.#team;
    const { binding, object, onRelease } = act;
    if (act.does === "bind") {
      const fields = [{ path: "data.value", from: { source: "bucket", key: "value" } }];
      const spec = {
        sources: [{ secret: { name: "bucket" } }],
        targets: [configMap({ name: object, onRelease, fields })],
      };
      if (this.bound.has(binding)) await team.rebind(binding, spec);
      else await team.bind(binding, spec);
      this.bound.set(binding, { object, onRelease });
    } else if (act.does === "unbind") {
      if (this.bound.delete(binding)) await team.unbind(binding);
    } else if (act.does === "rotate") {
      await team.secret("bucket", { value: secretText("value") });
    } else {
      const there = await team.api.find(this.path(object));
      const isTheirs = there !== undefined && there.metadata.uid === this.theirs.get(object)?.metadata.uid;
      if (act.does === "make" && there === undefined) {
        const made = { metadata: { name: object, labels: { theirs: "yes" } }, data: { value: "theirs" } };
        // A binding may be faster.
        const answer = await team.api.create(team.path("v1", "configmaps"), made).catch(() => undefined);
        if (answer) this.theirs.set(object, answer);
      } else if (act.does === "edit" && there !== undefined) {
        const edited = await team.api
          .merge(this.path(object), { data: { edit: `${++this.#edits}` } })
          .catch(() => undefined);
        if (isTheirs && edited) this.theirs.set(object, edited);
      } else if (act.does === "delete" && there !== undefined) {
        await team.api.delete(this.path(object)).catch(() => undefined);
        this.theirs.delete(object);
      }
    }
  }

  /** Waits until each binding has reported its result, and checks all objects. */
  async check(): Promise<void> {
    await eventually(async () => {
      const makers = new Map<string, string[]>();
      for (const [name, { object }] of this.bound) {
        const { metadata, status } = await this.#team.binding(name);
        const [ready] = status?.conditions ?? [];
        assert.equal(ready?.observedGeneration, metadata.generation);
        if (ready.reason === "Synced") makers.set(object, [...(makers.get(object) ?? []), metadata.uid]);
        else assert.equal(ready.reason, "Conflict");
      }
      for (const object of OBJECTS) {
        const there = await this.#team.api.find(this.path(object));
        const theirs = this.theirs.get(object);
        const wanted = [...this.bound.values()].some((each) => each.object === object);
        const maker = there?.metadata.labels?.[LABEL];
        if (theirs) assert.deepEqual(there, theirs);
        else if (maker !== undefined || (wanted && there === undefined)) assert.deepEqual(makers.get(object), [maker]);
        // An object that a binding released has no owner, and belongs to no binding.
        else if (there !== undefined) this.theirs.set(object, there);
      }
    });
  }
}

describe("objects of other users", () => {
  const SEED = 20261121;
  for (const [index, actions] of fc
    .sample(fc.array(action, { minLength: 25, maxLength: 25 }), { numRuns: 4, seed: SEED })
    .entries()) {
    it(`do not change in sequence ${index} of seed ${SEED}`, async () => {
      const team = await createNamespace({
        rules: [
          { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"] },
          { apiGroups: [""], resources: ["configmaps"], verbs: ALL },
        ],
      });
      await team.secret("bucket", { value: secretText("value") });
      const world = new World(team);
      for (const act of actions) {
        await world.does(act);
        await world.check();
      }
    });
  }
});
