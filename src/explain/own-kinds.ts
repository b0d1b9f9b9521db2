/** Compares Inlay's kinds in a cluster with those of this program, to notice an older Inlay or none. Needs no permission of RBAC. */
import { OWN_SCHEMAS } from "../api/own-schemas.ts";
import { apiVersionOf } from "../apimachinery/objects.ts";
import type { KindSchema, OpenApiSchema } from "../apimachinery/openapi.ts";
import { OWN_RESOURCES } from "../apimachinery/resources.ts";
import { ApiError } from "../kube/api-error.ts";
import type { Discovery } from "../kube/discovery.ts";
import { Schemas } from "../kube/schemas.ts";
import type { RequestSender } from "../kube/transport.ts";

const META = ["apiVersion", "kind", "metadata"];

/** What is wrong with Inlay's kinds in a cluster, in one line that says what to do. */
interface KindsProblem {
  /** Inlay is not installed at all. */
  readonly isAbsent: boolean;
  readonly message: string;
}

/**
 * Undefined if the cluster serves every field of Inlay's kinds that this program of that version knows, or if that can't be known at the
 * moment.
 */
export async function ownKindsProblem(
  transport: RequestSender,
  discovery: Pick<Discovery, "byKindAsNamed">,
  version: string,
): Promise<KindsProblem | undefined> {
  try {
    const schemas = new Schemas(transport);
    const seen = await Promise.all(
      OWN_RESOURCES.map(async (resource) => {
        const isServed = (await discovery.byKindAsNamed(apiVersionOf(resource), resource.kind)) !== undefined;
        return { resource, isServed, served: isServed ? await schemas.of(resource) : undefined };
      }),
    );
    if (!seen.some(({ isServed }) => isServed)) return { isAbsent: true, message: ABSENT };
    for (const { resource, isServed, served } of seen) {
      const { kind } = resource;
      const own = OWN_SCHEMAS.get(kind);
      if (!isServed) return { isAbsent: false, message: older(version, `it has no ${kind}`) };
      const path = own && served && missingField(own, served.root, served.resolve);
      if (path !== undefined) return { isAbsent: false, message: older(version, `its ${kind} has no ${path}`) };
    }
    return undefined;
  } catch (error) {
    // The command itself reports that the API server does not answer.
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

const ABSENT =
  "Inlay is not installed in this cluster: it serves no SecretBinding of inlay.dev/v1alpha1; install it, as docs/tasks/install.md describes";
const older = (version: string, what: string) =>
  `the Inlay in this cluster is older than this program (${version}): ${what}; upgrade it, as docs/tasks/upgrade.md describes, or use the program of its version`;

/** The path of the first field that only `own` declares. */
export function missingField(
  own: OpenApiSchema,
  served: OpenApiSchema,
  resolve: KindSchema["resolve"],
  path = "",
): string | undefined {
  const opened = (served.$ref === undefined ? served : resolve(served.$ref)) ?? served;
  if (own.items && opened.items) return missingField(own.items, opened.items, resolve, `${path}[]`);
  for (const [name, below] of Object.entries(own.properties ?? {})) {
    if (path === "" && META.includes(name)) continue;
    const at = path === "" ? name : `${path}.${name}`;
    const found = Object.hasOwn(opened.properties ?? {}, name) ? opened.properties?.[name] : undefined;
    const missing = found === undefined ? at : missingField(below, found, resolve, at);
    if (missing !== undefined) return missing;
  }
  const [values, others] = [own.additionalProperties, opened.additionalProperties];
  const areSchemas = typeof values === "object" && typeof others === "object";
  return areSchemas ? missingField(values, others, resolve, `${path}.*`) : undefined;
}
