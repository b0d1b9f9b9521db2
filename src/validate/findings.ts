/** The result of `inlay validate`, and its text. Pure. */
import { plain } from "../apimachinery/plain.ts";
import type { Mistake } from "../render/documents.ts";

/** One error or warning. The message contains no value of a Secret. */
export type Finding = Mistake & { readonly severity: "error" | "warning" };

export interface Validation {
  /** Errors and warnings, by file and line. */
  errors: Finding[];
  /** What was not checked, and what to add so that it is. */
  notes: string[];
  checked: { files: number; objects: number };
}

export const finding = (severity: Finding["severity"], mistake: Mistake): Finding => {
  const { file, line, column, reason, message } = mistake;
  return { file, line, column, severity, reason, message };
};

/** `strict`: warnings are errors too. */
export const isFailed = ({ errors }: Validation, strict: boolean): boolean =>
  errors.some(({ severity }) => strict || severity === "error");

/** One line for each finding, in the form that editors and CI recognize, and a summary. */
export function validationText({ errors, notes, checked }: Validation): string[] {
  const count = (severity: Finding["severity"]) => {
    const { length } = errors.filter((each) => each.severity === severity);
    return `${length} ${severity}${length === 1 ? "" : "s"}`;
  };
  const lines = errors.map(({ file, line, column, severity, reason, message }) =>
    plain(`${file}:${line}:${column}: ${severity}: ${message} (${reason})`),
  );
  const objects = `${checked.objects} object${checked.objects === 1 ? "" : "s"} of Inlay`;
  const files = `${checked.files} file${checked.files === 1 ? "" : "s"}`;
  return [
    ...lines,
    ...notes.map((note) => plain(`note: ${note}`)),
    `${objects} in ${files}: ${count("error")}, ${count("warning")}`,
  ];
}
