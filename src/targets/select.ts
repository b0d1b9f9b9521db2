/**
 * What a binding's targets name and select comes in; the objects that they are, as the streams show them at the moment,
 * go out, with what has to be watched to know. Where that can't be known, it is said so: nothing is released for it.
 */

import { namespaceIn, selects, type Target } from "../api/binding.ts";
import { whereOf } from "../api/installation.ts";
import { type Effort, isGlob } from "../apimachinery/glob.ts";
import { idOf, isSameKind, type ObjectRef, objectId, parseApiVersion, type Version } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { NAMESPACES } from "../apimachinery/resources.ts";
import type { Streams } from "../cache/informers.ts";
import type { Collection, Dependency } from "../cache/subscription.ts";
import { READ_VERBS, streamRefusal, WRITE_VERBS } from "../kube/access-error.ts";
import type { Identity } from "../kube/identity.ts";
import { isSelection, type References } from "./references.ts";
import type { Choice, Selection } from "./selection.ts";

/** One object of a target, or why it is not known which. */
export interface Member {
  target: Target;
  ref: ObjectRef | Problem;
  /** It was not named alone. */
  selected: boolean;
}

/** A part of a target of which it can't be told which objects it is: all, those of one namespace, or the one of a name. */
export interface Unknown {
  target: Target;
  namespace?: string;
  name?: string;
  problem: Problem;
}

export interface Members {
  members: Member[];
  unknown: Unknown[];
  /** What selectors match and the installation lets nobody write: it was not meant, but what stands there is on record. */
  closed: Unknown[];
  /** What there is to know although all is well. */
  notes: string[];
  /** Objects that are looked for by themselves, and collections. */
  dependencies: Dependency[];
  /** The versions of objects that a collection showed. */
  versions: Map<ObjectRef, Version>;
}

/** The record of all has to fit into the binding's status, which the API server stores within 1.5 MB. */
const MOST_OBJECTS = 5_000;
const MOST_CHARACTERS = 1_000_000;
/** Patterns of names in one binding: each is held against each object that comes, whatever it is called. */
const MOST_PATTERNS = 128;
/** Of all names with all patterns, in characters: some hundredths of a second. */
const MOST_EFFORT = 2_000_000;
/** As long as what an object's uid takes there, and what stands around it. */
const UID_AND_MARKS = 41;

export function membersOf(streams: Streams, key: string, identity: Identity, references: References): Members {
  const effort = { left: MOST_EFFORT };
  const found: Members = { members: [], unknown: [], closed: [], notes: [], dependencies: [], versions: new Map() };
  const taken = new Set<string>();
  let size = { objects: 0, characters: 0 };
  /** Of these it is known which objects they are, and others need not wait for that. */
  const tooMuch: Unknown[] = [];
  const members = new Map<number, Member[]>();
  const inOrder = [...references.targets.entries()];
  // Who names an object goes before who selects it.
  let patterns = 0;
  for (const [position, { target, at }] of inOrder.sort(([, a], [, b]) => rank(a.target) - rank(b.target))) {
    if (at instanceof Problem && selects(target)) {
      found.unknown.push({ target, problem: at });
    } else if (at instanceof Problem || !isSelection(at)) {
      members.set(position, [{ target, ref: at, selected: false }]);
      if (at instanceof Problem) {
        for (const id of namedBy(target, namespaceIn(key))) taken.add(id);
        continue;
      }
      taken.add(idOf(at));
      found.dependencies.push({ identity, ref: at });
    } else {
      const before = found.closed.length;
      patterns += patternsIn(target);
      if (patterns > MOST_PATTERNS) {
        tooMuch.push({ target, problem: tooManyPatterns() });
        continue;
      }
      const refs = selected(streams, key, identity, target, at, found, effort);
      if (effort.left < 0) {
        tooMuch.push({ target, problem: tooMuchEffort(position) });
        continue;
      }
      // What may be of one that goes before stays as it is until that is known: another would undo what it wrote.
      const own = refs.filter(
        (ref) => !taken.has(idOf(ref)) && !found.unknown.some((each) => isBefore(each, target, ref)),
      );
      for (const ref of own) taken.add(idOf(ref));
      const objects = size.objects + own.length;
      const characters = own.reduce(
        (sum, { namespace = "", name }) => sum + namespace.length + name.length + UID_AND_MARKS,
        size.characters,
      );
      if (objects > MOST_OBJECTS || characters > MOST_CHARACTERS) {
        tooMuch.push({ target, problem: tooMany(position, objects) });
        continue;
      }
      size = { objects, characters };
      members.set(
        position,
        own.map((ref) => ({ target, ref, selected: true })),
      );
      const closed = found.closed.slice(before);
      found.notes.push(...notesOn(position, refs.length, own.length, closed));
    }
  }
  found.unknown.push(...tooMuch);
  found.members = references.targets.flatMap((_, position) => members.get(position) ?? []);
  return found;
}

const rank = (target: Target) => (!selects(target) ? 0 : target.name !== undefined ? 1 : 2);

/** What a target names that can't be resolved now: of either scope. */
function namedBy({ apiVersion, kind, namespace, name = "" }: Target, own: string): string[] {
  const ofKind = { group: parseApiVersion(apiVersion).group, kind };
  return [undefined, namespace ?? own].map((where) => objectId(ofKind, where, name));
}

/** Whether an object of a target may be that of another one, of which it is not known which objects it is. */
function isBefore({ target, namespace }: Unknown, other: Target, ref: ObjectRef): boolean {
  return target !== other && isSameKind(target, other) && (namespace === undefined || namespace === ref.namespace);
}

function tooMany(position: number, count: number): Problem {
  return new Problem(
    "InvalidBinding",
    `with spec.targets[${position}] the binding selects ${count} objects, and its status has room for ${MOST_OBJECTS}, or less if their names are long; split it into several bindings`,
    "event",
  );
}

const patternsIn = ({ selector, namespaceSelector }: Target) =>
  [...(selector?.names ?? []), ...(namespaceSelector?.names ?? [])].filter(isGlob).length;

function tooManyPatterns(): Problem {
  return new Problem(
    "InvalidBinding",
    `the targets have more than ${MOST_PATTERNS} names with * or ? together; select by labels, or split the binding into several`,
    "event",
  );
}

function tooMuchEffort(position: number): Problem {
  return new Problem(
    "InvalidBinding",
    `the names of spec.targets[${position}] take too long to compare with all objects that there are; write simpler ones, or select by labels`,
    "event",
  );
}

/** So many names are said, and of the others how many they are. */
const MOST_NAMES = 3;

function notesOn(position: number, all: number, own: number, closed: readonly Unknown[]): string[] {
  const where = `spec.targets[${position}]`;
  const names = closed.slice(0, MOST_NAMES).map(({ namespace, name }) => namespace ?? name);
  const more = closed.length - names.length;
  const said = `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  const apart =
    closed.length === 0 ? [] : [`${where} leaves out ${said}, where the installation lets it write nothing`];
  if (all === 0) return closed.length === 0 ? [`no object matches ${where}`] : apart;
  const others = own === all ? [] : [`${all - own} objects that ${where} matches are left to others of spec.targets`];
  return [...others, ...apart];
}

/** The objects of one target, in the order of namespace and name. */
function selected(
  streams: Streams,
  key: string,
  identity: Identity,
  target: Target,
  selection: Selection,
  found: Members,
  effort: Effort,
): ObjectRef[] {
  const { resource, objects, namespaces } = selection;
  const wide = target.namespaceSelector !== undefined;
  const where = isChoice(namespaces)
    ? namespacesOf(streams, key, identity, target, namespaces, found, effort)
    : namespaces;
  /** Whether all of a namespace may be written, or one object of the cluster. What may not is not even watched. */
  const isOpen = (place: { namespace: string } | { name: string }) => {
    const where = "name" in place ? whereOf(resource, undefined, place.name) : place.namespace;
    const problem = selection.refusedIn(where);
    if (problem !== undefined) found.closed.push({ target, problem, ...place });
    return problem === undefined;
  };
  return where.flatMap((namespace): ObjectRef[] => {
    if (namespace !== undefined && !isOpen({ namespace })) return [];
    const inside = { resource, ...(namespace !== undefined && { namespace }) };
    if (typeof objects === "string") {
      const ref = { ...inside, name: objects };
      found.dependencies.push({ identity, ref, wide });
      return [ref];
    }
    const collection = { identity, resource, namespace, ...objects, wide };
    found.dependencies.push(collection);
    const seen = streams.members(key, collection, effort);
    if (seen.phase === "failed") {
      const problem = streamRefusal(seen.error, { identity, ref: collection, verbs: WRITE_VERBS }, "list");
      found.unknown.push({ target, problem, ...(namespace !== undefined && { namespace }) });
      return [];
    }
    const open = namespace === undefined ? seen.members.filter(({ name }) => isOpen({ name })) : seen.members;
    return open.toSorted(byName).map(({ name, version }) => {
      const ref = { ...inside, name };
      found.versions.set(ref, version);
      return ref;
    });
  });
}

const isChoice = (namespaces: Selection["namespaces"]): namespaces is Choice => "labels" in namespaces;

function namespacesOf(
  streams: Streams,
  key: string,
  identity: Identity,
  target: Target,
  choice: Choice,
  found: Members,
  effort: Effort,
): string[] {
  const collection: Collection = { identity, resource: NAMESPACES, namespace: undefined, ...choice };
  found.dependencies.push(collection);
  const seen = streams.members(key, collection, effort);
  if (seen.phase === "failed") {
    const problem = streamRefusal(seen.error, { identity, ref: collection, verbs: READ_VERBS }, "list");
    found.unknown.push({ target, problem });
    return [];
  }
  return seen.members.toSorted(byName).map(({ name }) => name);
}

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
