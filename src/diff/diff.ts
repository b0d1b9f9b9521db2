/** Computes what would change in the cluster if files were applied and Inlay reconciled their bindings. Changes nothing. */
import { bindingKey, type SecretBinding, type StoredBinding } from "../api/binding.ts";
import { composedFrom } from "../api/composed.ts";
import type { BindingComposition } from "../api/composition.ts";
import type { Installation } from "../api/installation.ts";
import { asRecorded } from "../api/status-records.ts";
import {
  apiVersionOf,
  describeObject,
  type JsonObject,
  type KubeObject,
  type ObjectRef,
  objectId,
  type Resource,
} from "../apimachinery/objects.ts";
import { type Advice, Problem } from "../apimachinery/problem.ts";
import { BINDING_COMPOSITIONS, NAMESPACES, SECRET_BINDINGS, SECRET_GRANTS } from "../apimachinery/resources.ts";
import { FieldClaims } from "../cache/field-claims.ts";
import { Protections } from "../cache/protections.ts";
import type { Watcher } from "../cache/watcher.ts";
import type { Reading } from "../explain/reading.ts";
import { attempt } from "../kube/access-error.ts";
import type { Transport } from "../kube/transport.ts";
import { type Composed, composeBindings } from "../render/claims.ts";
import { readDocuments, type TextFile } from "../render/documents.ts";
import { fileCluster } from "../render/file-cluster.ts";
import { type Inputs, inputsOf } from "../render/inputs.ts";
import { type ServedKinds, servedKinds } from "../render/kinds.ts";
import { ownResource } from "../render/own-kinds.ts";
import type { ProducedBy } from "../sources/grant-rules.ts";
import { CpuScheduler, finish } from "../workqueue/cpu-scheduler.ts";
import { mapConcurrent } from "../workqueue/map-concurrent.ts";
import { change, essence } from "./changes.ts";
import { type BindingChange, type Difference, reasonForUser } from "./difference.ts";
import { ownChange } from "./own-objects.ts";
import { type DiffWorld, planBinding, planDeletion } from "./plan-binding.ts";
import { Readers } from "./readers.ts";
import { type DecideRestarts, RestartPlanner } from "./restarts.ts";

/** A binding of a composition that the controller would delete. */
interface ObsoleteBinding {
  readonly composition: string;
  readonly binding: StoredBinding;
}

/** `compositions` are those that are not suspended and whose claims are known. `inFiles` are keys of bindings in the files. */
export function obsoleteBindings(
  { bindings, notMade }: Pick<Composed, "bindings" | "notMade">,
  compositions: readonly BindingComposition[],
  live: readonly StoredBinding[],
  inFiles: ReadonlySet<string>,
): ObsoleteBinding[] {
  const kinds = new Map(compositions.map(({ metadata, spec }) => [metadata.name, spec.for.kind]));
  const keys = new Set([...inFiles, ...bindings.map(({ binding }) => bindingKey(binding))]);
  // The controller keeps a binding that it can't compose now.
  const held = new Set(notMade.map(({ composition, claim, entry }) => entryId(composition, claim, entry)));
  return live.flatMap((binding) => {
    const from = composedFrom(binding);
    const kind = kinds.get(from?.composition ?? "");
    if (from === undefined || kind === undefined || binding.metadata.deletionTimestamp !== undefined) return [];
    const [name = "", namespace] = from.claim.split("/").reverse();
    const id = entryId(from.composition, describeObject(kind, namespace, name), from.template);
    return keys.has(bindingKey(binding)) || held.has(id) ? [] : [{ composition: from.composition, binding }];
  });
}

const entryId = (composition: string, claim: string, entry: string): string => [composition, claim, entry].join("|");

interface LiveClaims {
  readonly kinds: ServedKinds;
  readonly objects: readonly (KubeObject & JsonObject)[];
  readonly notes: readonly string[];
  /** Whether `objects` has all claims of the composition. */
  areKnown(composition: BindingComposition): boolean;
}

/** Reads the live claims of the compositions in files, and the kinds that they have. */
export async function claimsIn({ reader, discovery }: Readers, { objects }: Inputs): Promise<LiveClaims> {
  const wanted = new Map(
    objects.flatMap(({ object }) => {
      if (ownResource(object) !== BINDING_COMPOSITIONS) return [];
      const { apiVersion, kind } = (object as unknown as BindingComposition).spec.for;
      return [[idOf(apiVersion, kind), { apiVersion, kind }] as const];
    }),
  );
  const resources: Resource[] = [];
  const notes: string[] = [];
  for (const { apiVersion, kind } of wanted.values()) {
    const resource = await attempt(discovery.byKindAsNamed(apiVersion, kind));
    if (resource instanceof Problem) notes.push(resource.message);
    else if (resource === undefined) notes.push(`the cluster serves no ${kind} in ${apiVersion}, so it has no claims`);
    else resources.push(resource);
  }
  const more = wanted.size > 0 && !wanted.has(idOf("v1", NAMESPACES.kind)) ? [NAMESPACES] : [];
  const listed = new Map<string, (KubeObject & JsonObject)[]>();
  for (const resource of [...resources, ...more]) {
    const seen = await reader.list({ resource, form: "whole" }, (object) => object as KubeObject & JsonObject);
    if (seen.state === "Found") listed.set(idOf(apiVersionOf(resource), resource.kind), seen.it);
    else if (seen.state === "Unreadable") notes.push(`${seen.message}, so bindings of compositions may be missing`);
  }
  return {
    kinds: servedKinds(resources),
    objects: [...listed.values()].flat(),
    notes,
    areKnown: ({ spec }) => listed.has(idOf(spec.for.apiVersion, spec.for.kind)),
  };
}

const idOf = (apiVersion: string, kind: string): string => `${apiVersion} ${kind}`;

interface Wanted {
  readonly binding: StoredBinding;
  readonly composition?: string;
  readonly producedBy: ProducedBy;
}

/** `namespace` is that of objects that name none. `accessCommand` creates the accounts of the bindings, with their permissions. */
export async function diff(
  transport: Transport,
  files: readonly TextFile[],
  namespace: string,
  installation: Installation,
  accessCommand: string,
): Promise<Difference> {
  const readers = new Readers(transport);
  const read = readDocuments(files);
  const known = { ownOnly: true };
  const inFiles = inputsOf(read.documents, namespace, known);
  const asBinding = (object: KubeObject) => object as unknown as StoredBinding;
  const [claims, live] = await Promise.all([
    claimsIn(readers, inFiles),
    readers.reader.list({ resource: SECRET_BINDINGS, form: "whole" }, asBinding),
  ]);
  const inputs = inputsOf(read.documents, namespace, { ...known, cluster: { ...claims, isWhole: false } });
  const own = inFiles.objects.flatMap(({ object, isBroken }) => {
    const resource = ownResource(object);
    return isBroken || resource === undefined ? [] : [{ object, resource }];
  });
  const bindingsInFiles = own.flatMap(({ object, resource }) =>
    resource === SECRET_BINDINGS ? [object as unknown as StoredBinding] : [],
  );
  const others = own.filter(({ resource }) => resource !== SECRET_BINDINGS);
  const present = live.state === "Found" ? live.it : [];
  const composed = composeBindings(inputs, installation, present);
  const active = composed.accepted.filter((each) => each.spec.suspend !== true);
  const names = new Set(active.map(({ metadata }) => metadata.name));
  const bindings = composed.bindings.filter(({ from }) => from !== undefined && names.has(from.composition));
  const taken = new Set(bindingsInFiles.map(bindingKey));
  const obsolete = obsoleteBindings({ ...composed, bindings }, active.filter(claims.areKnown), present, taken);
  const wanted: Wanted[] = [
    ...bindingsInFiles.map((binding): Wanted => ({ binding, producedBy: "none" })),
    ...bindings.map(({ binding, from, producedBy }): Wanted => ({ binding, ...from, producedBy })),
  ];
  const gone = new Set(obsolete.map(({ binding }) => bindingKey(binding)));
  const world = worldOf(readers, installation, inFiles, wanted, live, gone);
  const objects = await mapConcurrent(others, async ({ object, resource }) => {
    const { change, problem, note } = await ownChange(readers, resource, withoutUid(object), { isSent: true });
    if (note !== undefined) world.notes.add(note);
    return { ...change, ...(problem && { problem: reasonForUser(problem) }) };
  });
  const planned = await mapConcurrent(wanted, (each) => bindingChange(world, each, accessCommand));
  const changed: BindingChange[] = [];
  for (const { change, restarts: decide } of planned) {
    const restarts = await decide?.();
    changed.push(restarts === undefined ? change : { ...change, restarts });
  }
  const deleted = await mapConcurrent(obsolete, (each) => deletion(world, each));
  const notes = [...claims.notes, ...composed.notes, ...world.notes];
  return {
    objects,
    bindings: [...changed, ...deleted],
    notes: [...new Set(notes)],
    mistakes: [...read.mistakes, ...inputs.mistakes, ...composed.mistakes],
  };
}

/** The controller deletes the binding, and not the user. */
async function deletion(world: DiffWorld, { composition, binding }: ObsoleteBinding): Promise<BindingChange> {
  const { namespace = "" } = binding.metadata;
  const named = { ...binding.metadata, apiVersion: apiVersionOf(SECRET_BINDINGS), kind: SECRET_BINDINGS.kind };
  const own = change(named, essence(binding as unknown as KubeObject), undefined);
  const actor = await world.readers.actingAs(namespace, binding.spec.serviceAccountName);
  const targets = await planDeletion(world, asRecorded(binding), actor);
  return { binding: bindingKey(binding), composition, as: actor.text, own, targets };
}

async function bindingChange(
  world: DiffWorld,
  { binding: wanted, composition, producedBy }: Wanted,
  accessCommand: string,
): Promise<{ change: BindingChange; restarts?: DecideRestarts | undefined }> {
  const { readers, services } = world;
  const key = bindingKey(wanted);
  const own = await ownChange(readers, SECRET_BINDINGS, withoutUid(wanted as unknown as KubeObject), {
    isSent: composition === undefined,
    ...(world.bindings && { live: () => world.bindings?.get(key) }),
  });
  if (own.note !== undefined) world.notes.add(own.note);
  const stored = (own.object as StoredBinding | undefined) ?? wanted;
  const { namespace = "", uid = objectId(SECRET_BINDINGS, stored.metadata.namespace, stored.metadata.name) } =
    stored.metadata;
  const binding = asRecorded({ ...stored, metadata: { ...stored.metadata, uid } });
  const closed = services.installation.closedNamespace(namespace);
  const failed = own.problem ?? closed;
  const actor = await readers.actingAs(namespace, binding.spec.serviceAccountName);
  const common = {
    binding: key,
    ...(composition !== undefined && { composition }),
    as: actor.text,
    ...(actor.account && { account: missingAccount(binding, actor.account, accessCommand) }),
    own: own.change,
  };
  if (failed !== undefined) return { change: { ...common, problem: reasonForUser(failed), targets: [] } };
  // Inlay does not process it.
  if (binding.spec.suspend === true) return { change: { ...common, targets: [] } };
  const live = own.live && asRecorded(own.live as unknown as StoredBinding);
  const { targets, restarts } = await planBinding(world, binding, actor, producedBy, live);
  return { change: { ...common, targets }, restarts };
}

function missingAccount({ metadata, spec }: SecretBinding, { reason }: Problem, command: string): Advice {
  const account = `ServiceAccount ${metadata.namespace}/${spec.serviceAccountName}`;
  return { reason, message: `there is no ${account}, so reads and dry runs are sent as you; create it with:`, command };
}

/** Objects of files got a uid, which the API server would refuse. */
function withoutUid(object: KubeObject): KubeObject {
  const { uid: _, resourceVersion: __, ...metadata } = object.metadata;
  return { ...object, metadata: metadata as KubeObject["metadata"] };
}

/** Objects of the cluster, replaced by those in the files and those that compositions make, without those that are deleted. */
function worldOf(
  readers: Readers,
  installation: Installation,
  inputs: Inputs,
  wanted: readonly Wanted[],
  live: Reading<StoredBinding[]>,
  gone: ReadonlySet<string>,
): DiffWorld {
  const files = fileCluster(inputs);
  const all = live.state === "Found" ? live.it : [];
  const fieldClaims = new FieldClaims();
  const specs = new Map(wanted.map(({ binding }) => [bindingKey(binding), binding.spec]));
  const protections = new Protections();
  for (const each of all) {
    protections.put(each);
    const key = bindingKey(each);
    if (gone.has(key)) continue;
    fieldClaims.put({ ...each, spec: specs.get(key) ?? each.spec });
    finish(fieldClaims.update(key));
  }
  const keys = new Map(all.map((each) => [each.metadata.uid, bindingKey(each)]));
  /** Grants in the files count as applied. */
  const list: Watcher["list"] = (key, collection) => {
    const seen = readers.lists.list(key, collection);
    if (collection.resource !== SECRET_GRANTS) return seen;
    const own = files.watcher.list(key, collection).members;
    const names = new Set(own.map(({ name }) => name));
    return { ...seen, members: [...seen.members.filter(({ name }) => !names.has(name)), ...own] };
  };
  const isInFiles = (ref: ObjectRef) => files.find(ref) !== undefined;
  const nothing = () => {};
  const services = {
    installation,
    serverTime: () => readers.transport.serverTime(),
    discovery: readers.discovery,
    schemas: readers.schemas,
    bindings: {
      competingClaims: ({ metadata }, ref, paths) => {
        const own = { key: bindingKey({ metadata }), createdAt: metadata.creationTimestamp ?? "9999" };
        return fieldClaims.competing(own, ref, paths);
      },
      keyOf: (uid) => keys.get(uid),
      protecting: (ref) => protections.of(ref),
    },
    // No time passes for it: all bindings belong to one user, so they need not wait for their turns.
    cpu: new CpuScheduler(() => 0),
    events: { record: nothing, recordOn: nothing },
    propagation: { wrote: nothing },
    log: { info: nothing, warn: nothing },
  } satisfies DiffWorld["services"];
  return {
    readers,
    services,
    watcher: { list },
    restarts: new RestartPlanner(readers, services, { list }, all, isInFiles),
    sourceReads: readers.sources((ref: ObjectRef) => files.find(ref)),
    bindings:
      live.state === "Found"
        ? new Map(all.map((each) => [bindingKey(each), each as unknown as KubeObject]))
        : undefined,
    notes: new Set(live.state === "Unreadable" ? [`${live.message}, so conflicts between bindings are unknown`] : []),
  };
}
