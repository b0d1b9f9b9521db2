/** Measures how deep a template is nested before it is parsed: Handlebars takes time with the square of the depth. */

/** The beginning of a mustache. */
const TAG = /\{+[~&]*(!--|!|\s*else\b|[#^/])?/y;
/** `{{^}}` is an else, but `{{^if a.b}}` a block. */
const CLOSES = /\s*~?\}\}/y;
/** Quoted parts, in which braces and parentheses don't count, as in Handlebars' lexer. */
const QUOTED = /"(?:\\"|[^"])*"|'(?:\\'|[^'])*'|\[(?:\\\]|[^\]])*\]/y;

/**
 * The depth of nested calls or blocks; each `else` adds one. Reads braces, quotes and comments as Handlebars' lexer
 * does.
 */
export function nestingOf(text: string): number {
  let deepest = 0;
  /** The number of branches of each open block. */
  const blocks: number[] = [];
  for (let at = text.indexOf("{{"); at >= 0; at = text.indexOf("{{", at)) {
    const isEscaped = text[at - 1] === "\\" && text[at - 2] !== "\\";
    if (isEscaped) {
      at += 2;
      continue;
    }
    TAG.lastIndex = at;
    const [head = "", tag = ""] = TAG.exec(text) ?? [];
    if (tag.startsWith("!")) {
      const end = text.indexOf(tag === "!--" ? "--" : "}}", at + head.length);
      at = end < 0 ? text.length : end;
      continue;
    }
    CLOSES.lastIndex = at + head.length;
    if (tag.endsWith("else") || (tag === "^" && CLOSES.test(text))) blocks.push((blocks.pop() ?? 0) + 1);
    else if (tag === "#" || tag === "^") blocks.push(1);
    else if (tag === "/") blocks.pop();
    const { end, calls } = expressions(text, at + head.length);
    deepest = Math.max(deepest, calls, sum(blocks));
    at = end;
  }
  return deepest;
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

/** The position after the closing braces, and the depth of calls in them. */
function expressions(text: string, from: number): { end: number; calls: number } {
  let [depth, calls] = [0, 0];
  for (let at = from; at < text.length; at++) {
    const character = text[at];
    if (character === "}" && text[at + 1] === "}") return { end: at + 2, calls };
    QUOTED.lastIndex = at;
    const quoted = QUOTED.exec(text)?.[0];
    if (quoted !== undefined) at += quoted.length - 1;
    else if (character === "(") calls = Math.max(calls, ++depth);
    else if (character === ")") depth--;
  }
  return { end: text.length, calls };
}
