/**
 * Reads the section `reloader` of the configuration: which annotations of Stakater Reloader apply. Throws Error that names the field, and
 * what is wrong with it.
 */
import { RELOADER_KEYS, RELOADER_KINDS, type ReloaderKeys, type ReloaderRules } from "../api/reloader-rules.ts";
import { parseDuration } from "../apimachinery/duration.ts";
import { isObject } from "../apimachinery/json.ts";
import type { LabelSelector } from "../apimachinery/label-selector.ts";
import { fieldsOf, flagOf, listOf, textsOf } from "./config-fields.ts";

export const RELOADER_FIELDS: readonly string[] = [
  "namespaces",
  "exceptNamespaces",
  "namespaceSelector",
  "sourceSelector",
  "ignoreKinds",
  "annotations",
  "recordOnWorkloads",
  "autoReloadAll",
  "jobs",
  "reloadOnCreate",
  "reloadOnDelete",
  "runCronJobs",
  "providerClasses",
  "debounce",
];

/** Several changes at about the same time cause one restart. */
const DEBOUNCE = "500ms";
/** The pattern of spec.rollout.debounce. */
const DURATION = /^([0-9]+(ms|s|m|h))+$/;

const KINDS = [...RELOADER_KINDS.sources, ...RELOADER_KINDS.workloads];
const OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist"] as const;
type Expression = NonNullable<LabelSelector["matchExpressions"]>[number];

/** Keys of labels and annotations, and values of labels. */
const NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";
const KEY = new RegExp(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?${NAME}$`);
const VALUE = new RegExp(`^(${NAME})?$`);

export function reloaderOf(value: unknown): ReloaderRules {
  const fields = fieldsOf(value, "reloader", RELOADER_FIELDS);
  const given = <T>(name: string, read: (value: unknown, at: string) => T): T | undefined =>
    fields[name] === undefined ? undefined : read(fields[name], `reloader.${name}`);
  const namespaces = given("namespaces", textsOf) ?? [];
  if (namespaces.length === 0)
    throw new Error('reloader.namespaces: must name some; write ["*"] for all, or leave reloader out');
  const jobs = given("jobs", flagOf) ?? false;
  const optional = {
    exceptNamespaces: given("exceptNamespaces", textsOf),
    namespaceSelector: given("namespaceSelector", selectorOf),
    sourceSelector: given("sourceSelector", selectorOf),
    ignoreKinds: given("ignoreKinds", (each, at) => kindsOf(each, at, jobs)),
    annotations: given("annotations", keysOf),
    recordOnWorkloads: given("recordOnWorkloads", flagOf),
    reloadOnCreate: given("reloadOnCreate", flagOf),
    reloadOnDelete: given("reloadOnDelete", flagOf),
    runCronJobs: given("runCronJobs", flagOf),
    providerClasses: given("providerClasses", flagOf),
  };
  const givenFields = Object.entries(optional).filter(([, each]) => each !== undefined);
  return {
    namespaces,
    autoReloadAll: given("autoReloadAll", flagOf) ?? false,
    jobs,
    ...(given("debounce", debounceOf) ?? { debounce: DEBOUNCE }),
    ...Object.fromEntries(givenFields),
  };
}

function debounceOf(value: unknown, at: string): { debounce?: string } {
  if (value === 0 || value === "0") return {};
  const isDuration = typeof value === "string" && DURATION.test(value) && value.length <= 32;
  if (isDuration) return parseDuration(value, at) === 0 ? {} : { debounce: value };
  throw new Error(`${at}: must be a duration, such as 500ms or 2s; 0 switches it off`);
}

function kindsOf(value: unknown, at: string, jobs: boolean): (typeof KINDS)[number][] {
  const kinds = listOf(value, at, (item, where) => {
    const known = KINDS.find((each) => each === item);
    if (known === undefined) throw new Error(`${where}: must be one of ${KINDS.join(", ")}`);
    return known;
  });
  if (jobs && kinds.includes("Job"))
    throw new Error(`${at}: must not contain Job while reloader.jobs is true; remove one of them`);
  for (const all of Object.values(RELOADER_KINDS))
    if (all.every((each) => kinds.includes(each)))
      throw new Error(`${at}: has ${all.join(", ")}, so nothing restarts; remove one of them, or remove reloader`);
  return kinds;
}

function keysOf(value: unknown, at: string): Partial<ReloaderKeys> {
  const keys = fieldsOf(value, at, Object.keys(RELOADER_KEYS));
  for (const [name, key] of Object.entries(keys))
    if (typeof key !== "string" || !KEY.test(key))
      throw new Error(`${at}.${name}: must be the key of an annotation, such as ${RELOADER_KEYS.auto}`);
  const all = Object.entries({ ...RELOADER_KEYS, ...keys });
  for (const [name, key] of all) {
    const other = all.find((each) => each[0] !== name && each[1] === key);
    if (other !== undefined) throw new Error(`${at}: ${name} and ${other[0]} have the same key, ${key}`);
  }
  return keys;
}

function selectorOf(value: unknown, at: string): LabelSelector {
  const { matchLabels, matchExpressions } = fieldsOf(value, at, ["matchLabels", "matchExpressions"]);
  const selector = {
    ...(matchLabels !== undefined && { matchLabels: labelsOf(matchLabels, `${at}.matchLabels`) }),
    ...(matchExpressions !== undefined && {
      matchExpressions: listOf(matchExpressions, `${at}.matchExpressions`, expressionOf),
    }),
  };
  const count = Object.keys(selector.matchLabels ?? {}).length + (selector.matchExpressions ?? []).length;
  if (count === 0) throw new Error(`${at}: selects everything; remove it, or name a label`);
  return selector;
}

function labelsOf(value: unknown, at: string): Record<string, string> {
  if (!isObject(value)) throw new Error(`${at}: must be an object`);
  return Object.fromEntries(
    Object.entries(value).map(([key, label]) => [labelKeyOf(key, `${at}.${key}`), labelOf(label, `${at}.${key}`)]),
  );
}

function expressionOf(value: unknown, at: string): Expression {
  const { key, operator, values } = fieldsOf(value, at, ["key", "operator", "values"]);
  const known = OPERATORS.find((each) => each === operator);
  if (known === undefined) throw new Error(`${at}.operator: must be ${OPERATORS.join(", ")}`);
  const labels = values === undefined ? [] : listOf(values, `${at}.values`, labelOf);
  const takesValues = known === "In" || known === "NotIn";
  if (takesValues !== labels.length > 0)
    throw new Error(`${at}.values: ${known} takes ${takesValues ? "at least one" : "none"}`);
  return { key: labelKeyOf(key, `${at}.key`), operator: known, ...(takesValues && { values: labels }) };
}

function labelKeyOf(value: unknown, at: string): string {
  if (typeof value === "string" && KEY.test(value)) return value;
  throw new Error(`${at}: must be the key of a label`);
}

function labelOf(value: unknown, at: string): string {
  if (typeof value === "string" && VALUE.test(value)) return value;
  throw new Error(`${at}: must be the value of a label, as a string; put true, false and numbers in quotes`);
}
