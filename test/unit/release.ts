/** HarborClusters that a binding wrote or created, for tests of their release, with the events and log lines that it causes. */
import type { SecretBinding, Target, TargetStatus } from "../../src/api/binding.ts";
import { Installation } from "../../src/api/installation.ts";
import { CREATED_BY } from "../../src/api/manifest.ts";
import { FieldPath } from "../../src/apimachinery/field-path.ts";
import type { JsonObject } from "../../src/apimachinery/objects.ts";
import { NAMESPACES, SERVICE_ACCOUNTS } from "../../src/apimachinery/resources.ts";
import { Discovery } from "../../src/kube/discovery.ts";
import { serviceAccountIdentity } from "../../src/kube/identity.ts";
import { Schemas } from "../../src/kube/schemas.ts";
import type { EventMessage } from "../../src/observability/events.ts";
import type { SyncContext } from "../../src/targets/dependencies.ts";
import { Rejections } from "../../src/targets/rejections.ts";
import type { ReleaseDependencies } from "../../src/targets/release.ts";
import { FakeApiServer } from "./api-server.ts";
import { entry, liveObject, OURS } from "./apply/managed.ts";
import { contextOf, dependenciesOf } from "./fakes.ts";
import { bindingOf, recordOf as syncedRecordOf } from "./objects.ts";
import { HARBORS } from "./resources.ts";

export const ACCOUNT = serviceAccountIdentity("registry", "inlay");
/** The value at `PATH`. No event and no log line may contain it. */
export const VALUE = "QXZJ0123456789";
export const PATH = "spec.s3.key";
/** A path that other managers own. */
export const OTHER = "spec.s3.region";

/** An entry of the binding's status. */
export const recordOf = (name: string, more: Partial<TargetStatus> = {}): TargetStatus =>
  syncedRecordOf({ name, uid: "uid-1", paths: [PATH], ...more });
export const removed = (name: string, more: Partial<TargetStatus> = {}) =>
  recordOf(name, { onRelease: "Remove", ...more });

export const bindingWith = (targets: Target[] = [], records?: TargetStatus[]): SecretBinding =>
  bindingOf({ metadata: { uid: "uid-of-binding" }, spec: { targets }, status: records && { targets: records } });

export class ReleaseFixture {
  readonly cluster = new FakeApiServer();
  /** As `<type> <reason>: <note>`. */
  readonly events: string[] = [];
  readonly logged: unknown[] = [];
  readonly deps: ReleaseDependencies;
  /** Whether the kind of bindings is being deleted. */
  isKindDeleted: boolean | undefined = false;

  constructor() {
    const { cluster } = this;
    for (const name of ["registry", "team"]) cluster.put(NAMESPACES, { metadata: { name } });
    cluster.put(SERVICE_ACCOUNTS, { metadata: { namespace: "registry", name: "inlay" } });
    const log = (...line: unknown[]) => this.logged.push(line);
    const record = (_: SecretBinding, { type, reason, note }: EventMessage) =>
      this.events.push(`${type} ${reason}: ${note}`);
    this.deps = dependenciesOf({
      kindDeletions: { isOngoing: async () => this.isKindDeleted },
      client: cluster.client,
      discovery: new Discovery(cluster.transport),
      schemas: new Schemas(cluster.transport),
      installation: new Installation({ ownNamespace: "inlay-system" }),
      rejections: new Rejections(),
      events: { record, recordOn: (_, { type, reason, note }) => void this.events.push(`${type} ${reason}: ${note}`) },
      log: { info: log, warn: log },
    });
  }

  /** Adds one in which other managers own a field too. */
  put(name: string, owned = [entry(OURS, [PATH])], metadata: JsonObject = {}, resource = HARBORS): void {
    const live = liveObject({ spec: { s3: { key: VALUE, region: "x" } } }, [...owned, entry("kubectl", [OTHER])]);
    this.cluster.put(resource, { ...live, metadata: { ...live.metadata, name, ...metadata } });
  }

  /** Adds one that the binding created. */
  putMade(name: string, resource = HARBORS): void {
    this.put(name, undefined, { labels: { [CREATED_BY]: "uid-of-binding" } }, resource);
  }

  valueOf(name: string, namespace?: string): unknown {
    return FieldPath.parse(PATH).get(this.cluster.get(HARBORS, name, namespace) ?? {});
  }

  managersOf(name: string): (string | undefined)[] {
    const { managedFields = [] } = this.cluster.get(HARBORS, name)?.metadata ?? {};
    return managedFields.map(({ manager }) => manager);
  }

  /** Marks the binding's namespace as being deleted. */
  endNamespace(): void {
    const metadata = { name: "registry", deletionTimestamp: "2026-01-01T00:00:00Z" };
    this.cluster.put(NAMESPACES, { metadata });
  }

  contextOf(binding: SecretBinding): SyncContext {
    return contextOf(this.deps, binding, ACCOUNT);
  }
}
