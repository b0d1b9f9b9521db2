/** Validates texts as if each was a file. */
import type { Validation } from "../../../src/validate/findings.ts";
import { validate } from "../../../src/validate/validate.ts";

export function validateTexts(texts: Record<string, string>, crds: Record<string, string> = {}): Promise<Validation> {
  const filesOf = (all: Record<string, string>) =>
    Object.entries(all).map(([name, text]) => ({ name, text, isFound: true }));
  return validate({ files: filesOf(texts), crds: filesOf(crds), namespace: "default" });
}

/** `line:column severity reason` of each finding in the file. */
export async function found(text: string, crds: Record<string, string> = {}): Promise<string[]> {
  const { errors } = await validateTexts({ "a.yaml": text }, crds);
  return errors.map(({ line, column, severity, reason }) => `${line}:${column} ${severity} ${reason}`);
}
