/** Computes what would change in the cluster if files were applied and Inlay reconciled their bindings. Changes nothing. */
import { bindingKey, type SecretBinding, type StoredBinding } from "../api/binding.ts";
import { DEFAULT_NAMESPACE, Installation } from "../api/installation.ts";
import { asRecorded } from "../api/status-records.ts";
import { type KubeObject, type ObjectRef, objectId } from "../apimachinery/objects.ts";
import { SECRET_BINDINGS, SECRET_GRANTS } from "../apimachinery/resources.ts";
import { FieldClaims } from "../cache/field-claims.ts";
import type { CollectionSubscription } from "../cache/subscription.ts";
import { Reader } from "../explain/reading.ts";
import type { Transport } from "../kube/transport.ts";
import { composeBindings } from "../render/claims.ts";
import { readDocuments, type TextFile } from "../render/documents.ts";
import { fileCluster } from "../render/file-cluster.ts";
import { type Inputs, inputsOf } from "../render/inputs.ts";
import { readVaultValues } from "../render/vault-values.ts";
import type { ProducedBy } from "../sources/grant-rules.ts";
import { CpuScheduler } from "../workqueue/cpu-scheduler.ts";
import { mapConcurrent } from "../workqueue/map-concurrent.ts";
import { claimsIn } from "./claims.ts";
import { type BindingChange, type Difference, reasonForUser } from "./difference.ts";
import { ownChange, ownResource } from "./own-objects.ts";
import { planBinding, type World } from "./plan-binding.ts";
import { Readers } from "./readers.ts";

interface Wanted {
  readonly object: KubeObject;
  readonly composition?: string;
  readonly producedBy: ProducedBy;
}

/** `namespace` is that of objects that name none. */
export async function diff(transport: Transport, files: readonly TextFile[], namespace: string): Promise<Difference> {
  const readers = new Readers(transport);
  const read = readDocuments(files);
  const vault = readVaultValues([]).values;
  const known = { ownOnly: true };
  const inFiles = inputsOf(read.documents, namespace, vault, known);
  const claims = await claimsIn(readers, inFiles);
  const inputs = inputsOf(read.documents, namespace, vault, { ...known, cluster: { ...claims, isWhole: false } });
  const installation = new Installation({ ownNamespace: DEFAULT_NAMESPACE });
  const own = inFiles.objects.flatMap(({ object, isBroken }) => {
    const resource = ownResource(object);
    return isBroken || resource === undefined ? [] : [{ object, resource }];
  });
  const bindingsInFiles = own.filter(({ resource }) => resource === SECRET_BINDINGS);
  const others = own.filter(({ resource }) => resource !== SECRET_BINDINGS);
  const composed = composeBindings(inputs, installation);
  const world = await worldOf(
    readers,
    installation,
    inFiles,
    bindingsInFiles.map(({ object }) => object),
  );
  const wanted: Wanted[] = [
    ...bindingsInFiles.map(({ object }): Wanted => ({ object, producedBy: "none" })),
    ...composed.bindings.map(({ binding, from, claimNamespace }): Wanted => {
      const composition = from?.composition ?? "";
      const producedBy = { by: composition, ...(claimNamespace !== undefined && { claimNamespace }) };
      return { object: binding as unknown as KubeObject, composition, producedBy };
    }),
  ];
  const objects = await mapConcurrent(others, async ({ object, resource }) => {
    const { change, problem, note } = await ownChange(readers, resource, withoutUid(object), { isSent: true });
    if (note !== undefined) world.notes.add(note);
    return { ...change, ...(problem && { problem: reasonForUser(problem) }) };
  });
  const bindings = await mapConcurrent(wanted, (each) => bindingChange(world, each));
  const notes = [...claims.notes, ...composed.notes, ...world.notes];
  return {
    objects,
    bindings,
    notes: [...new Set(notes)],
    mistakes: [...read.mistakes, ...inputs.mistakes, ...composed.mistakes],
  };
}

async function bindingChange(world: World, { object, composition, producedBy }: Wanted): Promise<BindingChange> {
  const { readers, installation } = world;
  const key = bindingKey(object as unknown as SecretBinding);
  const own = await ownChange(readers, SECRET_BINDINGS, withoutUid(object), {
    isSent: composition === undefined,
    ...(world.bindings && { live: () => world.bindings?.get(key) }),
  });
  if (own.note !== undefined) world.notes.add(own.note);
  const stored = (own.object ?? object) as unknown as StoredBinding;
  const { namespace = "", uid = objectId(SECRET_BINDINGS, stored.metadata.namespace, stored.metadata.name) } =
    stored.metadata;
  const binding = asRecorded({ ...stored, metadata: { ...stored.metadata, uid } });
  const closed = installation.closedNamespace(namespace);
  const common = { binding: key, ...(composition !== undefined && { composition }), own: own.change };
  const failed = own.problem ?? closed;
  const actor = await readers.actingAs(namespace, binding.spec.serviceAccountName);
  if (failed !== undefined) return { ...common, as: actor.text, problem: reasonForUser(failed), targets: [] };
  // Inlay does not process it.
  if (binding.spec.suspend === true) return { ...common, as: actor.text, targets: [] };
  return { ...common, as: actor.text, targets: await planBinding(world, binding, actor, producedBy) };
}

/** Objects of files got a uid, which the API server would refuse. */
function withoutUid(object: KubeObject): KubeObject {
  const { uid: _, resourceVersion: __, ...metadata } = object.metadata;
  return { ...object, metadata: metadata as KubeObject["metadata"] };
}

/** Objects of the cluster, replaced by those in the files. */
async function worldOf(
  readers: Readers,
  installation: Installation,
  inputs: Inputs,
  bindings: readonly KubeObject[],
): Promise<World> {
  const files = fileCluster(inputs);
  const reader = new Reader(readers.transport);
  const scope = { resource: SECRET_BINDINGS, namespace: undefined, form: "whole" as const };
  const live = await reader.list(scope, (object) => object as unknown as StoredBinding);
  const all = live.state === "Found" ? live.it : [];
  const fieldClaims = new FieldClaims();
  const inFiles = new Map(bindings.map((each) => [bindingKey(each as unknown as SecretBinding), each]));
  for (const each of all) {
    const now = inFiles.get(bindingKey(each));
    fieldClaims.put(now === undefined ? each : { ...each, spec: (now as unknown as StoredBinding).spec });
  }
  const keys = new Map(all.map((each) => [each.metadata.uid, bindingKey(each)]));
  return {
    readers,
    installation,
    watcher: { list: (key, collection) => withFiles(readers, files, key, collection) },
    sourceReads: readers.sources((ref: ObjectRef) => files.find(ref)),
    claims: fieldClaims,
    keyOf: (uid) => keys.get(uid),
    bindings:
      live.state === "Found"
        ? new Map(all.map((each) => [bindingKey(each), each as unknown as KubeObject]))
        : undefined,
    cpu: new CpuScheduler(),
    notes: new Set(live.state === "Unreadable" ? [`${live.message}, so conflicts between bindings are unknown`] : []),
  };
}

/** Grants in the files count as applied. */
function withFiles(
  { lists }: Readers,
  files: ReturnType<typeof fileCluster>,
  key: string,
  collection: CollectionSubscription,
) {
  const seen = lists.list(key, collection);
  const { group, kind } = collection.resource;
  if (group !== SECRET_GRANTS.group || kind !== SECRET_GRANTS.kind) return seen;
  const own = files.watcher.list(key, collection).members;
  const names = new Set(own.map(({ name }) => name));
  return { ...seen, members: [...seen.members.filter(({ name }) => !names.has(name)), ...own] };
}
