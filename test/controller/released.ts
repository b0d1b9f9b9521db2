/** What tests of the release share: a target with parent objects on the path to a field, and the events of a release. */
import assert from "node:assert/strict";
import { eventually } from "./eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "./kinds.ts";
import { secretText } from "./leak-detector.ts";
import { createNamespace, type TestNamespace } from "./test-namespace.ts";

export const FINALIZER = "inlay.dev/release";
export const accessKeyFrom = { from: { source: "bucket", key: "accessKeyID" } };

/** The binding creates spec.a and spec.a.b on the path to a field. */
export const nest: Kind = {
  group: "release.example.com",
  kind: "Nest",
  plural: "nests",
  spec: {
    type: "object",
    properties: {
      a: {
        type: "object",
        properties: {
          b: { type: "object", properties: { c: { type: "string" }, d: { type: "string" } } },
          other: { type: "string" },
        },
      },
      free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    },
  },
};

export async function createNamespaceWithNest(spec: object): Promise<TestNamespace> {
  const team = await createNamespace({
    rules: [mayWrite(nest), { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"] }],
  });
  await installKind(team.api, nest);
  await createObject(team.api, nest, "nest", spec, team.namespace);
  await team.secret("bucket", { accessKeyID: secretText("access") });
  await team.bind("nest", nestSpec("spec.a.b.c"));
  await team.until("nest", "Synced");
  return team;
}

export const nestSpec = (...paths: string[]) => ({
  sources: [{ secret: { name: "bucket" } }],
  targets: [
    {
      apiVersion: apiVersionOf(nest),
      kind: "Nest",
      name: "nest",
      onRelease: "Remove",
      fields: paths.map((path) => ({ path, ...accessKeyFrom })),
    },
  ],
});

export const nestIn = async (team: TestNamespace) =>
  (await team.api.get(objectPath(nest, team.namespace, "nest"))).spec;

export const finalizersOf = async (team: TestNamespace, name: string) =>
  (await team.binding(name)).metadata.finalizers ?? [];

/** Waits for an event about a binding. */
export async function untilEvent(team: TestNamespace, binding: string, reason: string, note: RegExp): Promise<void> {
  await eventually(async () => {
    const events = await team.events(binding);
    assert.ok(
      events.some((event) => event.reason === reason && note.test(event.note)),
      JSON.stringify(events),
    );
  });
}
