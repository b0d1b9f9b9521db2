/** Kinds that tests make up: a schema of their spec comes in, a CRD that the API server serves goes out. */
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
  /** That of status, for a kind that has one as a subresource. */
  status?: object;
  /** That of status, for a kind that has one as a field alone. */
  plainStatus?: object;
}

const REMOVED_WITHIN_MS = 60_000;
const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

export const apiVersionOf = ({ group }: Kind): string => `${group}/v1`;

/** Makes the CRD, unless it is there, and waits until its kind is served. */
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

/** Deletes the CRD, and with it all objects of the kind, and waits until the kind is not served any more. */
export async function removeKind(api: Api, kind: Kind): Promise<void> {
  await api.delete(crdPath(kind));
  const isNotServed = ({ status, body }: RequestFailed) => status === 404 && body.reason === undefined;
  await eventually(() => assert.rejects(api.get(objectPath(kind)), isNotServed));
}

/** Makes an object of a kind, in a namespace where it has one. */
export async function createObject(
  api: Api,
  kind: Kind,
  name: string,
  spec: object,
  namespace?: string,
): Promise<AnyObject> {
  const object = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { name }, spec };
  // A kind is listed a moment before objects of it can be made.
  return eventually(() => api.create(objectPath(kind, namespace), object));
}

/** The path of a kind's objects, or of one of them. */
export function objectPath(kind: Kind, namespace?: string, name?: string): string {
  const where = namespace === undefined ? "" : `/namespaces/${namespace}`;
  return `/apis/${apiVersionOf(kind)}${where}/${kind.plural}${name === undefined ? "" : `/${name}`}`;
}

/** The right to read and write a kind. */
export function mayWrite({ group, plural }: Kind): Rule {
  return { apiGroups: [group], resources: [plural], verbs: ["get", "list", "watch", "patch"] };
}

const crdPath = ({ group, plural }: Kind) => `${crds}/${plural}.${group}`;

/** The kinds that a control plane has for all test files. */
export class Kinds {
  readonly #api: Api;
  readonly #paths: ReadonlySet<string>;

  private constructor(api: Api, paths: readonly string[]) {
    this.#api = api;
    this.#paths = new Set(paths);
  }

  /** Takes note of the CRDs that there are. */
  static async of(api: Api): Promise<Kinds> {
    return new Kinds(api, await crdPaths(api));
  }

  /** Deletes the CRDs that a file added, with all objects of those kinds, and waits until they are gone. */
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
