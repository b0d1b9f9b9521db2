/**
 * Selects the objects that are a binding's targets, as the watches show them now, and says what to watch for that. Where that can't be
 * known, nothing is released for it.
 */
import { namespaceIn, selects, type Target } from "../api/binding.ts";
import { whereOf } from "../api/installation.ts";
import { isGlob } from "../apimachinery/glob.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import { idOf, isSameKind, type ObjectRef, objectId, parseApiVersion, type Version } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { NAMESPACES } from "../apimachinery/resources.ts";
import type { CollectionSubscription, Subscription } from "../cache/subscription.ts";
import type { ListedObject, Watcher } from "../cache/watcher.ts";
import { READ_VERBS, streamRefusal, WRITE_VERBS } from "../kube/access-error.ts";
import { type Identity, wideIn } from "../kube/identity.ts";
import { isSelection, type References } from "./references.ts";
import type { Selection, SelectionCriteria } from "./selection.ts";

/** One object of a target, or why it is not known which. */
export interface SelectedObject {
  target: Target;
  ref: ObjectRef | Problem;
  /** It was not named alone. */
  selected: boolean;
}

/** A part of a target of which it can't be told which objects it is: all, those of one namespace, or the one of a name. */
export interface UnresolvedSelection {
  target: Target;
  namespace?: string;
  name?: string;
  problem: Problem;
}

export interface SelectionResult {
  objects: SelectedObject[];
  unresolved: UnresolvedSelection[];
  /** What selectors match and the installation lets nobody write: it was not meant, but what stands there is on record. */
  closed: UnresolvedSelection[];
  /** What there is to know although all is well. */
  notes: string[];
  /** Objects that are looked for by themselves, and collections. */
  dependencies: Subscription[];
  /** The versions of objects that a collection showed. */
  versions: Map<ObjectRef, Version>;
}

/** The record of all has to fit into the binding's status, which the API server stores within 1.5 MB. */
const MAX_OBJECTS = 5_000;
const MAX_CHARACTERS = 1_000_000;
/** Patterns of names in one binding: each is held against each object that comes, whatever it is called. */
const MAX_PATTERNS = 128;
/** Of comparing all names with all patterns, in characters: some hundredths of a second. */
const MAX_EFFORT = 2_000_000;
/** As long as what an object's uid takes there, and what stands around it. */
const UID_AND_MARKS = 41;

/** What the selections of one binding share. */
interface Search {
  identity: Identity;
  found: SelectionResult;
  /** The members of a collection, which is watched from now on. None if it can't be watched: what it selects is unresolved. */
  membersOf(target: Target, collection: CollectionSubscription, verbs: readonly string[]): readonly ListedObject[];
}

export function selectTargets(
  watcher: Pick<Watcher, "list">,
  key: string,
  identity: Identity,
  references: Pick<References, "targets">,
): SelectionResult {
  const effort = { left: MAX_EFFORT };
  const found: SelectionResult = {
    objects: [],
    unresolved: [],
    closed: [],
    notes: [],
    dependencies: [],
    versions: new Map(),
  };
  const search: Search = {
    identity,
    found,
    membersOf(target, collection, verbs) {
      found.dependencies.push(collection);
      const seen = watcher.list(key, collection, effort);
      if (seen.phase !== "failed") return seen.members;
      const { namespace } = collection;
      const problem = streamRefusal(seen.error, { identity, ref: collection, verbs }, "list");
      found.unresolved.push({ target, problem, ...(namespace !== undefined && { namespace }) });
      return [];
    },
  };
  const taken = new Set<string>();
  let [count, size, patterns] = [0, 0, 0];
  /** Of these it is known which objects they are, and others need not wait for that. */
  const tooMuch: UnresolvedSelection[] = [];
  const refuse = (target: Target, message: string) =>
    tooMuch.push({ target, problem: new Problem("InvalidBinding", message, "OnChange") });
  const members = new Map<number, SelectedObject[]>();
  const inOrder = [...references.targets.entries()];
  // Who names an object goes before who selects it.
  for (const [position, { target, at }] of inOrder.sort(([, a], [, b]) => rank(a.target) - rank(b.target))) {
    const where = `spec.targets[${position}]`;
    if (at instanceof Problem && selects(target)) {
      found.unresolved.push({ target, problem: at });
      continue;
    }
    if (at instanceof Problem || !isSelection(at)) {
      members.set(position, [{ target, ref: at, selected: false }]);
      for (const id of at instanceof Problem ? namedBy(target, namespaceIn(key)) : [idOf(at)]) taken.add(id);
      if (!(at instanceof Problem))
        found.dependencies.push({ identity, ref: at, ...wideIn(at.namespace, namespaceIn(key)) });
      continue;
    }
    const before = found.closed.length;
    patterns += patternsIn(target);
    if (patterns > MAX_PATTERNS) {
      const message = `the targets have more than ${MAX_PATTERNS} names with * or ? together; select by labels, or split the binding into several`;
      refuse(target, message);
      continue;
    }
    const refs = selected(search, target, at);
    if (effort.left < 0) {
      const message = `the names of ${where} take too long to compare with all objects that there are; write simpler ones, or select by labels`;
      refuse(target, message);
      continue;
    }
    // What may be of one that goes before stays as it is until that is known: another would undo what it wrote.
    const own = refs.filter(
      (ref) => !taken.has(idOf(ref)) && !found.unresolved.some((each) => isBefore(each, target, ref)),
    );
    for (const ref of own) taken.add(idOf(ref));
    const total = count + own.length;
    const characters = own.map(({ namespace = "", name }) => namespace.length + name.length + UID_AND_MARKS);
    const totalSize = characters.reduce((sum, each) => sum + each, size);
    if (total > MAX_OBJECTS || totalSize > MAX_CHARACTERS) {
      const message = `with ${where} the binding selects ${total} objects, and its status has room for ${MAX_OBJECTS}, or less if their names are long; split it into several bindings`;
      refuse(target, message);
      continue;
    }
    [count, size] = [total, totalSize];
    const objects = own.map((ref) => ({ target, ref, selected: true }));
    members.set(position, objects);
    found.notes.push(...notesOn(where, refs.length, own.length, found.closed.slice(before)));
  }
  found.unresolved.push(...tooMuch);
  found.objects = references.targets.flatMap((_, position) => members.get(position) ?? []);
  return found;
}

const rank = (target: Target) => (!selects(target) ? 0 : target.name !== undefined ? 1 : 2);

/** What a target names that can't be resolved now: of either scope. */
function namedBy({ apiVersion, kind, namespace, name = "" }: Target, own: string): string[] {
  const ofKind = { group: parseApiVersion(apiVersion).group, kind };
  return [undefined, namespace ?? own].map((where) => objectId(ofKind, where, name));
}

/** Whether an object of a target may be that of another one, of which it is not known which objects it is. */
function isBefore({ target, namespace }: UnresolvedSelection, other: Target, ref: ObjectRef): boolean {
  return target !== other && isSameKind(target, other) && (namespace === undefined || namespace === ref.namespace);
}

const patternsIn = ({ selector, namespaceSelector }: Target) =>
  [selector, namespaceSelector].flatMap((each) => [...(each?.names ?? []), ...(each?.exceptNames ?? [])]).filter(isGlob)
    .length;

/** So many names are said, and of the others how many they are. */
const MAX_NAMES = 3;

function notesOn(where: string, all: number, own: number, closed: readonly UnresolvedSelection[]): string[] {
  const names = closed.flatMap(({ namespace, name }) => namespace ?? name ?? []);
  const said = firstOf(names, MAX_NAMES);
  const apart =
    closed.length === 0 ? [] : [`${where} leaves out ${said}, where the installation lets it write nothing`];
  if (all === 0) return closed.length === 0 ? [`no object matches ${where}`] : apart;
  const others = own === all ? [] : [`${all - own} objects that ${where} matches are left to others of spec.targets`];
  return [...others, ...apart];
}

/** The objects of one target, in the order of namespace and name. */
function selected(search: Search, target: Target, selection: Selection): ObjectRef[] {
  const { identity, found } = search;
  const { resource, objects, namespaces } = selection;
  const wide = target.namespaceSelector !== undefined;
  /** Whether all of a namespace may be written, or one object of the cluster. What may not is not even watched. */
  const isOpen = (place: { namespace: string } | { name: string }) => {
    const where = "name" in place ? whereOf(resource, undefined, place.name) : place.namespace;
    const problem = selection.refusedIn(where);
    if (problem !== undefined) found.closed.push({ target, problem, ...place });
    return problem === undefined;
  };
  const where = isByLabels(namespaces) ? namespacesOf(search, target, namespaces) : namespaces;
  return where.flatMap((namespace): ObjectRef[] => {
    if (namespace !== undefined && !isOpen({ namespace })) return [];
    const inside = { resource, ...(namespace !== undefined && { namespace }) };
    if (typeof objects === "string") {
      const ref = { ...inside, name: objects };
      found.dependencies.push({ identity, ref, wide });
      return [ref];
    }
    const members = search.membersOf(target, { identity, resource, namespace, ...objects, wide }, WRITE_VERBS);
    const open = namespace === undefined ? members.filter(({ name }) => isOpen({ name })) : members;
    return open.toSorted(byName).map(({ name, version }) => {
      const ref = { ...inside, name };
      found.versions.set(ref, version);
      return ref;
    });
  });
}

const isByLabels = (namespaces: Selection["namespaces"]): namespaces is SelectionCriteria => "labels" in namespaces;

function namespacesOf({ identity, membersOf }: Search, target: Target, criteria: SelectionCriteria): string[] {
  const collection = { identity, resource: NAMESPACES, namespace: undefined, ...criteria };
  const members = membersOf(target, collection, READ_VERBS);
  return members.toSorted(byName).map(({ name }) => name);
}

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
