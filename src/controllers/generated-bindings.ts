/**
 * The bindings that there have to be in a namespace for Reloader's annotations come in; they are made, put right and deleted,
 * as the account for that, and when to look again goes out. One that is as it has to be costs no request.
 */

import { bindingKey, type SecretBinding } from "../api/binding.ts";
import { claimsToBeMade, isLabelled, RELOADER_ACCOUNT } from "../api/reloader.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { JsonObject, KubeObject, ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SECRET_BINDINGS } from "../apimachinery/resources.ts";
import { refusal } from "../kube/access-error.ts";
import { isStatus } from "../kube/api-error.ts";
import type { Identity } from "../kube/identity.ts";
import type { Parts } from "../parts.ts";
import { sideBySide } from "../workqueue/map-concurrent.ts";
import type { WorkResult } from "../workqueue/work-queue.ts";
import { isAsMade, isFormer, type Made, metadataOf } from "./reloader/bindings.ts";

const MANAGER = RELOADER_ACCOUNT;
const AGAIN: WorkResult = { retry: "backoff" };
const DONE: WorkResult = { retry: "never" };

/** Somebody else's, though it has a name that a binding of ours would have. */
export const isOthers = ({ metadata, spec }: SecretBinding): boolean =>
  !isLabelled(metadata.labels) && spec.serviceAccountName !== RELOADER_ACCOUNT;

/** Why nothing is done for one that was made before the switch was off. */
export function leftOver({ metadata: { namespace = "", name } }: SecretBinding): Problem {
  const what = "it was made of Reloader's annotations, which nothing is done for here any more";
  return new Problem("OutOfScope", `${what}; delete it with: kubectl delete secretbinding ${name} -n ${namespace}`);
}

export class MadeBindings {
  readonly #parts: Pick<Parts, "client" | "contention" | "events" | "log" | "again">;
  readonly #identity: Identity;
  /** By the uid of a binding that we wrote, and that the API server keeps otherwise: what was written, and what became of it. */
  readonly #kept = new Map<string, { written: SecretBinding["spec"]; kept: SecretBinding["spec"][] }>();
  /** By namespace, what was told of each binding that could not be made. */
  readonly #told = new Map<string, Map<string, string>>();

  constructor(parts: Pick<Parts, "client" | "contention" | "events" | "log" | "again">, identity: Identity) {
    this.#parts = parts;
    this.#identity = identity;
  }

  /** Another version's CRD has other defaults, and a webhook may have its own: what became of our own write is as it was made. */
  isAsMade(binding: SecretBinding, made: Made): boolean {
    const { written, kept } = this.#kept.get(binding.metadata.uid) ?? {};
    return isAsMade(binding, made, sameJson(written, made.spec) ? kept : undefined);
  }

  gone({ metadata }: SecretBinding): void {
    this.#kept.delete(metadata.uid);
  }

  /** `there` are all bindings of the namespace, by their names; of workloads of `unseen` kinds it is not known which there are. */
  async sync(
    namespace: string,
    made: ReadonlyMap<string, Made>,
    there: ReadonlyMap<string, SecretBinding>,
    unseen: readonly string[],
  ): Promise<WorkResult> {
    const isUnseen = ({ metadata }: SecretBinding) =>
      metadata.ownerReferences?.some(({ kind = "" }) => unseen.includes(kind)) === true;
    const others = [...there.values()].filter(
      (each) => claimsToBeMade(each) && !made.has(each.metadata.name) && !isUnseen(each),
    );
    const told = new Map<string, string>();
    // Where a quota is used up, only that makes room. What can't be done keeps nothing else back.
    const [deleted] = await Promise.allSettled([sideBySide(others, (each) => this.#delete(each))]);
    const [wanted] = await Promise.allSettled([
      sideBySide([...made.values()], (each) => this.#putRight(namespace, each, there.get(each.name), told)),
    ]);
    this.forget(namespace);
    if (told.size > 0) this.#told.set(namespace, told);
    if (deleted.status === "rejected") throw deleted.reason;
    if (wanted.status === "rejected") throw wanted.reason;
    return soonest([...deleted.value, ...wanted.value]);
  }

  forget(namespace: string): void {
    this.#told.delete(namespace);
  }

  async #putRight(
    namespace: string,
    made: Made,
    there: SecretBinding | undefined,
    told: Map<string, string>,
  ): Promise<WorkResult> {
    const { client, contention } = this.#parts;
    const { spec } = made;
    const ref = { resource: SECRET_BINDINGS, namespace, name: made.name };
    if (there === undefined) {
      const metadata = metadataOf(made);
      try {
        return await settled(client.make(this.#identity, ref, { metadata, spec } as unknown as JsonObject, MANAGER));
      } catch (error) {
        const problem = refusal(error, { identity: this.#identity, ref, verbs: ["create"] }, "create");
        if (problem.reason !== "Unavailable") this.#tell(namespace, made, problem, told);
        throw problem;
      }
    }
    if (this.isAsMade(there, made) || isOthers(there) || isGoing(there)) return DONE;
    // What it wrote as another one that it was, that one's account releases; and another workload has its own beginning.
    if ((there.status?.targets ?? []).length > 0 || isFormer(there, made)) return this.#delete(there);
    const fight = `reloader/${there.metadata.uid}`;
    const inputs = JSON.stringify(spec);
    const wait = contention.mayWrite(fight, inputs, []);
    if (wait > 0) return { retry: "after", ms: wait };
    const metadata = metadataOf(made, there.metadata) as SecretBinding["metadata"];
    return settled(
      client.replace(this.#identity, ref, { ...there, metadata, spec }, MANAGER).then((now) => {
        contention.wrote(fight, inputs);
        this.#note(there, now, made);
      }),
    );
  }

  #note(there: SecretBinding, now: SecretBinding, made: Made): void {
    const { uid, resourceVersion } = now.metadata;
    // While one CRD takes the place of another, streams may show the same version by the former one's defaults.
    const same = there.metadata.resourceVersion === resourceVersion ? [there.spec] : [];
    const kept = [now.spec, ...same].filter((spec) => !sameJson(spec, made.spec));
    if (kept.length === 0) this.#kept.delete(uid);
    else this.#kept.set(uid, { written: made.spec, kept });
    const binding = bindingKey(now);
    // If that changed nothing, no stream tells of it.
    if (this.isAsMade(now, made)) this.#parts.again(binding);
    else {
      const what = "is not kept as it was made of Reloader's annotations, and does nothing; a webhook may change it";
      this.#parts.log.warn({ binding }, what);
    }
  }

  /** Once for each that is in the way. */
  #tell(namespace: string, { name: binding, owner }: Made, { message }: Problem, told: Map<string, string>): void {
    const { name, uid } = owner;
    const note = `binding ${binding} could not be made, so that nothing restarts by it: ${message}`;
    if (this.#told.get(namespace)?.get(binding) !== note)
      this.#parts.events.recordOn(
        { ...owner, metadata: { name, namespace, uid } },
        { type: "Warning", reason: "BindingNotMade", action: "Reload", note },
      );
    told.set(binding, note);
  }

  async #delete(binding: SecretBinding): Promise<WorkResult> {
    if (isGoing(binding)) return DONE;
    return settled(this.#parts.client.delete(this.#identity, refOf(binding), binding as unknown as KubeObject));
  }
}

const isGoing = ({ metadata }: SecretBinding) => metadata.deletionTimestamp !== undefined;

const refOf = ({ metadata: { namespace = "", name } }: SecretBinding): ObjectRef => ({
  resource: SECRET_BINDINGS,
  namespace,
  name,
});

/** Somebody who was there first brings it up again. */
async function settled(write: Promise<unknown>): Promise<WorkResult> {
  try {
    await write;
    return DONE;
  } catch (error) {
    if (isStatus(error, 404) || isStatus(error, 409)) return AGAIN;
    throw error;
  }
}

function soonest(results: readonly WorkResult[]): WorkResult {
  if (results.some(({ retry }) => retry === "backoff")) return AGAIN;
  const waits = results.flatMap((each) => (each.retry === "after" ? [each.ms] : []));
  return waits.length === 0 ? DONE : { retry: "after", ms: Math.min(...waits) };
}
