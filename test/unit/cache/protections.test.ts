/** The index of protecting bindings. */
import assert from "node:assert/strict";
import { CONFIG_MAPS, SECRETS } from "../../../src/apimachinery/resources.ts";
import { Protections } from "../../../src/cache/protections.ts";
import { bindingOf } from "../objects.ts";
import { HARBOR } from "../resources.ts";

describe("the protections", () => {
  type Source = { secret: { name: string } } | { configMap: { name: string } };
  const guard = (uid: string, name: string, source: Source, namespace = "shop") =>
    bindingOf({ metadata: { uid, name, namespace }, spec: { sources: [{ ...source, protect: { writers: [] } }] } });
  const secret = { resource: SECRETS, namespace: "shop", name: "key" };

  it("are those of the kind, namespace and name, with the names of their bindings in order", () => {
    const protections = new Protections();
    protections.put(guard("2", "second", { secret: { name: "key" } }));
    protections.put(guard("1", "first", { secret: { name: "key" } }));
    protections.put(guard("3", "map", { configMap: { name: "key" } }));
    protections.put(guard("4", "elsewhere", { secret: { name: "key" } }, "other"));
    protections.put(
      bindingOf({ metadata: { uid: "5", namespace: "shop" }, spec: { sources: [{ secret: { name: "key" } }] } }),
    );
    assert.deepEqual(protections.of(secret), ["first", "second"]);
    assert.deepEqual(protections.of({ ...secret, resource: CONFIG_MAPS }), ["map"]);
    assert.deepEqual(protections.of({ ...secret, resource: HARBOR.resource }), []);
  });

  it("follow a binding that protects another object, and one that is removed", () => {
    const protections = new Protections();
    protections.put(guard("1", "first", { secret: { name: "key" } }));
    protections.put(guard("1", "first", { secret: { name: "other" } }));
    assert.deepEqual(protections.of(secret), []);
    assert.deepEqual(protections.of({ ...secret, name: "other" }), ["first"]);
    protections.removed("1");
    assert.deepEqual(protections.of({ ...secret, name: "other" }), []);
  });
});
