/** Matches names against globs: `*` matches any characters, `?` matches one character. */

/** The steps that a caller may still spend on matching. Below zero, the caller has spent too many. */
export interface Effort {
  left: number;
}

export type NameMatcher = (name: string, effort?: Effort) => boolean;

export function isGlob(text: string): boolean {
  return /[*?]/.test(text);
}

/** A name matches if `names` has a match, or is not given, and `exceptNames` has none. */
export function nameMatcher(
  names: readonly string[] | undefined,
  exceptNames?: readonly string[] | undefined,
): NameMatcher {
  const isIncluded = names === undefined ? () => true : anyOf(names);
  if (exceptNames === undefined) return isIncluded;
  const isExcepted = anyOf(exceptNames);
  return (name, effort) => isIncluded(name, effort) && !isExcepted(name, effort);
}

function anyOf(globs: readonly string[]): NameMatcher {
  const plain = new Set(globs.filter((glob) => !isGlob(glob)));
  const others = globs.filter(isGlob).map((glob) => new Glob(glob));
  return (name, effort = { left: 0 }) => plain.has(name) || others.some((glob) => glob.matches(name, effort));
}

const BITS = 32;

/**
 * Reads a name once, with one bit for each position in the glob that it may have reached. So every glob is fast.
 * Backtracking to the last `*` takes up to 40 times as long, and RE2 even longer (docs/decisions/0038).
 */
class Glob {
  /** The text before the first wildcard, and after the last one: most names differ there. */
  readonly #prefix: string;
  readonly #suffix: string;
  readonly #isSimple: boolean;
  readonly #words: number;
  /** The positions of each `*`, where any character matches. */
  readonly #stars: Uint32Array;
  /** The positions that match a character. */
  readonly #passes = new Map<string, Uint32Array>();
  /** The positions that match a character which is not in the glob. */
  readonly #others: Uint32Array;
  readonly #end: number;

  constructor(text: string) {
    this.#prefix = text.slice(0, text.search(/[*?]/));
    this.#suffix = /[^*?]*$/.exec(text)?.[0] ?? "";
    this.#isSimple = text === `${this.#prefix}*${this.#suffix}`;
    const symbols = [...text].filter((symbol) => symbol !== "*");
    this.#end = symbols.length;
    this.#words = Math.floor(symbols.length / BITS) + 1;
    this.#stars = new Uint32Array(this.#words);
    this.#others = new Uint32Array(this.#words);
    let place = 0;
    for (const symbol of text) {
      if (symbol === "*") set(this.#stars, place);
      else {
        if (symbol === "?") set(this.#others, place);
        place += 1;
      }
    }
    for (const symbol of new Set(symbols)) this.#passes.set(symbol, this.#others.slice());
    for (const [at, symbol] of symbols.entries()) set(this.#passes.get(symbol) as Uint32Array, at);
  }

  matches(name: string, effort: Effort): boolean {
    effort.left -= 1;
    if (!name.startsWith(this.#prefix) || !name.endsWith(this.#suffix)) return false;
    if (name.length < this.#prefix.length + this.#suffix.length) return false;
    if (this.#isSimple) return true;
    const reached = new Uint32Array(this.#words);
    set(reached, 0);
    for (const character of name) {
      effort.left -= this.#words;
      if (!this.#advance(reached, this.#passes.get(character) ?? this.#others)) return false;
    }
    return ((reached[this.#end >>> 5] as number) >>> (this.#end & 31)) % 2 === 1;
  }

  /** Returns whether any place is reached. */
  #advance(reached: Uint32Array, passes: Uint32Array): boolean {
    let [carry, any] = [0, 0];
    for (let word = 0; word < this.#words; word++) {
      const now = reached[word] as number;
      const passed = now & (passes[word] as number);
      const next = (passed << 1) | carry | (now & (this.#stars[word] as number));
      carry = passed >>> (BITS - 1);
      reached[word] = next;
      any |= next;
    }
    return any !== 0;
  }
}

function set(bits: Uint32Array, at: number): void {
  const word = Math.floor(at / BITS);
  bits[word] = (bits[word] as number) | (1 << (at % BITS));
}
