/** A kind with a group of its own, whose versions have different fields and the conversion None, as Strimzi 0.51 has. */
import assert from "node:assert/strict";
import type { AnyObject } from "./api.ts";
import { eventually } from "./eventually.ts";
import { secretText } from "./leak-detector.ts";
import { createNamespace, type TestNamespace } from "./test-namespace.ts";

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const text = { type: "string" };
const object = (properties: object, more: object = {}) => ({ type: "object", properties, ...more });

/** The fields of all versions, and the fields of v1beta2 only. */
const COMMON = { token: text, other: text, restart: text };
export const v1 = { name: "v1", spec: { ...COMMON, kafka: object({ version: text }) } };
export const v1beta2 = {
  name: "v1beta2",
  spec: {
    ...COMMON,
    kafka: object({ version: text, replicas: { type: "integer" }, storage: object({ size: text }) }),
  },
};
/** With a field that v1beta2 does not have. */
export const v1modern = { ...v1, spec: { ...v1.spec, roles: { type: "array", items: text } } };

const keeps = { "x-kubernetes-preserve-unknown-fields": true };
const part = object({ data: text });
const none = { ...text, default: "x" };
/**
 * The specs of two versions with different fields of the same names, and a spec that `other` shows and `own` prunes or defaults.
 */
export const PRUNING = {
  own: {
    ...v1.spec,
    part,
    none,
    open: object({ a: object({}) }, keeps),
    within: { type: "object", ...keeps, "x-kubernetes-embedded-resource": true },
  },
  other: {
    ...v1.spec,
    part: { ...part, "x-kubernetes-embedded-resource": true },
    none: { ...none, nullable: true },
    open: { type: "object", ...keeps },
    within: { type: "object", ...keeps },
    gone: object({ on: { type: "boolean" } }, { default: { on: true } }),
  },
  object: {
    gone: {},
    none: null,
    open: { a: { b: "x" } },
    part: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data: "x" },
    within: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", more: "x" } },
  },
};

/** With `hasStatus`, the kind has a status subresource, and therefore a generation. */
type Version = { name: string; spec: object; hasStatus?: true };

/** The fields of `spec.kafka` in v1beta2. v1 does not have `replicas` and `storage`. */
export const KAFKA = { version: "4.1", replicas: 3, storage: { size: "1Gi" } };

let count = 0;

export class Versioned {
  readonly team: TestNamespace;
  readonly group = `versioned-${++count}.example.com`;
  value = "";

  constructor(team: TestNamespace) {
    this.team = team;
  }

  /** The kind, and a namespace for its objects. */
  static async install(versions: Version[]): Promise<Versioned> {
    const one = new Versioned(await createNamespace({ rules: [] }));
    await one.install(versions);
    return one;
  }

  /** Installs the kind, and gives the account all permissions for it. The last version is the stored one. */
  async install(versions: Version[], role = "versioned"): Promise<void> {
    const { team } = this;
    const verbs = ["get", "list", "watch", "patch", "create", "delete"];
    await team.grant([{ apiGroups: [this.group], resources: ["items"], verbs }], { role });
    await team.grant([{ apiGroups: [""], resources: ["secrets"], verbs }], { role: `${role}-secrets` });
    await team.api.create(CRDS, {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `items.${this.group}` },
      spec: {
        group: this.group,
        scope: "Namespaced",
        names: { kind: "Item", listKind: "ItemList", plural: "items", singular: "item" },
        versions: served(versions),
      },
    });
    await Promise.all(versions.map(({ name }) => eventually(() => team.api.get(this.path(name)))));
    await this.rotate();
  }

  /** Waits until the API server publishes the schemas of v1 and v1beta2, which follows some time after it serves them. */
  published(): Promise<void> {
    return eventually(async () => {
      const { paths } = await this.team.api.get("/openapi/v3");
      for (const version of ["v1", "v1beta2"]) assert.ok(paths[`apis/${this.group}/${version}`]);
    });
  }

  /** Changes the versions of the kind, and waits until the API server serves the last. */
  async become(versions: Version[]): Promise<void> {
    await this.team.api.merge(`${CRDS}/items.${this.group}`, { spec: { versions: served(versions) } });
    await eventually(() => this.team.api.get(this.path(versions.at(-1)?.name)));
  }

  async make(name: string, spec: object, version = "v1beta2", metadata: object = {}): Promise<void> {
    const item = { apiVersion: `${this.group}/${version}`, kind: "Item", metadata: { name, ...metadata }, spec };
    await eventually(() => this.team.api.create(this.path(version), item));
  }

  async bind(name: string, target: object = {}, more: object = {}): Promise<void> {
    await this.team.bind(name, this.spec(name, target, more));
  }

  spec(name: string, target: object = {}, more: object = {}): object {
    const fields = [{ path: "spec.token", from: { source: "bucket", key: "token" } }];
    const item = { apiVersion: `${this.group}/v1`, kind: "Item", name, fields, ...target };
    return { sources: [{ secret: { name: "bucket" } }], targets: [item], ...more };
  }

  /** Gives the Secret another value. */
  async rotate(): Promise<void> {
    this.value = secretText("token");
    await this.team.secret("bucket", { token: this.value });
  }

  path(version = "v1beta2", name = ""): string {
    return `${this.team.path(`${this.group}/${version}`, "items")}${name && `/${name}`}`;
  }

  /** The object in the version that shows all of its fields. */
  get(name: string): Promise<AnyObject> {
    return this.team.api.get(this.path("v1beta2", name));
  }

  /** Waits until the object has these fields in its spec, and all its other fields. */
  async until(name: string, more: object): Promise<AnyObject> {
    return eventually(async () => {
      const found = await this.get(name);
      assert.deepEqual(found.spec, { kafka: KAFKA, ...more });
      return found;
    });
  }
}

function served(versions: readonly Version[]): object[] {
  return versions.map(({ name, spec, hasStatus }, index) => ({
    name,
    served: true,
    storage: index === versions.length - 1,
    schema: { openAPIV3Schema: object({ spec: "type" in spec ? spec : object(spec) }) },
    ...(hasStatus && { subresources: { status: {} } }),
  }));
}
