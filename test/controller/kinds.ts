/** Kinds that tests define by the schema of their spec, installed as CRDs. */
import assert from "node:assert/strict";
import type { AnyObject, Api, RequestFailed } from "./api.ts";
import { eventually } from "./eventually.ts";
import type { Rule } from "./test-namespace.ts";

export interface Kind {
  group: string;
  kind: string;
  plural: string;
  scope?: "Namespaced" | "Cluster";
  /** The OpenAPI schema of spec. */
  spec: object;
  /** The schema of status, for a kind with the status subresource. */
  status?: object;
  /** The schema of status, for a kind with status as an ordinary field. */
  plainStatus?: object;
}

const REMOVED_WITHIN_MS = 60_000;
const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

export const apiVersionOf = ({ group }: Kind): string => `${group}/v1`;

/** Creates the CRD unless it exists, and waits until the kind is served. */
export async function installKind(api: Api, kind: Kind): Promise<void> {
  const { group, plural, scope = "Namespaced", spec, status, plainStatus } = kind;
  if (await api.find(crdPath(kind))) return;
  const stored = status ?? plainStatus;
  const schema = { openAPIV3Schema: { type: "object", properties: { spec, ...(stored && { status: stored }) } } };
  const subresources = status && { subresources: { status: {} } };
  await api.create(crds, {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope,
      names: { kind: kind.kind, listKind: `${kind.kind}List`, plural, singular: kind.kind.toLowerCase() },
      versions: [{ name: "v1", served: true, storage: true, schema, ...subresources }],
    },
  });
  await eventually(async () => assert.ok(await api.find(objectPath(kind))));
  await eventually(() => assertPublished(api, kind), 30_000);
}

/** The API server publishes a kind's schema some time after it serves the kind. */
async function assertPublished(api: Api, kind: Kind): Promise<void> {
  const { paths } = await api.get("/openapi/v3");
  const address = paths[`apis/${apiVersionOf(kind)}`]?.serverRelativeURL;
  assert.ok(address, `${kind.group} is not published yet`);
  assert.match(JSON.stringify(await api.get(address)), new RegExp(`"kind":"${kind.kind}"`));
}

/** Deletes the CRD and all its objects, and waits until the kind is no longer served. */
export async function removeKind(api: Api, kind: Kind): Promise<void> {
  await api.delete(crdPath(kind));
  const isNotServed = ({ status, body }: RequestFailed) => status === 404 && body.reason === undefined;
  await eventually(() => assert.rejects(api.get(objectPath(kind)), isNotServed));
}

/** Creates an object of a kind, in a namespace if the kind has one. */
export async function createObject(
  api: Api,
  kind: Kind,
  name: string,
  spec: object,
  namespace?: string,
): Promise<AnyObject> {
  const object = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { name }, spec };
  // The API server lists a kind a moment before it accepts objects of it.
  return eventually(() => api.create(objectPath(kind, namespace), object));
}

/** The path of a kind's collection, or of one object. */
export function objectPath(kind: Kind, namespace?: string, name?: string): string {
  const where = namespace === undefined ? "" : `/namespaces/${namespace}`;
  return `/apis/${apiVersionOf(kind)}${where}/${kind.plural}${name === undefined ? "" : `/${name}`}`;
}

/** The permission to read and write a kind. */
export function mayWrite({ group, plural }: Kind): Rule {
  return { apiGroups: [group], resources: [plural], verbs: ["get", "list", "watch", "patch"] };
}

const crdPath = ({ group, plural }: Kind) => `${crds}/${plural}.${group}`;

/** The kinds of a control plane that all test files share. */
export class Kinds {
  readonly #api: Api;
  readonly #paths: ReadonlySet<string>;

  private constructor(api: Api, paths: readonly string[]) {
    this.#api = api;
    this.#paths = new Set(paths);
  }

  /** Records the existing CRDs. */
  static async of(api: Api): Promise<Kinds> {
    return new Kinds(api, await crdPaths(api));
  }

  /** Deletes the CRDs that a file added, with all their objects, and waits until they are gone. */
  async removeOthers(): Promise<void> {
    const others = (await crdPaths(this.#api)).filter((path) => !this.#paths.has(path));
    await Promise.all(others.map((path) => this.#api.remove(path)));
    await eventually(async () => {
      const left = (await crdPaths(this.#api)).filter((path) => others.includes(path));
      assert.deepEqual(left, []);
    }, REMOVED_WITHIN_MS);
  }
}

async function crdPaths(api: Api): Promise<string[]> {
  const { items } = await api.get(crds);
  return items.map(({ metadata }: AnyObject) => `${crds}/${metadata.name}`);
}
