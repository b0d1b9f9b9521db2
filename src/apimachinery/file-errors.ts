/** Says in words why a file can't be read. Node's own messages name only a code. */

const WHY: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file; correct the path, or create it",
  ENOTDIR: "a part of the path is a file, not a folder; correct the path",
  EISDIR: "this is a folder; write the path of a file in it",
  EACCES: "you may not read this file; correct its permissions",
  EPERM: "you may not read this file; correct its permissions",
};

/** Undefined for an error of another kind. */
export function whyUnreadable(error: unknown): string | undefined {
  const { code = "" } = error as { code?: string };
  return WHY[code];
}
