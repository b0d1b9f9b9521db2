/** Reports SecretGrants that don't count, by events: they have no status. */
import type { Limits } from "../../api/limits.ts";
import { BoundedMap } from "../../apimachinery/maps.ts";
import { apiVersionOf } from "../../apimachinery/objects.ts";
import { SECRET_GRANTS } from "../../apimachinery/resources.ts";
import type { ListedObject } from "../../cache/watcher.ts";
import type { EventMessage, EventRecorder } from "../../observability/events.ts";
import type { GrantIndex } from "../../sources/grant-index.ts";

const MAX_REMEMBERED = 1_000;

export class UncountedGrants {
  readonly #events: Pick<EventRecorder, "recordOn">;
  /** The uid of the grant that was reported last, by namespace and reason. */
  readonly #reported = new BoundedMap<string, string>(MAX_REMEMBERED);

  constructor(events: Pick<EventRecorder, "recordOn">) {
    this.#events = events;
  }

  /** Reports the newest grant that does not count, once. */
  report(namespace: string, { uncounted, tooLarge }: GrantIndex, { grantsPerNamespace: most }: Limits): void {
    const number = most + uncounted.length;
    const many = `namespace ${namespace} has ${number} SecretGrants, and only the oldest ${most} count; this one permits nothing; delete grants that are not needed, or ask the administrator of Inlay to raise limits.grantsPerNamespace`;
    this.#warn(namespace, newest(uncounted), "LimitExceeded", many);
    const large = "the spec has more than 64 KiB, so this SecretGrant permits nothing; split it into several grants";
    this.#warn(namespace, newest(tooLarge), "TooLarge", large);
  }

  #warn(namespace: string, grant: ListedObject | undefined, reason: EventMessage["reason"], note: string): void {
    if (grant === undefined) return;
    const { name, version } = grant;
    const { uid, resourceVersion } = version;
    const key = `${namespace} ${reason}`;
    if (this.#reported.get(key) === uid) return;
    this.#reported.set(key, uid);
    const metadata = { name, namespace, uid, resourceVersion };
    const regarding = { apiVersion: apiVersionOf(SECRET_GRANTS), kind: SECRET_GRANTS.kind, metadata };
    this.#events.recordOn(regarding, { type: "Warning", reason, action: "Grant", note });
  }
}

function newest(grants: readonly ListedObject[]): ListedObject | undefined {
  let last: ListedObject | undefined;
  for (const each of grants)
    if (last === undefined || (each.version.createdAt ?? 0) >= (last.version.createdAt ?? 0)) last = each;
  return last;
}
