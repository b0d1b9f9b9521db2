/** Checks the fields that a binding restarts workloads by: whether a restart may be written there, by the schemas of the kinds. */
import type { RolloutSpec } from "../../api/rollout.ts";
import type { FieldPath } from "../../apimachinery/field-path.ts";
import type { OpenApiSchema } from "../../apimachinery/openapi.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { SecretValue } from "../../apimachinery/secret-value.ts";
import { attempt } from "../../kube/access-error.ts";
import type { Schemas } from "../../kube/schemas.ts";
import { checkAgainstSchema, schemaIn, typesOf } from "../../transform/schema-check.ts";
import { givenText } from "../../workloads/restart-field.ts";
import type { WorkloadLookup } from "../discover/lookups.ts";

/** Such as is written, for the rules that a field may have for it. */
const EXAMPLES = {
  time: "2026-11-21T10:00:01Z",
  true: "true",
  Time: "2026-11-21T10:00:00.000Z",
  Revision: "1-3fa9c1-09ab34de12",
  ResourceVersion: "1",
};

type SchemaAt = (path: FieldPath) => OpenApiSchema | undefined;

/** Returns the first problem: UnknownField, TypeMismatch and InvalidValue as for any field, ForbiddenPath as `refusedFor` says. */
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
      if (schema) checkAgainstSchema({ fields: [field], leftOut: [] }, schema.root, schema.resolve);
      const schemaAt: SchemaAt = schema ? schemaIn(schema.root, schema.resolve) : () => undefined;
      const why = refusedFor(resource.group, stampAt, written, schemaAt);
      if (why === undefined) return;
      const what =
        "name an annotation, a label, or a field outside pod specs that the kind's schema declares as any text";
      throw new Problem("ForbiddenPath", `spec.rollout: restartPath ${stampAt} of ${resource.kind} ${why}; ${what}`);
    });
  const results = await Promise.all(checked.map((each) => attempt(each)));
  return results.find((each) => each instanceof Problem);
}

/**
 * Why a restart may not be written to a field: it may change more than that the workload restarts. Undefined for annotations,
 * labels, and what is declared to be any text or a time.
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
    return "is a field of a kind of Kubernetes itself, which restarts on none";
  if (isInPodSpec(path, keys, schemaAt)) return "is in a pod spec";
  if (keys.some((each) => /^serviceAccount(Name)?$|^image|image$/i.test(each)))
    return "names an account or an image of pods";
  // A time, whatever is asked for.
  if (key === "restartAt") return undefined;
  const isDeclared = path.parent !== undefined && Object.hasOwn(schemaAt(path.parent)?.properties ?? {}, key);
  const schema = isDeclared ? schemaAt(path) : undefined;
  if (schema === undefined || typesOf(schema).length === 0) return "is not declared in the kind's schema";
  const isAny = typesOf(schema).join() === "string" && takesAnyText(schema, written === "Time");
  return isAny ? undefined : "is not any text by the kind's schema";
}

/** A pod spec has containers; one of which the schema says less is below a template, or is called a spec of pods or a template. */
function isInPodSpec(path: FieldPath, keys: readonly string[], schemaAt: SchemaAt): boolean {
  return keys.some(
    (key, n) =>
      (key === "spec" && /template$/i.test(keys[n - 1] ?? "")) ||
      /(pod|template)spec$/i.test(key) ||
      Object.hasOwn(schemaAt(path.upTo(n + 1))?.properties ?? {}, "containers"),
  );
}

/** A pattern is for names, say. None that takes a time is. */
function takesAnyText(schema: OpenApiSchema, isTime: boolean): boolean {
  const { enum: choices, format = "date-time", pattern, allOf = [], anyOf = [], oneOf = [] } = schema;
  if (choices !== undefined || format !== "date-time" || (pattern !== undefined && !isTime)) return false;
  return [...allOf, ...anyOf, ...oneOf].every((part) => takesAnyText(part, isTime));
}
