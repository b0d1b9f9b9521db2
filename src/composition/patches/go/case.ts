/** Changes the case of strings like Go: each character to exactly one other. Replaces bytes that are not UTF-8. */

/** Greek letters with an iota subscript, whose other case in JavaScript has two letters. */
const WITH_IOTA = /[\u1f80-\u1f87\u1f90-\u1f97\u1fa0-\u1fa7\u1fb3\u1fc3\u1ff3]/;
const DOTTED_I = "\u0130";

export function toUpper(text: string): string {
  return /^[\0-\x7f]*$/.test(text) ? text.toUpperCase() : Array.from(text.toWellFormed(), upper).join("");
}

export function toLower(text: string): string {
  return /^[\0-\x7f]*$/.test(text) ? text.toLowerCase() : Array.from(text.toWellFormed(), lower).join("");
}

function upper(character: string): string {
  const [upper, more] = character.toUpperCase();
  if (upper !== undefined && more === undefined) return upper;
  if (!WITH_IOTA.test(character)) return character;
  const code = character.charCodeAt(0);
  return String.fromCharCode(code + (code < 0x1fb0 ? 8 : 9));
}

function lower(character: string): string {
  return character === DOTTED_I ? "i" : character.toLowerCase();
}
