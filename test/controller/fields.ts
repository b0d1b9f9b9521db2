/** Workloads that restart on a field: creates a team with one, and a binding that restarts it. */
import type { AnyObject } from "./api.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "./kinds.ts";
import { secretText } from "./leak-detector.ts";
import { createNamespace, type TestNamespace, usualRules } from "./test-namespace.ts";
import { Workloads } from "./workloads.ts";

export const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

export const CLUSTER: Kind = {
  group: "fields.example.com",
  kind: "Cluster",
  plural: "clusters",
  spec: {
    type: "object",
    properties: {
      instances: { type: "integer" },
      // Server-side apply can only replace such a map as a whole.
      podAnnotations: {
        type: "object",
        "x-kubernetes-map-type": "atomic",
        additionalProperties: { type: "string" },
      },
      restartToken: { type: "string" },
      settings: open,
      pods: {
        type: "object",
        properties: {
          serviceAccountName: { type: "string" },
          containers: { type: "array", items: open },
        },
      },
      shards: { type: "array", items: { type: "object", properties: { restart: { type: "string" } } } },
    },
  },
  status: open,
};

export interface Site {
  team: TestNamespace;
  shop: Workloads;
  path: string;
  rotate(): Promise<void>;
  /** Fetches the workload. */
  workload(): Promise<AnyObject>;
}

/** Creates a team with a Secret, a workload and a binding that restarts it by that path, all called `main`. */
export async function newSite(kind: Kind, spec: object, restartPath: string, stamp: object = {}): Promise<Site> {
  const team = await createNamespace({ rules: [...usualRules, mayWrite(kind)] });
  await installKind(team.api, kind);
  return addSite(team, "main", kind, spec, restartPath, stamp);
}

/** Creates the same in an existing team, under another name. */
export async function addSite(
  team: TestNamespace,
  name: string,
  kind: Kind,
  spec: object,
  restartPath: string,
  stamp: object = {},
): Promise<Site> {
  const rotate = () => team.secret(name, { token: secretText("token") });
  await rotate();
  await createObject(team.api, kind, name, spec, team.namespace);
  const target = { apiVersion: apiVersionOf(kind), kind: kind.kind, name, restartPath };
  await team.bind(name, { sources: [{ secret: { name } }], rollout: { targets: [target], stamp } });
  const path = objectPath(kind, team.namespace, name);
  return { team, shop: new Workloads(team), path, rotate, workload: () => team.api.get(path) };
}
