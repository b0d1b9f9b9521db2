/** What stands on a command line comes in, what it means goes out, for more than one subcommand. */
import { InvalidArgumentError } from "commander";

/** A name that is none, such as a variable that was not filled in, would be refused only by the API server, and for ever. */
export function namespaceName(text: string): string {
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)) return text;
  throw new InvalidArgumentError("Give the name of one namespace.");
}

/** The name of an object goes into an address. */
export function objectName(text: string): string {
  if (text.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(text)) return text;
  throw new InvalidArgumentError("Give the name of one object; its namespace goes into -n.");
}
