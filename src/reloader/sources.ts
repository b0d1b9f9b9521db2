/** The rules of a workload come in, with what its pods refer to and what there is; the sources that it restarts for go out. Pure. */
import { RE2JS } from "re2js";
import type { Effort } from "../model/glob.ts";
import type { PodPlace, PodReference } from "../model/pod-references.ts";
import type { Mark } from "../model/reloader.ts";
import { type Choice, listedBy, type Rule, SOURCE_KINDS, type SourceKind, shown } from "./choice.ts";

/** A Secret or ConfigMap that there is. */
export interface Present {
  kind: SourceKind;
  name: string;
  mark?: Mark | undefined;
}

export interface Source {
  kind: SourceKind;
  name: string;
}

/** Where Reloader looks too. The login to a registry or a volume is nobody's configuration, and may be another every few hours. */
const PLACES: readonly PodPlace[] = ["env", "envFrom", "volume", "projected"];

/** More are no choice: it would be all that there is, whatever comes. */
const MOST_SOURCES = 256;
const MOST_PATTERNS = 64;
const LONGEST_PATTERN = 512;
/** Of patterns times names, in characters of both: some 50 ms. */
export const MOST_EFFORT = 20_000_000;

const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
/** One of these is itself and nothing else. */
const PLAIN = /^[-a-z0-9]*$/;
const LONGEST_NAME = 253;

/** Sources in the order of kinds and names; none if that can't be told, which is said then. */
export function chosenSources(
  { rules }: Pick<Choice, "rules">,
  references: readonly PodReference[],
  present: readonly Present[],
  effort: Effort,
): { sources: Source[]; mistakes: string[] } {
  const mistakes: string[] = [];
  const sources = SOURCE_KINDS.flatMap((kind) => {
    const there = present.filter((each) => each.kind === kind);
    const names = chosenOf(kind, rules[kind], namesIn(references, kind), there, effort, mistakes);
    return [...names].sort().map((name): Source => ({ kind, name }));
  });
  if (effort.left < 0) {
    mistakes.push("restarts for nothing, as its patterns take too long on so many names; list fewer, or plain names");
    return { sources: [], mistakes };
  }
  if (sources.length > MOST_SOURCES) {
    mistakes.push(
      `restarts for nothing, as it would for ${sources.length} Secrets and ConfigMaps; list ${MOST_SOURCES} at most`,
    );
    return { sources: [], mistakes };
  }
  return { sources, mistakes };
}

function chosenOf(
  kind: SourceKind,
  { auto, search, listed, excluded }: Rule,
  referred: readonly string[],
  present: readonly Present[],
  effort: Effort,
  mistakes: string[],
): Set<string> {
  const chosen = new Set(auto ? referred : []);
  if (search) for (const { name, mark } of present) if (mark === "match" && referred.includes(name)) chosen.add(name);
  if (listed.length > MOST_PATTERNS)
    mistakes.push(
      `${listedBy(kind)} has ${listed.length} entries, of which the first ${MOST_PATTERNS} count; list fewer`,
    );
  for (const entry of listed.slice(0, MOST_PATTERNS)) {
    // Whether it is there or not: what is named is waited for, and when it is back it is compared with what it was.
    if (NAME.test(entry) && entry.length <= LONGEST_NAME) chosen.add(entry);
    if (PLAIN.test(entry)) continue;
    const pattern = patternOf(entry);
    if (pattern === undefined) mistakes.push(`${listedBy(kind)}: ${shown(entry)} is no regular expression; mend it`);
    else for (const { name } of present) if (finds(pattern, entry, name, effort)) chosen.add(name);
  }
  for (const { name, mark } of present) if (mark === "ignore") chosen.delete(name);
  for (const name of excluded) chosen.delete(name);
  return chosen;
}

const namesIn = (references: readonly PodReference[], kind: SourceKind) =>
  references.flatMap((each) =>
    each.kind === kind && each.by.some((place) => PLACES.includes(place)) ? each.name : [],
  );

function finds(pattern: RE2JS, entry: string, name: string, effort: Effort): boolean {
  effort.left -= entry.length * name.length;
  return effort.left >= 0 && pattern.matcher(name).find();
}

const MAX_KNOWN = 1024;
const patterns = new Map<string, RE2JS | undefined>();

/** Go's own expressions, anchored as Reloader does it, compiled once. Undefined for one that is none. */
function patternOf(entry: string): RE2JS | undefined {
  if (patterns.has(entry)) return patterns.get(entry);
  let made: RE2JS | undefined;
  try {
    made = entry.length > LONGEST_PATTERN ? undefined : RE2JS.compile(`^${entry}$`);
  } catch {
    made = undefined;
  }
  patterns.set(entry, made);
  for (const oldest of patterns.keys()) {
    if (patterns.size <= MAX_KNOWN) break;
    patterns.delete(oldest);
  }
  return made;
}
