/** Parses arguments of the command line that several subcommands share. */
import { InvalidArgumentError } from "commander";

/** Refuses an invalid name, such as an unset variable, at once. The API server would refuse it at every request. */
export function namespaceName(text: string): string {
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)) return text;
  throw new InvalidArgumentError("Set it to the name of one namespace.");
}

/** The name becomes a part of a URL. */
export function objectName(text: string): string {
  if (text.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(text)) return text;
  throw new InvalidArgumentError("Set it to the name of one object, and -n to its namespace.");
}
