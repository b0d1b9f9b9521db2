/** Checks the chosen fields against the schema and the live object, and writes the binding. Prints no value. Pure. */
import { Document, isMap, isScalar, isSeq, type Scalar } from "yaml";
import { assertReadablePath, assertWritablePath } from "../api/writable.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { valueAt } from "../apimachinery/fields.ts";
import { sameJson } from "../apimachinery/json.ts";
import {
  apiVersionOf,
  describeObject,
  type JsonValue,
  type KubeObject,
  type Resource,
} from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { suggestNames } from "../apimachinery/suggest-names.ts";
import { YAML_OPTIONS } from "../apimachinery/yaml-options.ts";
import type { KindSchema } from "../kube/schemas.ts";
import type { LiveSource } from "../transform/live-source.ts";
import { checkFields, planTarget } from "../transform/plan.ts";
import { checkAgainstSchema, schemaIn } from "../transform/schema-check.ts";
import { secretReferenceFor } from "../transform/secret-reference.ts";
import type { FieldWish } from "./wishes.ts";

export interface Chosen {
  readonly resource: Resource;
  readonly live: KubeObject;
  readonly schema: KindSchema | undefined;
  readonly secrets: ReadonlyMap<string, Extract<LiveSource, { kind: "data" }>>;
  readonly fields: readonly Required<FieldWish>[];
}

/** A source gets a name of its own, by which fields find it even if kustomize renames the Secret. A Secret may have other names. */
const NAME_OF_SOURCE = /^[A-Za-z](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?$/;

/** What the user should know of a field. */
interface Advice {
  readonly reference?: string;
  readonly differs: boolean;
}

export interface Proposal {
  /** The binding as YAML. */
  readonly text: string;
  /** One line each. */
  readonly warnings: readonly string[];
}

/** Throws Problem. */
export function proposalOf(chosen: Chosen, name: string, namespace: string): Proposal {
  const { resource, fields } = chosen;
  const twice = fields.find(({ path }, at) => fields.findIndex((each) => each.path === path) !== at);
  if (twice !== undefined) throw new Problem("InvalidBinding", `${twice.path} is listed twice; write it from one key`);
  const advice = fields.map((field) => adviceOn(field, chosen));
  const entries = fields.map(({ path, secret, key }) => ({ path, from: { source: secret, key } }));
  checkFields(entries as Parameters<typeof checkFields>[0], chosen.secrets.keys());
  const names = [...new Set(fields.map(({ secret }) => secret))];
  const binding = {
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretBinding",
    metadata: { name, namespace },
    spec: {
      sources: names.map((secret) => ({
        ...(NAME_OF_SOURCE.test(secret) && { name: secret }),
        secret: { name: secret },
      })),
      targets: [
        { apiVersion: apiVersionOf(resource), kind: resource.kind, name: chosen.live.metadata.name, fields: entries },
      ],
    },
  };
  const warnings = fields.flatMap((field, at) => warningsOn(field, advice[at] as Advice, chosen));
  return { text: commented(binding, advice, chosen), warnings };
}

function adviceOn(
  { path: text, secret, key }: Required<FieldWish>,
  { resource, live, schema, secrets }: Chosen,
): Advice {
  const path = FieldPath.parse(text);
  assertWritablePath(path);
  assertReadablePath(resource.group, resource.kind, path);
  const source = secrets.get(secret) as Extract<LiveSource, { kind: "data" }>;
  if (!source.data.has(key)) {
    const others = suggestNames(source.description, key, [...source.data.keys()]);
    throw new Problem("KeyNotFound", `--key: ${source.description} has no key ${JSON.stringify(key)}; ${others}`);
  }
  const schemaAt = schema && schemaIn(schema.root, schema.resolve);
  const field = { path: text, from: { source: secret, key } } as Parameters<typeof planTarget>[0][number];
  const plan = planTarget([field], new Map([[secret, source]]), schemaAt);
  if (schema !== undefined) checkAgainstSchema(plan, schema.root, schema.resolve);
  const now = valueAt(live, path);
  const value = plan.fields[0]?.value.reveal();
  const reference = schemaAt && secretReferenceFor(path, schemaAt);
  return {
    ...(reference !== undefined && { reference }),
    differs: now !== undefined && value !== undefined && !sameJson(now as JsonValue, value),
  };
}

function warningsOn(
  { path, secret, key }: Required<FieldWish>,
  { reference, differs }: Advice,
  { resource, live: { metadata } }: Chosen,
): string[] {
  const object = describeObject(resource.kind, metadata.namespace, metadata.name);
  return [
    ...(reference === undefined
      ? []
      : [`${resource.kind} can read the Secret itself: set ${reference} instead of binding ${path}`]),
    ...(differs
      ? [
          `${path} of ${object} has another value than key ${key} of Secret ${secret}; add onConflict: Force to the target to replace it, or remove the field there`,
        ]
      : []),
  ];
}

/** With comments above fields that have their own Secret reference, or another value now. */
function commented(binding: object, advice: readonly Advice[], chosen: Chosen): string {
  const { resource } = chosen;
  const document = new Document(binding, YAML_OPTIONS);
  const target = document.getIn(["spec", "targets", 0]);
  const differing = chosen.fields.filter((_, at) => advice[at]?.differs).map(({ path }) => path);
  if (differing.length > 0 && isMap(target)) {
    const key = target.items.map((pair) => pair.key).find((each) => isScalar(each) && each.value === "fields");
    (key as Scalar).commentBefore = ` To replace the present values of ${differing.join(", ")}, add: onConflict: Force`;
  }
  const fields = document.getIn(["spec", "targets", 0, "fields"]);
  if (isSeq(fields))
    for (const [at, field] of fields.items.entries()) {
      if (!isMap(field)) continue;
      const { reference } = advice[at] as Advice;
      if (reference !== undefined)
        field.commentBefore = ` ${resource.kind} can read the Secret itself: set ${reference}, and remove this field.`;
      const from = field.get("from");
      if (isMap(from)) from.flow = true;
    }
  for (const source of (document.getIn(["spec", "sources"]) as { items: unknown[] }).items)
    if (isMap(source)) {
      const secret = source.get("secret");
      if (isMap(secret)) secret.flow = true;
    }
  return document.toString(YAML_OPTIONS);
}
