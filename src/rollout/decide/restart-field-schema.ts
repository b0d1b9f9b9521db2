/** Checks by the schemas of the kinds whether a binding may restart workloads by the fields that it names. */
import type { RolloutSpec } from "../../api/rollout.ts";
import type { FieldPath } from "../../apimachinery/field-path.ts";
import type { OpenApiSchema } from "../../apimachinery/openapi.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { SecretValue } from "../../apimachinery/secret-value.ts";
import { attempt } from "../../kube/access-error.ts";
import type { Schemas } from "../../kube/schemas.ts";
import { checkAgainstSchema, schemaIn, typesOf } from "../../transform/schema-check.ts";
import { givenText } from "../../workloads/workload.ts";
import type { WorkloadLookup } from "../discover/lookups.ts";

/** Examples of the texts that are written, to check the rules of a field's schema. */
const EXAMPLES = {
  time: "2026-11-21T10:00:01Z",
  true: "true",
  Time: "2026-11-21T10:00:00.000Z",
  Revision: "1-3fa9c1-09ab34de12",
  ResourceVersion: "1",
};

type SchemaAt = (path: FieldPath) => OpenApiSchema | undefined;

/**
 * Returns the first problem: UnknownField, TypeMismatch and InvalidValue as for any field, ForbiddenPath as `refusedFor` says.
 */
export async function wrongRestartField(
  schemas: Pick<Schemas, "of">,
  lookups: readonly WorkloadLookup[],
  { stamp }: RolloutSpec,
): Promise<Problem | undefined> {
  const checked = lookups
    .filter(({ paths }) => paths.restart !== undefined)
    .map(async ({ resource, stampAt }) => {
      const schema = await schemas.of(resource);
      const written = givenText({ stampAt, isRestartField: true }) ?? stamp.value;
      const field = { path: stampAt, value: new SecretValue(EXAMPLES[written]), fromSecret: false };
      if (schema) checkAgainstSchema({ fields: [field] }, schema.root, schema.resolve);
      const schemaAt: SchemaAt = schema ? schemaIn(schema.root, schema.resolve) : () => undefined;
      const why = refusedFor(resource.group, stampAt, written, schemaAt);
      if (why === undefined) return;
      const what =
        "name an annotation, a label, or a field outside of pod specs that the kind's schema declares as free text";
      throw new Problem("ForbiddenPath", {
        at: ["spec.rollout"],
        what: `restartPath ${stampAt} of ${resource.kind} ${why}; ${what}`,
      });
    });
  const results = await Promise.all(checked.map((each) => attempt(each)));
  return results.find((each) => each instanceof Problem);
}

/**
 * Why a restart may not be written to a field: its change could do more than restart the workload. Undefined for annotations,
 * labels, times, and fields that are declared as free text.
 */
function refusedFor(
  group: string,
  path: FieldPath,
  written: keyof typeof EXAMPLES,
  schemaAt: SchemaAt,
): string | undefined {
  const keys = path.segments.map((segment) => (segment.kind === "key" ? segment.key : ""));
  const [key = "", map = ""] = keys.toReversed();
  const isSelector = keys.slice(0, -1).some((each) => /selector|^match/i.test(each));
  if (/^(annotations|labels)$|(Annotations|Labels)$/.test(map) && !isSelector) return undefined;
  if (!group.includes(".") || group.endsWith(".k8s.io"))
    return "is a field of a built-in kind, which does not restart on it";
  if (isInPodSpec(path, keys, schemaAt)) return "is in a pod spec";
  if (keys.some((each) => /^serviceAccount(Name)?$|^image|image$/i.test(each)))
    return "names an account or an image of pods";
  // Always a time.
  if (key === "restartAt") return undefined;
  const isDeclared = path.parent !== undefined && Object.hasOwn(schemaAt(path.parent)?.properties ?? {}, key);
  const schema = isDeclared ? schemaAt(path) : undefined;
  if (schema === undefined || typesOf(schema).length === 0) return "is not declared in the kind's schema";
  const isAny = typesOf(schema).join() === "string" && takesAnyText(schema, written === "Time");
  return isAny ? undefined : "is not free text in the kind's schema";
}

/**
 * A pod spec has containers. If the schema declares no fields, it is recognized by names: a spec below a template, or a pod or
 * template spec.
 */
function isInPodSpec(path: FieldPath, keys: readonly string[], schemaAt: SchemaAt): boolean {
  return keys.some(
    (key, n) =>
      (key === "spec" && /template$/i.test(keys[n - 1] ?? "")) ||
      /(pod|template)spec$/i.test(key) ||
      Object.hasOwn(schemaAt(path.upTo(n + 1))?.properties ?? {}, "containers"),
  );
}

/** A pattern means that the text is a name, for example. A field with the format of a time is no name. */
function takesAnyText(schema: OpenApiSchema, isTime: boolean): boolean {
  const { enum: choices, format = "date-time", pattern, allOf = [], anyOf = [], oneOf = [] } = schema;
  if (choices !== undefined || format !== "date-time" || (pattern !== undefined && !isTime)) return false;
  return [...allOf, ...anyOf, ...oneOf].every((part) => takesAnyText(part, isTime));
}
