/**
 * Selects the objects of a binding's targets from the watches, and lists what to watch. If a selection can't be
 * resolved, nothing is released for it.
 */
import { fieldsOfTarget, namespaceIn, selects, type Target } from "../api/binding.ts";
import { whereOf } from "../api/installation.ts";
import { isGlob } from "../apimachinery/glob.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import { idOf, isSameKind, type ObjectRef, objectId, parseApiVersion, type Version } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { NAMESPACES } from "../apimachinery/resources.ts";
import type { CollectionSubscription, Subscription } from "../cache/subscription.ts";
import type { ListedObject, Watcher } from "../cache/watcher.ts";
import { STREAM_VERBS, streamRefusal, WRITE_VERBS } from "../kube/access-error.ts";
import type { Permission } from "../kube/grant-commands.ts";
import { type Identity, wideIn } from "../kube/identity.ts";
import { isSelection, type References } from "./references.ts";
import type { Selection, SelectionCriteria } from "./selection.ts";

/** One object of a target, or why it is unknown. */
export interface SelectedObject {
  target: Target;
  ref: ObjectRef | Problem;
  /** Whether a selector selected it. */
  selected: boolean;
}

/** A part of a target whose objects are unknown: all of them, those of one namespace, or the object of one name. */
export interface UnresolvedSelection {
  target: Target;
  namespace?: string;
  name?: string;
  problem: Problem;
}

export interface SelectionResult {
  objects: SelectedObject[];
  unresolved: UnresolvedSelection[];
  /**
   * Matching objects that the installation does not allow to be written. They are no targets, but their records stay.
   */
  closed: UnresolvedSelection[];
  /** Information for users although there is no problem. */
  notes: string[];
  /** Single objects and collections to watch. */
  dependencies: Subscription[];
  /** The collections among them, and what the account needs there, whether they have members or not. */
  collections: Permission[];
  /** The versions of objects that a collection showed. */
  versions: Map<ObjectRef, Version>;
}

/** The records of all objects must fit into the binding's status. The API server stores at most 1.5 MB. */
const MAX_OBJECTS = 5_000;
const MAX_CHARACTERS = 1_000_000;
/** The fields of all selected objects together: each is written, recorded, and compared with what other bindings claim. */
const MAX_FIELDS = 50_000;
/** The most objects that one target may match, with those that belong to other targets. */
const MAX_MATCHES = 2 * MAX_OBJECTS;
/** Name patterns in one binding: each is compared with each object. */
const MAX_PATTERNS = 128;
/** The limit for comparing names with patterns, in characters: some hundredths of a second. */
const MAX_EFFORT = 2_000_000;
/** The size of an object's uid and separators in the status. */
const UID_AND_MARKS = 41;

/** The state that the selections of one binding share. */
interface Search {
  identity: Identity;
  found: SelectionResult;
  /** The members of a collection, and watches it. If it can't be watched: none, and the selection is unresolved. */
  membersOf(target: Target, collection: CollectionSubscription, verbs: readonly string[]): readonly ListedObject[];
}

/** No object is selected. */
export const noSelection = (): SelectionResult => ({
  objects: [],
  unresolved: [],
  closed: [],
  notes: [],
  dependencies: [],
  collections: [],
  versions: new Map(),
});

/** Yields where it may be interrupted: the objects of a namespace have no limit. */
export function* selectTargets(
  watcher: Pick<Watcher, "list">,
  key: string,
  identity: Identity,
  references: Pick<References, "targets">,
): Generator<void, SelectionResult> {
  const effort = { left: MAX_EFFORT };
  const found = noSelection();
  const search: Search = {
    identity,
    found,
    membersOf(target, collection, verbs) {
      found.dependencies.push(collection);
      found.collections.push({ ref: collection, verbs });
      const seen = watcher.list(key, collection, effort);
      if (seen.phase !== "failed") return seen.members;
      const { namespace } = collection;
      const problem = streamRefusal(seen.error, { identity, ref: collection, verbs }, "list");
      found.unresolved.push({ target, problem, ...(namespace !== undefined && { namespace }) });
      return [];
    },
  };
  const taken = new Set<string>();
  let [count, size, patterns, written] = [0, 0, 0, 0];
  /** Too large selections. Other targets need not wait for these. */
  const tooMuch: UnresolvedSelection[] = [];
  const refuse = (target: Target, message: string) =>
    tooMuch.push({ target, problem: new Problem("InvalidBinding", message, "OnChange") });
  const members = new Map<number, SelectedObject[]>();
  const inOrder = [...references.targets.entries()];
  // Targets that name an object come before those that select it.
  for (const [position, { target, at }] of inOrder.sort(([, a], [, b]) => rank(a.target) - rank(b.target))) {
    yield;
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
      const message = `the targets have more than ${MAX_PATTERNS} names with * or ? together; select by labels, or split the binding`;
      refuse(target, message);
      continue;
    }
    const refs = yield* selected(search, target, at);
    if (effort.left < 0) {
      const message = `comparing the names of ${where} with all objects takes too long; write simpler names, or select by labels`;
      refuse(target, message);
      continue;
    }
    if (refs === undefined) {
      const message = `${where} matches more than ${MAX_MATCHES} objects, and the status of the binding has room for ${MAX_OBJECTS}; split the binding`;
      found.unresolved.push({ target, problem: new Problem("InvalidBinding", message, "OnChange") });
      continue;
    }
    // Objects that may belong to an earlier, unresolved target stay unchanged: a later one would revert its values.
    const own: Match[] = [];
    for (const [index, match] of refs.entries()) {
      if (index % STEP === STEP - 1) yield;
      const id = idOf(match.ref);
      if (taken.has(id) || found.unresolved.some((each) => isBefore(each, target, match.ref))) continue;
      own.push(match);
      taken.add(id);
    }
    const total = count + own.length;
    const characters = own.map(({ ref: { namespace = "", name } }) => namespace.length + name.length + UID_AND_MARKS);
    const totalSize = characters.reduce((sum, each) => sum + each, size);
    if (total > MAX_OBJECTS || totalSize > MAX_CHARACTERS) {
      const message = `with ${where} the binding selects ${total} objects, but its status has room for ${MAX_OBJECTS}, or fewer if their names are long; split the binding`;
      refuse(target, message);
      continue;
    }
    const fields = written + own.length * fieldsOfTarget(target).length;
    if (fields > MAX_FIELDS) {
      const message = `with ${where} the binding writes ${fields} fields of selected objects, and at most ${MAX_FIELDS} are possible; split the binding`;
      refuse(target, message);
      continue;
    }
    [count, size, written] = [total, totalSize, fields];
    for (const { ref, version } of own) if (version !== undefined) found.versions.set(ref, version);
    const objects = own.map(({ ref }) => ({ target, ref, selected: true }));
    members.set(position, objects);
    found.notes.push(...notesOn(where, refs.length, own.length, found.closed.slice(before)));
  }
  found.unresolved.push(...tooMuch);
  found.objects = references.targets.flatMap((_, position) => members.get(position) ?? []);
  return found;
}

const rank = (target: Target) => (!selects(target) ? 0 : target.name !== undefined ? 1 : 2);

/** The possible ids of a named target that can't be resolved now, for either scope of its kind. */
function namedBy({ apiVersion, kind, namespace, name = "" }: Target, own: string): string[] {
  const ofKind = { group: parseApiVersion(apiVersion).group, kind };
  return [undefined, namespace ?? own].map((where) => objectId(ofKind, where, name));
}

/** Whether an object of a target may also belong to an unresolved target. */
function isBefore({ target, namespace }: UnresolvedSelection, other: Target, ref: ObjectRef): boolean {
  return target !== other && isSameKind(target, other) && (namespace === undefined || namespace === ref.namespace);
}

const patternsIn = ({ selector, namespaceSelector }: Target) =>
  [selector, namespaceSelector].flatMap((each) => [...(each?.names ?? []), ...(each?.exceptNames ?? [])]).filter(isGlob)
    .length;

/** The limit of names in a note. */
const MAX_NAMES = 3;

function notesOn(where: string, all: number, own: number, closed: readonly UnresolvedSelection[]): string[] {
  const names = closed.flatMap(({ namespace, name }) => namespace ?? name ?? []);
  const listed = firstOf(names, MAX_NAMES);
  const apart = closed.length === 0 ? [] : [`${where} excludes ${listed}, where the installation allows no writes`];
  if (all === 0)
    return closed.length === 0
      ? [`no object matches ${where}, so nothing is written for it; if one should match, compare it with the selector`]
      : apart;
  const others =
    own === all ? [] : [`${all - own} objects that ${where} matches belong to other entries of spec.targets`];
  return [...others, ...apart];
}

/** How often a walk over objects may be interrupted. */
const STEP = 256;

/** An object that a target matches, with its version if a collection shows it. */
interface Match {
  ref: ObjectRef;
  version?: Version;
}

/** The objects of one target, sorted by namespace and name; undefined if there are too many. */
function* selected(search: Search, target: Target, selection: Selection): Generator<void, Match[] | undefined> {
  const { identity, found } = search;
  const { resource, objects, namespaces } = selection;
  const wide = target.namespaceSelector !== undefined;
  /** Whether a namespace, or one cluster-scoped object, may be written. Others are not even watched. */
  const isOpen = (place: { namespace: string } | { name: string }) => {
    const where = "name" in place ? whereOf(resource, undefined, place.name) : place.namespace;
    const problem = selection.refusedIn(where);
    if (problem !== undefined) found.closed.push({ target, problem, ...place });
    return problem === undefined;
  };
  const where = isByLabels(namespaces) ? namespacesOf(search, target, namespaces) : namespaces;
  const matches: Match[] = [];
  for (const namespace of where) {
    yield;
    if (matches.length > MAX_MATCHES) return undefined;
    if (namespace !== undefined && !isOpen({ namespace })) continue;
    const inside = { resource, ...(namespace !== undefined && { namespace }) };
    if (typeof objects === "string") {
      const ref = { ...inside, name: objects };
      found.dependencies.push({ identity, ref, wide });
      matches.push({ ref });
      continue;
    }
    const members = search.membersOf(target, { identity, resource, namespace, ...objects, wide }, WRITE_VERBS);
    const open = namespace === undefined ? members.filter(({ name }) => isOpen({ name })) : members;
    if (matches.length + open.length > MAX_MATCHES) return undefined;
    for (const [at, { name, version }] of open.toSorted(byName).entries()) {
      if (at % STEP === STEP - 1) yield;
      matches.push({ ref: { ...inside, name }, version });
    }
  }
  return matches;
}

const isByLabels = (namespaces: Selection["namespaces"]): namespaces is SelectionCriteria => "labels" in namespaces;

function namespacesOf({ identity, membersOf }: Search, target: Target, criteria: SelectionCriteria): string[] {
  const collection = { identity, resource: NAMESPACES, namespace: undefined, ...criteria };
  const members = membersOf(target, collection, STREAM_VERBS);
  return members.toSorted(byName).map(({ name }) => name);
}

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
