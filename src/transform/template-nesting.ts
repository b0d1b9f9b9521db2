/** Measures how deep a template nests before it is parsed: Handlebars takes time with the square of that. */

/** What a mustache begins with. */
const TAG = /\{+[~&]*(!--|!|\s*else\b|[#^/])?/y;
/** `{{^}}` is an else, and `{{^if a.b}}` a block. */
const CLOSES = /\s*~?\}\}/y;
/** What may hold braces and parentheses that mean nothing, as Handlebars' lexer has it. */
const QUOTED = /"(?:\\"|[^"])*"|'(?:\\'|[^'])*'|\[(?:\\\]|[^\]])*\]/y;

/** How deep calls or blocks nest, an `else` as one more. Reads braces, quotes and comments as Handlebars' lexer does. */
export function nestingOf(text: string): number {
  let deepest = 0;
  /** Each block that is open, with its branches. */
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

/** Where the braces close, and how deep calls stand in them. */
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
