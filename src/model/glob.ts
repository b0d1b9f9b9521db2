/** Globs come in, whether a name matches one of them goes out: `*` is any characters, `?` is one, the rest is itself. */

export function isGlob(text: string): boolean {
  return /[*?]/.test(text);
}

/** A name matches if it matches one of the globs, or if there are none. */
export function nameMatcher(globs: readonly string[] | undefined): (name: string) => boolean {
  if (globs === undefined) return () => true;
  const plain = new Set(globs.filter((glob) => !isGlob(glob)));
  const others = globs.filter(isGlob).map((glob) => glob.split(/\*+/));
  return (name) => plain.has(name) || others.some((parts) => matches(name, parts));
}

/** Takes each part at the first place where it fits: no glob, however written, makes that slow. */
function matches(name: string, parts: readonly string[]): boolean {
  const first = parts[0] as string;
  const last = parts.at(-1) as string;
  if (parts.length === 1) return name.length === first.length && fits(name, first, 0);
  if (name.length < first.length + last.length) return false;
  if (!fits(name, first, 0) || !fits(name, last, name.length - last.length)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    while (at + part.length <= name.length && !fits(name, part, at)) at++;
    at += part.length;
  }
  return at <= name.length - last.length;
}

function fits(name: string, part: string, at: number): boolean {
  for (let i = 0; i < part.length; i++) if (part[i] !== "?" && part[i] !== name[at + i]) return false;
  return true;
}
