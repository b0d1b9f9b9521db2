/**
 * What a binding reads of other namespaces comes in; whether a SecretGrant there lets it goes out. Streams tell when to look
 * and what may be read at all; each value that is read is let through by the grant as it stands after that, so that none
 * passes that came when the grant was gone.
 */

import type { SecretBinding, TargetStatus } from "../api/binding.ts";
import type { SecretGrant } from "../api/secret-grant.ts";
import { describeObject, type KubeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { type MissingPolicy, MissingValue, Problem } from "../apimachinery/problem.ts";
import { NAMESPACES, SECRET_GRANTS } from "../apimachinery/resources.ts";
import type { Member, Streams } from "../cache/informers.ts";
import type { Collection } from "../cache/subscription.ts";
import { attempt, READ_VERBS, streamRefusal } from "../kube/access-error.ts";
import type { Client } from "../kube/client.ts";
import { type Access, findObject } from "../kube/get.ts";
import { CONTROLLER } from "../kube/identity.ts";
import type { LiveSource } from "../transform/live-source.ts";
import type { Plan } from "../transform/plan-types.ts";
import { type Asker, asksWhere, goneWith, lets, mayLet, notGranted } from "./grant-rules.ts";

type Spec = SecretGrant["spec"];

interface Grant {
  name: string;
  version: string;
  spec: Spec;
}

export interface Consent {
  asker: Asker;
  /** What has to be watched to know. */
  dependencies: Collection[];
  /** Changes with all that the streams show of it. */
  state: string;
  /** The grants that may let the binding read a source, or why they can't be seen. Undefined: it takes none. */
  grantsFor(ref: ObjectRef): readonly Grant[] | Problem | undefined;
}

export function consentOf(
  streams: Streams,
  key: string,
  { metadata, spec: { serviceAccountName } }: SecretBinding,
  sources: readonly ObjectRef[],
): Consent {
  const asker: Asker = { namespace: metadata.namespace as string, account: serviceAccountName };
  const dependencies: Collection[] = [];
  const shown = (collection: Collection): readonly Member[] | Problem => {
    dependencies.push(collection);
    const seen = streams.members(key, collection);
    if (seen.phase !== "failed") return seen.members;
    return streamRefusal(seen.error, { identity: collection.identity, ref: collection, verbs: READ_VERBS }, "watch");
  };
  const standings = new Map<ObjectRef, readonly Grant[] | Problem>();
  for (const ref of sources) {
    if (ref.namespace === undefined || ref.namespace === asker.namespace) continue;
    const members = shown(grantsIn(ref.namespace));
    standings.set(ref, members instanceof Problem ? members : members.map(grantOf).filter(maySay(asker, ref)));
  }
  const byLabels = [...standings].flatMap(([ref, grants]) =>
    !(grants instanceof Problem) && grants.some(({ spec }) => asksWhere(spec)) ? [ref] : [],
  );
  const home = byLabels.length > 0 ? shown(namespaceNamed(asker.namespace)) : [];
  // Whom labels let in that nobody follows would stay in.
  if (home instanceof Problem) for (const ref of byLabels) standings.set(ref, home);
  const state = [...standings.values()].map((each) =>
    each instanceof Problem ? each.message : each.map(({ name, version }) => `${name}/${version}`).join(" "),
  );
  const versions = home instanceof Problem ? [] : home.map(({ version }) => version.resourceVersion);
  return { asker, dependencies, state: [...state, ...versions].join(), grantsFor: (ref) => standings.get(ref) };
}

/** Reads a source by `read`, unless it is in another namespace and no grant there lets the binding. */
export async function readGranted(
  client: Client,
  consent: Consent,
  ref: ObjectRef,
  policy: MissingPolicy,
  read: () => Promise<LiveSource | Problem>,
): Promise<LiveSource | Problem> {
  const grants = consent.grantsFor(ref);
  if (grants === undefined) return read();
  if (grants instanceof Problem) return grants;
  if (grants.length === 0) return refused(ref, notGranted(consent.asker, ref, policy));
  const source = await read();
  if (source instanceof Problem || source.kind === "absent") return source;
  const place = findObject(own(client, { resource: NAMESPACES, name: ref.namespace as string }));
  const standing = letsNow(client, consent.asker, ref, source.labels.reveal(), grants);
  const now = await attempt(Promise.all([place, standing]));
  if (now instanceof Problem) return now;
  const [there, by] = now;
  if (there === undefined || isGoing(there)) return refused(ref, goneWith(ref, policy));
  if (by === undefined) return refused(ref, notGranted(consent.asker, ref, policy));
  // What is granted anew is news, though the source is the same.
  return { ...source, version: `${source.version} ${by}` };
}

/** The versions of what lets the binding read an object with these labels at this moment; undefined if nothing does. */
async function letsNow(
  client: Client,
  asker: Asker,
  asked: ObjectRef,
  object: Readonly<Record<string, string>>,
  grants: readonly Grant[],
): Promise<string | undefined> {
  const byLabels = grants.some(({ spec }) => asksWhere(spec));
  const home = byLabels ? await findObject(own(client, { resource: NAMESPACES, name: asker.namespace })) : undefined;
  const labels = { namespace: home && (home.metadata.labels ?? {}), object };
  for (const { name } of grants.filter(({ spec }) => lets(spec, asker, asked, labels))) {
    const ref = { resource: SECRET_GRANTS, namespace: asked.namespace as string, name };
    const grant = await findObject<SecretGrant & KubeObject>(own(client, ref));
    if (grant !== undefined && !isGoing(grant) && lets(grant.spec, asker, asked, labels))
      return [grant, home].map((each) => `${each?.metadata.uid}/${each?.metadata.resourceVersion}`).join();
  }
  return undefined;
}

/**
 * Values that were copied by a grant that is gone are known: status says so for as long as nobody grants them again. What
 * stands in a field was read of what the spec names now only if that was so before.
 */
export function withWithdrawn(
  plan: Plan,
  { metadata, status }: SecretBinding,
  { paths = [], acquiring = [], reason }: TargetStatus,
): Plan {
  const isNew = status?.observedGeneration !== metadata.generation || reason === "NotGranted";
  const copied = isNew ? [] : [...paths, ...acquiring];
  const leftOut = plan.leftOut.map(({ path, why }) => {
    const isWithdrawn = why.reason === "NotGranted" && (reason === "GrantWithdrawn" || copied.includes(String(path)));
    if (!isWithdrawn) return { path, why };
    const message = `the grant for what was copied here was withdrawn, so rotate those values; ${why.message}`;
    return { path, why: new MissingValue("GrantWithdrawn", message, why.policy) };
  });
  return { ...plan, leftOut };
}

/** As the controller itself. */
const own = (client: Client, ref: ObjectRef): Access => ({ client, identity: CONTROLLER, ref, verbs: READ_VERBS });

const isGoing = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;

function refused(ref: ObjectRef, problem: MissingValue): LiveSource {
  const description = describeObject(ref.resource.kind, ref.namespace, ref.name);
  return { kind: "absent", description, version: problem.reason, policy: problem.policy, problem };
}

const maySay =
  (asker: Asker, ref: ObjectRef) =>
  ({ spec }: Grant) =>
    mayLet(spec, asker, ref);

const grantOf = ({ name, version }: Member): Grant => ({
  name,
  version: version.resourceVersion,
  spec: version.spec as Spec,
});

const grantsIn = (namespace: string): Collection => ({
  identity: CONTROLLER,
  resource: SECRET_GRANTS,
  namespace,
  labels: "",
  names: undefined,
  whole: true,
});

const namespaceNamed = (name: string): Collection => ({
  identity: CONTROLLER,
  resource: NAMESPACES,
  namespace: undefined,
  labels: "",
  names: [name],
});
