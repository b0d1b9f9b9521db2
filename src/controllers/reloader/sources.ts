/**
 * What there is in a namespace comes in, and then workload by workload its rules and what its pods refer to; the sources that
 * it restarts for go out. No I/O.
 */
import type { ReloaderMark } from "../../api/reloader.ts";
import type { Effort } from "../../apimachinery/glob.ts";
import { compilePattern, type Pattern } from "../../apimachinery/pattern.ts";
import type { PodPlace, PodReference } from "../../workloads/pod-references.ts";
import { type ChosenKind, type ReloadRules, type Rule, SOURCE_KINDS, shown } from "./annotations.ts";

/** What there is to choose from. */
export interface Present {
  kind: ChosenKind;
  name: string;
  mark?: ReloaderMark | undefined;
  /** Of a class, the Secrets that its driver writes. */
  writes?: readonly string[];
  /** It writes none, and workloads restart by the versions that its driver reports. */
  hasVersions?: boolean;
}

export interface ReloaderSource {
  kind: ChosenKind;
  name: string;
}

/** Where Reloader looks too. The login to a registry or a volume is nobody's configuration, and may be another every few hours. */
const PLACES: readonly PodPlace[] = ["env", "envFrom", "volume", "projected"];
const isRead = ({ kind, by }: PodReference) => kind === "SecretProviderClass" || PLACES.includes(by);

/** More are no choice: it would be all that there is, whatever comes. */
const MAX_SOURCES = 256;
const MAX_PATTERNS = 64;
/** Of patterns times names, in instructions times characters, for one workload: some 50 ms, and 0.2 s at worst. */
const MAX_EFFORT = 5_000_000;
/** For all of a namespace, each time that it is looked at. */
const MAX_IN_ALL = 10 * MAX_EFFORT;

const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
/** One of these is itself and nothing else. */
const PLAIN = /^[-a-z0-9]*$/;
const MAX_NAME_LENGTH = 253;

/** Whether it has to be known which SecretProviderClasses there are. Few workloads have to do with one. */
export function concernsClasses({ rules }: Pick<ReloadRules, "rules">, references: readonly PodReference[]): boolean {
  const { auto, search, listed } = rules.SecretProviderClass;
  return listed.length > 0 || ((auto || search) && namesIn(references, "SecretProviderClass").length > 0);
}

/** Of one kind. */
interface Names {
  readonly all: string[];
  readonly matched: Set<string>;
  readonly ignored: Set<string>;
  /** By pattern, those that it finds. */
  readonly found: Map<string, readonly string[]>;
}

/** What there is in a namespace. What one workload has had looked up is there for the next. */
export class There {
  readonly #names: Readonly<Record<ChosenKind, Names>>;
  readonly #writes = new Map<string, readonly string[]>();
  readonly #versioned = new Set<string>();
  readonly #mostForOne: number;
  #left: number;

  constructor(present: readonly Present[], mostForOne = MAX_EFFORT, mostInAll = MAX_IN_ALL) {
    this.#mostForOne = mostForOne;
    this.#left = mostInAll;
    const none = (): Names => ({ all: [], matched: new Set(), ignored: new Set(), found: new Map() });
    this.#names = { Secret: none(), ConfigMap: none(), SecretProviderClass: none() };
    for (const { kind, name, mark, writes, hasVersions } of present) {
      const { all, matched, ignored } = this.#names[kind];
      all.push(name);
      if (writes !== undefined) this.#writes.set(name, writes);
      if (hasVersions) this.#versioned.add(name);
      if (mark === "match") matched.add(name);
      if (mark === "ignore") ignored.add(name);
    }
  }

  /** Sources in the order of kinds and names; none if that can't be told, which is said then. */
  chosen(
    { rules }: Pick<ReloadRules, "rules">,
    references: readonly PodReference[],
  ): { sources: ReloaderSource[]; mistakes: string[] } {
    const mistakes: string[] = [];
    const most = Math.min(this.#mostForOne, this.#left);
    const effort = { left: most };
    const chosen = (kind: ChosenKind, written: readonly string[] = []) => {
      const [referred, there] = [namesIn(references, kind), this.#names[kind]];
      return [...chosenOf(rules[kind], referred, there, effort, mistakes, written)].sort();
    };
    const classes = chosen("SecretProviderClass");
    const written = classes.flatMap((name) => this.#writtenBy(name, rules, mistakes));
    const versioned = classes.filter((name) => this.#versioned.has(name));
    const sources = [
      ...SOURCE_KINDS.flatMap((kind) =>
        chosen(kind, kind === "Secret" ? written : []).map((name): ReloaderSource => ({ kind, name })),
      ),
      ...versioned.map((name): ReloaderSource => ({ kind: "SecretProviderClass", name })),
    ];
    this.#left = Math.max(0, this.#left - (most - effort.left));
    if (effort.left < 0)
      mistakes.push(
        "restarts for nothing, as patterns take too long on so many names here; list fewer, or plain names",
      );
    else if (sources.length > MAX_SOURCES)
      mistakes.push(`restarts for nothing, as it would for ${sources.length} sources; list ${MAX_SOURCES} at most`);
    else return { sources, mistakes };
    return { sources: [], mistakes };
  }

  /** None of one that is not there: it may be some day. */
  #writtenBy(name: string, rules: ReloadRules["rules"], mistakes: string[]): readonly string[] {
    const writes = this.#writes.get(name);
    // Who means all that his pods refer to need not mean this one.
    if (writes?.length === 0 && rules.SecretProviderClass.isOwn && !this.#versioned.has(name))
      mistakes.push(
        `the SecretProviderClass ${name} writes no Secret, by which alone a change of its values is seen here; give it spec.secretObjects, or set reloader.providerClasses in the configuration of Inlay`,
      );
    return writes ?? [];
  }
}

const WRONG = {
  Invalid: "is no regular expression; mend it",
  TooLarge: "is too large a regular expression; write a shorter one, or list plain names",
};

function chosenOf(
  { auto, search, listed, excluded, isIgnored, listedBy }: Rule,
  referred: readonly string[],
  there: Names,
  effort: Effort,
  mistakes: string[],
  written: readonly string[],
): Set<string> {
  if (isIgnored) return new Set();
  const chosen = new Set(auto ? [...written, ...referred] : written);
  if (search) for (const name of referred) if (there.matched.has(name)) chosen.add(name);
  if (listed.length > MAX_PATTERNS)
    mistakes.push(`${listedBy} has ${listed.length} entries, of which the first ${MAX_PATTERNS} count; list fewer`);
  for (const entry of listed.slice(0, MAX_PATTERNS)) {
    // Whether it is there or not: what is named is waited for, and when it is back it is compared with what it was.
    if (NAME.test(entry) && entry.length <= MAX_NAME_LENGTH) chosen.add(entry);
    if (PLAIN.test(entry)) continue;
    // Anchored as Reloader does it.
    const pattern = compilePattern(`^${entry}$`, effort);
    if (pattern === undefined) break;
    if (typeof pattern === "string") mistakes.push(`${listedBy}: ${shown(entry)} ${WRONG[pattern]}`);
    else for (const name of foundBy(pattern, entry, there, effort)) chosen.add(name);
  }
  for (const name of chosen) if (there.ignored.has(name) || excluded.has(name)) chosen.delete(name);
  return chosen;
}

const namesIn = (references: readonly PodReference[], kind: ChosenKind) =>
  references.flatMap((each) => (each.kind === kind && isRead(each) ? each.name : []));

function foundBy(pattern: Pattern, entry: string, { all, found }: Names, effort: Effort): readonly string[] {
  const known = found.get(entry);
  effort.left -= known?.length ?? 0;
  if (known !== undefined) return known;
  const names: string[] = [];
  for (const name of all) {
    const isFound = pattern.isFoundIn(name, effort);
    if (isFound === undefined) return [];
    if (isFound) names.push(name);
  }
  found.set(entry, names);
  return names;
}
