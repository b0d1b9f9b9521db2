/** Chooses the sources that each workload of a namespace restarts for, from its rules and the references of its pods. No I/O. */
import type { ReloaderMark } from "../../api/reloader.ts";
import type { Effort } from "../../apimachinery/glob.ts";
import { isObjectName } from "../../apimachinery/objects.ts";
import { compilePattern, type Pattern } from "../../apimachinery/pattern.ts";
import type { PodPlace, PodReference } from "../../workloads/pod-references.ts";
import { type ChosenKind, type ReloadRules, type Rule, SOURCE_KINDS, shown } from "./annotations.ts";

/** A source that exists. */
export interface Present {
  kind: ChosenKind;
  name: string;
  mark?: ReloaderMark | undefined;
  /** For a SecretProviderClass, the Secrets that its driver writes. */
  writes?: readonly string[];
  /** The Secrets that its driver writes are too many to be known. */
  isTooLarge?: true;
  /** It writes no Secret, and workloads restart by the versions that its driver reports. */
  hasVersions?: boolean;
}

export interface ReloaderSource {
  kind: ChosenKind;
  name: string;
}

/**
 * The references that Reloader follows too. Logins to registries or volumes are no configuration of the workload, and may change
 * often.
 */
const PLACES: readonly PodPlace[] = ["env", "envFrom", "volume", "projected"];
const isRead = ({ kind, by }: PodReference) => kind === "SecretProviderClass" || PLACES.includes(by);

/** A list with more sources is no selection: it would match whatever is created. */
const MAX_SOURCES = 256;
const MAX_PATTERNS = 64;
/** The effort of matching patterns with names for one workload, in instructions times characters: about 50 ms, at most 0.2 s. */
const MAX_EFFORT = 5_000_000;
/** The effort for all workloads of a namespace, at each reconcile. */
const MAX_IN_ALL = 10 * MAX_EFFORT;

/** An entry of this form is a name and not a pattern. */
const PLAIN = /^[-a-z0-9]*$/;

/** Whether the SecretProviderClasses must be known. Few workloads use one. */
export function concernsClasses({ rules }: Pick<ReloadRules, "rules">, references: readonly PodReference[]): boolean {
  const { auto, search, listed } = rules.SecretProviderClass;
  return listed.length > 0 || ((auto || search) && namesIn(references, "SecretProviderClass").length > 0);
}

/** Whether the references of its pods decide for which sources a workload restarts. */
export const followsReferences = ({ rules }: Pick<ReloadRules, "rules">): boolean =>
  Object.values(rules).some(({ auto, search }) => auto || search);

/** The names of one kind. */
interface Names {
  readonly all: string[];
  readonly matched: Set<string>;
  readonly ignored: Set<string>;
  /** The names that a pattern matches, by pattern. */
  readonly found: Map<string, readonly string[]>;
}

/** The sources of a namespace. Workloads share the results of patterns. */
export class NamespaceSources {
  readonly #names: Readonly<Record<ChosenKind, Names>>;
  readonly #classes = new Map<string, Present>();
  readonly #mostForOne: number;
  #left: number;

  constructor(present: readonly Present[], mostForOne = MAX_EFFORT, mostInAll = MAX_IN_ALL) {
    this.#mostForOne = mostForOne;
    this.#left = mostInAll;
    const none = (): Names => ({ all: [], matched: new Set(), ignored: new Set(), found: new Map() });
    this.#names = { Secret: none(), ConfigMap: none(), SecretProviderClass: none() };
    for (const each of present) {
      const { kind, name, mark } = each;
      const { all, matched, ignored } = this.#names[kind];
      all.push(name);
      if (kind === "SecretProviderClass") this.#classes.set(name, each);
      if (mark === "match") matched.add(name);
      if (mark === "ignore") ignored.add(name);
    }
  }

  /**
   * Sources in the order of kinds and names. If they can't be determined, none, and a mistake that says why. `unread` are classes of which
   * it is not known what they write.
   */
  chosen(
    { rules }: Pick<ReloadRules, "rules">,
    references: readonly PodReference[],
  ): { sources: ReloaderSource[]; mistakes: string[]; unread: string[] } {
    const mistakes: string[] = [];
    const most = Math.min(this.#mostForOne, this.#left);
    const effort = { left: most };
    const chosen = (kind: ChosenKind, written: readonly string[] = []) => {
      const [referred, there] = [namesIn(references, kind), this.#names[kind]];
      return [...chosenOf(rules[kind], referred, there, effort, mistakes, written)].sort();
    };
    const classes = chosen("SecretProviderClass");
    const unread = classes.filter((name) => this.#classes.get(name)?.isTooLarge);
    const written = classes.flatMap((name) => this.#writtenBy(name, rules, mistakes));
    effort.left -= written.length;
    const versioned = classes.filter((name) => this.#classes.get(name)?.hasVersions);
    const sources = [
      ...SOURCE_KINDS.flatMap((kind) =>
        chosen(kind, kind === "Secret" ? written : []).map((name): ReloaderSource => ({ kind, name })),
      ),
      ...versioned.map((name): ReloaderSource => ({ kind: "SecretProviderClass", name })),
    ];
    this.#left = Math.max(0, this.#left - (most - effort.left));
    if (effort.left < 0)
      mistakes.push(
        "does not restart for its sources: matching the patterns takes too long with this many names; list fewer patterns, or plain names",
      );
    else if (sources.length > MAX_SOURCES)
      mistakes.push(`does not restart for its sources: ${sources.length} sources match; list at most ${MAX_SOURCES}`);
    else return { sources, mistakes, unread };
    return { sources: [], mistakes, unread };
  }

  /** Empty for a class that does not exist: it may be created later. */
  #writtenBy(name: string, rules: ReloadRules["rules"], mistakes: string[]): readonly string[] {
    const { writes, hasVersions } = this.#classes.get(name) ?? {};
    // A user who chooses all references of the pods need not mean this class.
    if (writes?.length === 0 && rules.SecretProviderClass.isOwn && !hasVersions)
      mistakes.push(
        `the SecretProviderClass ${name} writes no Secret, so Inlay can't see its values change; add spec.secretObjects to it, or set reloader.providerClasses in the configuration of Inlay`,
      );
    return writes ?? [];
  }
}

const WRONG = {
  Invalid: "is not a regular expression of RE2; see https://golang.org/s/re2syntax",
  TooLarge: "is too large a regular expression; shorten it, or list plain names",
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
    mistakes.push(`${listedBy} has ${listed.length} entries, and only the first ${MAX_PATTERNS} count; list fewer`);
  for (const entry of listed.slice(0, MAX_PATTERNS)) {
    // A name counts whether the source exists or not: Inlay waits for it, and compares its values when it exists again.
    if (isObjectName(entry)) chosen.add(entry);
    if (PLAIN.test(entry)) continue;
    // Reloader anchors patterns in the same way.
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
