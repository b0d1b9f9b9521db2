/** Names the object and the fields of a request that writes. Never returns a value. Pure. */
import { isObject, parseJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import type { Request } from "./transport.ts";

export interface WriteTarget {
  /** The resource, with its group and subresource, such as `deployments.apps` or `secretbindings.inlay.dev/status`. */
  readonly resource: string;
  readonly namespace?: string;
  readonly name?: string;
}

const PATH =
  /^\/(?:api\/[^/]+|apis\/([^/]+)\/[^/]+)(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?(?:\/(.+))?$/;
/** The identity of the object, which is not written. */
const IDENTITY = new Set([
  "apiVersion",
  "kind",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "metadata.resourceVersion",
]);
const MAX_FIELDS = 50;

/** The object of a URL path, without its query. */
export function writeTarget(path: string): WriteTarget {
  const [, group, namespace, plural = "", name, part] = PATH.exec(path) ?? [];
  const resource = [plural + (group === undefined ? "" : `.${group}`), ...(part === undefined ? [] : [part])].join("/");
  return {
    resource,
    ...(namespace !== undefined && { namespace: decodeURIComponent(namespace) }),
    ...(name !== undefined && { name: decodeURIComponent(name) }),
  };
}

/** The paths that the body of a request sets, at most 50. A list counts as one field. */
export function bodyFields({ method, body, contentType }: Pick<Request, "method" | "body" | "contentType">): string[] {
  if (body === undefined || method === "DELETE") return [];
  const content = parseJson(body) as JsonValue;
  const all =
    contentType === "application/json-patch+json"
      ? (content as { op: string; path: string }[]).flatMap(({ op, path }) => (op === "test" ? [] : [path]))
      : [...leavesOf(content as JsonObject, "")].filter((each) => !IDENTITY.has(each));
  const fields = [...new Set(all)].sort();
  return fields.length <= MAX_FIELDS
    ? fields
    : [...fields.slice(0, MAX_FIELDS), `and ${fields.length - MAX_FIELDS} more`];
}

function* leavesOf(object: JsonObject, above: string): Generator<string> {
  for (const [key, value] of Object.entries(object)) {
    const step = /^[\w-]+$/.test(key) ? key : `["${key}"]`;
    const path = above === "" ? step : step.startsWith("[") ? above + step : `${above}.${step}`;
    if (isObject(value) && Object.keys(value).length > 0) yield* leavesOf(value, path);
    else yield path;
  }
}
