/** Parses arguments of the command line that several subcommands share. */
import { InvalidArgumentError, Option } from "commander";
import { type NamedObject, namedObject } from "../actions/object.ts";
import { parseDuration } from "../apimachinery/duration.ts";
import { isObjectName } from "../apimachinery/objects.ts";

/** Refuses an invalid name, such as an unset variable, at once. The API server would refuse it at every request. */
export function namespaceName(text: string): string {
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)) return text;
  throw new InvalidArgumentError("Set it to the name of one namespace.");
}

/** The option `-n`. `of` says what is in the namespace, and where its default is from. */
export const namespaceOption = (of: string, byDefault?: string): Option =>
  new Option("-n, --namespace <namespace>", `namespace of ${of}`).argParser(namespaceName).default(byDefault);

/** A name of a SecretBinding, or KIND/NAME. */
export function kindAndName(text: string): NamedObject {
  try {
    return namedObject(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}

/** A name of a SecretBinding, or the kind and name of any other object. */
export function bindingOrObject(text: string): { kind?: string; name: string } {
  const [, kind, name = ""] = /^(?:([a-z0-9][a-z0-9.-]*)\/)?(.*)$/is.exec(text) ?? [];
  const isBinding = kind === undefined || /^(sb|secretbindings?(\.inlay\.dev)?)$/i.test(kind);
  return { ...(!isBinding && { kind }), name: objectName(name) };
}

/** A duration such as 30s or 5m, in milliseconds. */
export function milliseconds(text: string): number {
  try {
    return parseDuration(text);
  } catch {
    throw new InvalidArgumentError("Set it to a duration, such as 30s or 5m.");
  }
}

/** The name becomes a part of a URL. */
export function objectName(text: string): string {
  if (isObjectName(text)) return text;
  throw new InvalidArgumentError("Set it to the name of one object, and -n to its namespace.");
}
