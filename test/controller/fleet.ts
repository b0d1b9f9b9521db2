/**
 * Many bindings in one namespace, each with a pair of keys from its own Secret to its own HarborCluster. Rotates the pairs, and
 * checks the result.
 */
import assert from "node:assert/strict";
import type { AnyObject } from "./api.ts";
import { eventually } from "./eventually.ts";
import { foundIn, secretText } from "./leak-detector.ts";
import { requestsFor } from "./requests.ts";
import { harborTarget, type TestNamespace } from "./test-namespace.ts";

export class Fleet {
  readonly team: TestNamespace;
  readonly names: readonly string[];
  /** A barrier has other Secrets in the same namespace. */
  readonly #isOwn: (name: string) => boolean;
  /** The current pair of each binding. */
  readonly #current = new Map<string, { accesskey: string; regionendpoint: string }>();

  constructor(team: TestNamespace, count: number) {
    this.team = team;
    this.names = Array.from({ length: count }, (_, index) => `harbor-${index}`);
    const own = new Set(this.names);
    this.#isOwn = (name) => own.has(name);
  }

  /** Creates everything, and waits until all bindings are in sync. */
  async launch(withinMs = 30_000): Promise<void> {
    const { team, names } = this;
    await this.rotate();
    await Promise.all(names.map((name) => team.harbor(name)));
    await this.#untilAdmitted();
    await Promise.all(
      names.map((name) => {
        const fields = {
          accesskey: { from: { source: name, key: "access" } },
          regionendpoint: { from: { source: name, key: "endpoint" } },
        };
        return team.bind(name, { sources: [{ secret: { name } }], targets: [harborTarget(fields, { name })] });
      }),
    );
    await this.inStep(withinMs);
  }

  /**
   * Waits until the API server accepts a binding. After its start it answers 503 for up to 30 s: policies have SecretBinding as
   * their parameter, and it may list the kinds of CRDs only then.
   */
  async #untilAdmitted(): Promise<void> {
    const target = harborTarget({ accesskey: { from: { source: "bucket", key: "access" } } });
    const spec = { sources: [{ secret: { name: "bucket" } }], targets: [target] };
    const binding = { apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", metadata: { name: "probe" }, spec };
    const { api } = this.team;
    await eventually(() => api.dryRun.create(this.team.path("inlay.dev/v1alpha1", "secretbindings"), binding), 60_000);
  }

  /** Deletes all bindings, so that they do not affect later tests. */
  async disband(): Promise<void> {
    await this.team.api.delete(this.team.path("inlay.dev/v1alpha1", "secretbindings"));
  }

  /** Gives every Secret a new pair. */
  async rotate(names = this.names): Promise<void> {
    const written = await Promise.allSettled(
      names.map((name) => {
        const pair = { accesskey: secretText("access"), regionendpoint: secretText("endpoint") };
        this.#current.set(name, pair);
        return this.team.secret(name, { access: pair.accesskey, endpoint: pair.regionendpoint });
      }),
    );
    // If some writes fail, this waits for all others too, so that no write of this rotation follows one of the next.
    for (const each of written) if (each.status === "rejected") throw each.reason;
  }

  /** Waits until every target has its pair, and every binding is Synced. */
  async inStep(withinMs?: number): Promise<void> {
    await eventually(async () => assert.deepEqual(await this.behind(), []), withinMs);
    await eventually(async () => assert.deepEqual(await this.#unsaid(), []), withinMs);
  }

  /** The bindings that are not Synced yet. Asserts that no binding contains a value. */
  async #unsaid(): Promise<string[]> {
    const { items } = await this.team.api.get(this.team.path("inlay.dev/v1alpha1", "secretbindings"));
    assert.deepEqual(foundIn(JSON.stringify(items)), []);
    const said = items.filter(({ metadata, status }: AnyObject) => {
      const ready = status?.conditions?.find(({ type }: AnyObject) => type === "Ready");
      return ready?.reason === "Synced" && ready.observedGeneration === metadata.generation;
    });
    const names = new Set(said.map(({ metadata }: AnyObject) => metadata.name));
    return this.names.filter((name) => !names.has(name));
  }

  /** The targets without their current pair. */
  async behind(): Promise<string[]> {
    const pairs = await this.#pairs();
    return this.names.filter((name) => !isSame(pairs.get(name), this.#current.get(name)));
  }

  /** The targets with keys of two different pairs. */
  async torn(former: Fleet["pairs"]): Promise<string[]> {
    const now = await this.#pairs();
    return this.names.filter(
      (name) => !isSame(now.get(name), former.get(name)) && !isSame(now.get(name), this.#current.get(name)),
    );
  }

  /** The current pairs. */
  get pairs(): ReadonlyMap<string, object> {
    return new Map(this.#current);
  }

  /** The number of writes of each target since a mark. */
  async writesSince(mark: number): Promise<Map<string, number>> {
    const counts = new Map<string, number>();
    for (const { verb, resource, name, code } of await requestsFor(this.team, mark)) {
      if (verb === "patch" && resource === "goharbor.io/harborclusters" && code === 200 && this.#isOwn(name))
        counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    return counts;
  }

  /** The resourceVersions of all targets and bindings, which every change increases. */
  async versions(): Promise<string[]> {
    const { team } = this;
    const kinds = [
      team.path("goharbor.io/v1beta1", "harborclusters"),
      team.path("inlay.dev/v1alpha1", "secretbindings"),
    ];
    const lists = await Promise.all(kinds.map((path) => team.api.get(path)));
    return lists.flatMap(({ items }) =>
      items
        .filter(({ metadata }: AnyObject) => this.#isOwn(metadata.name))
        .map(({ kind, metadata }: AnyObject) => `${kind} ${metadata.name} ${metadata.resourceVersion}`),
    );
  }

  /** The generation of each target, which counts the changes of its spec. */
  async generations(): Promise<Map<string, number>> {
    const { items } = await this.team.api.get(this.team.path("goharbor.io/v1beta1", "harborclusters"));
    const own = items.filter(({ metadata }: AnyObject) => this.#isOwn(metadata.name));
    return new Map(own.map(({ metadata }: AnyObject) => [metadata.name, metadata.generation]));
  }

  async #pairs(): Promise<Map<string, object>> {
    const { items } = await this.team.api.get(this.team.path("goharbor.io/v1beta1", "harborclusters"));
    return new Map(
      items.map(
        (harbor: { metadata: { name: string }; spec: { storage: { spec: { s3: Record<string, string> } } } }) => {
          const { accesskey, regionendpoint } = harbor.spec.storage.spec.s3;
          return [harbor.metadata.name, { accesskey, regionendpoint }];
        },
      ),
    );
  }
}

const isSame = (a: object | undefined, b: object | undefined) => JSON.stringify(a) === JSON.stringify(b);
