/**
 * Regular expressions of users, in Go's syntax (RE2). Matching takes time in proportion to the length of the text times
 * the size of the compiled pattern. A few characters such as `(.{0,1000})` compile to thousands of instructions. So
 * callers pay for both from an effort, before the work begins.
 */
import { RE2JS } from "re2js";
import type { Effort } from "./glob.ts";
import { BoundedMap } from "./maps.ts";

/** `TooLarge`: compiling it takes too long. */
type CompiledPattern = Pattern | "Invalid" | "TooLarge";

const MAX_LENGTH = 1024;
/** In instructions: about 10 ms to compile, and less than a megabyte of memory. */
const MAX_SIZE = 4_000;
/** The limit of all cached patterns together, in instructions. An instruction takes up to 600 bytes: 24 MB at most. */
const MAX_CACHED_SIZE = 40_000;
/** Compiling an instruction takes as long as matching this many characters. */
const COMPILE_EFFORT = 100;
/** The fixed cost of each match, in characters. */
const MATCH_EFFORT = 10;
/** A class of Unicode, such as `\pL`, contains hundreds of ranges. */
const UNICODE_CLASS_SIZE = 50;

/** A character of a class is part of no instruction, but costs a quarter of one. */
const CHARACTERS_IN_SIZE = 4;
/** Where case is ignored, this many characters of a range cost as much as an instruction. */
const FOLDED_IN_SIZE = 50;
/** The last character that has another case. */
const LAST_FOLDED = 0x1e943;

/** A group that ignores case, as in `(?i)` and `(?s-i:`. */
const FOLDING = /\(\?[a-z-]*i/i;
const ESCAPED = /\\(?:x\{?([\da-f]+)|([0-7]{1,3}))/gi;
const TOKEN = /\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|./gsu;

const cache = new BoundedMap<string, CompiledPattern>(Number.POSITIVE_INFINITY, MAX_CACHED_SIZE, (_, text) =>
  sizeOf(text),
);

export class Pattern {
  /** An upper bound of its compiled instructions. */
  readonly size: number;
  readonly #program: RE2JS;

  /** Throws if the text is not a pattern. */
  constructor(text: string, size: number) {
    this.size = size;
    this.#program = RE2JS.compile(text);
  }

  /** The number of its groups, without the whole match. */
  get groups(): number {
    return this.#program.groupCount();
  }

  /** Whether it matches anywhere in the text; undefined if too little effort is left. */
  isFoundIn(text: string, effort: Effort): boolean | undefined {
    const found = this.groupIn(text, 0, effort);
    return found === undefined ? undefined : found !== null;
  }

  /**
   * The text of a group in the first match: empty if the group takes no part in it, null if nothing matches, undefined
   * if too little effort is left.
   */
  groupIn(text: string, group: number, effort: Effort): string | null | undefined {
    effort.left -= this.size * (text.length + MATCH_EFFORT);
    if (effort.left < 0) return undefined;
    // Not `test`: its cache of states takes megabytes for each pattern.
    const matcher = this.#program.matcher(text);
    return matcher.find() ? (matcher.group(group) ?? "") : null;
  }
}

/**
 * The compiled pattern; undefined if too little effort is left. A cached pattern costs the same effort, so that the
 * outcome does not depend on the cache.
 */
export function compilePattern(text: string, effort: Effort): CompiledPattern | undefined {
  const size = text.length > MAX_LENGTH ? Number.POSITIVE_INFINITY : sizeOf(text);
  if (size > MAX_SIZE) return "TooLarge";
  effort.left -= size * COMPILE_EFFORT;
  if (effort.left < 0) return undefined;
  const known = cache.get(text);
  if (known !== undefined) return known;
  const pattern = compiled(text, size);
  cache.set(text, pattern);
  return pattern;
}

function compiled(text: string, size: number): CompiledPattern {
  try {
    return new Pattern(text, size);
  } catch {
    return "Invalid";
  }
}

/**
 * An upper bound of the compiled instructions: a counted repetition compiles to that many copies of its content. The
 * ranges of classes count separately, because the copies share them.
 */
function sizeOf(pattern: string): number {
  /** One size for each open group, and one for the whole pattern. */
  const sizes = [4 + Math.floor(pattern.length / CHARACTERS_IN_SIZE) + Math.floor(foldedBy(pattern) / FOLDED_IN_SIZE)];
  let last = 0;
  const add = (size: number) => {
    last = size;
    sizes.push((sizes.pop() ?? 0) + size);
  };
  for (const [token, least, most] of pattern.matchAll(TOKEN)) {
    if (token === "(") sizes.push(2);
    else if (token === ")") add(sizes.pop() ?? 0);
    else if (least !== undefined) add((last + 1) * Math.max(Number(least), Number(most || Number(least) + 1)));
    // A star over content that may be empty needs one more instruction.
    else if (/^[*+?]$/.test(token)) sizes.push((sizes.pop() ?? 0) + (token === "*" ? 2 : 1));
    else if (token.startsWith("\\Q")) add(token.length);
    else add(1 + UNICODE_CLASS_SIZE * (token.match(/\\p/gi)?.length ?? 0));
  }
  return sizes.reduce((sum, size) => sum + size, 0);
}

/**
 * An upper bound of the characters whose other cases the parser looks up. No range is wider than the last character in
 * the pattern, escaped or not. An unclosed class counts too: the parser detects it only after all its ranges.
 */
function foldedBy(pattern: string): number {
  if (!FOLDING.test(pattern)) return 0;
  let last = 0;
  for (const character of pattern) last = Math.max(last, character.codePointAt(0) ?? 0);
  for (const [, hex, octal] of pattern.matchAll(ESCAPED))
    last = Math.max(last, Number.parseInt(hex ?? octal ?? "", hex === undefined ? 8 : 16));
  return (pattern.split("-").length - 1) * Math.min(last, LAST_FOLDED);
}
