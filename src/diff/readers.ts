/** What all bindings of one `inlay diff` share: the connection as the user, lists, schemas, and reads of sources, each sent once. */
import { getOrInsert } from "../apimachinery/maps.ts";
import type { KubeObject, ObjectRef } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import { SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import { LiveLists } from "../explain/live-lists.ts";
import { Reader, SELF } from "../explain/reading.ts";
import { accountNotFound } from "../kube/access-error.ts";
import { ApiError, isNotFound } from "../kube/api-error.ts";
import { Client, pathOf } from "../kube/client.ts";
import { Discovery } from "../kube/discovery.ts";
import { describeIdentity, type Identity, serviceAccountIdentity } from "../kube/identity.ts";
import { MarkPermission } from "../kube/request-budget.ts";
import { Schemas } from "../kube/schemas.ts";
import type { Transport } from "../kube/transport.ts";
import { WriteVersions } from "../kube/write-versions.ts";
import { YOU } from "./difference.ts";

export interface ActingAs {
  readonly identity: Identity;
  /** In words: the account, or "you". */
  readonly text: string;
  /** The ServiceAccount does not exist, as far as the user may know. */
  readonly account: Problem | undefined;
}

export class Readers {
  readonly transport: Transport;
  readonly client: Client;
  readonly reader: Reader;
  readonly lists: LiveLists;
  readonly schemas: Schemas;
  readonly versions: WriteVersions;
  readonly discovery: Discovery;
  readonly #marks: MarkPermission;
  readonly #reads = new Map<string, Promise<KubeObject>>();
  readonly #acting = new Map<string, Promise<ActingAs>>();

  constructor(transport: Transport) {
    this.transport = transport;
    this.client = new Client(transport);
    this.#marks = new MarkPermission(this.client);
    this.reader = new Reader(transport);
    this.lists = new LiveLists(transport);
    this.schemas = new Schemas(transport);
    this.versions = new WriteVersions(transport, this.schemas, true);
    this.discovery = new Discovery(transport, (resource) => this.versions.wholeOf(resource));
  }

  /** Reads each object once for each identity. `fromFiles` replaces objects of the cluster. */
  sources(fromFiles: (ref: ObjectRef) => KubeObject | undefined): Pick<Client, "get"> {
    return {
      get: async <T>(identity: Identity, ref: ObjectRef): Promise<T> => {
        const key = `${identity} ${pathOf(ref.resource, ref.namespace, ref.name)}`;
        const read = async () => fromFiles(ref) ?? this.client.get<KubeObject>(identity, ref);
        return structuredClone(await getOrInsert(this.#reads, key, read)) as T;
      },
    };
  }

  /** The account if it exists and the user may impersonate it, else the user. */
  actingAs(namespace: string, account: string): Promise<ActingAs> {
    return getOrInsert(this.#acting, `${namespace}/${account}`, () => this.#actingAs(namespace, account));
  }

  async #actingAs(namespace: string, name: string): Promise<ActingAs> {
    const ref = { resource: SERVICE_ACCOUNTS, namespace, name };
    const [mayImpersonate, accountExists] = await Promise.all([
      this.client.may(SELF, "impersonate", SERVICE_ACCOUNTS, namespace, name),
      this.exists(ref),
    ]);
    const own = serviceAccountIdentity(namespace, name);
    const account = accountExists ? undefined : accountNotFound(own);
    if (account !== undefined || !mayImpersonate) return { identity: SELF, account, text: YOU };
    return { identity: own, account, text: describeIdentity(own) };
  }

  /** Whether the user may set the mark with which Inlay names a binding in its requests. */
  mayMark(): Promise<boolean> {
    return this.#marks.isGranted();
  }

  /** Whether an object exists, as far as the user may know. */
  async exists(ref: ObjectRef): Promise<boolean> {
    try {
      await this.client.get(SELF, ref);
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      if (error instanceof ApiError && error.status === 403) return true;
      throw error;
    }
  }
}
