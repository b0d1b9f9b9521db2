/**
 * Reads the configuration file, in the format of Kubernetes' component configs. An unknown field is an error, because its author expects an
 * effect.
 */
import { readFileSync } from "node:fs";
import { parseDocument } from "yaml";
import { type Acknowledgement, Installation, type RolloutRules, type WriteRule } from "../api/installation.ts";
import { DEFAULT_LIMITS, type Limits } from "../api/limits.ts";
import { NOTIFIED_EVENTS, type NotifiedEvent, RECEIVER_TYPES, type ReceiverRules } from "../api/notification-rules.ts";
import { RELOADER_KEYS, RELOADER_KINDS, type ReloaderKeys, type ReloaderRules } from "../api/reloader-rules.ts";
import { VaultAddresses } from "../api/vault-addresses.ts";
import { parseDuration } from "../apimachinery/duration.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { isObject } from "../apimachinery/json.ts";
import type { LabelSelector } from "../apimachinery/label-selector.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { suggestNames } from "../apimachinery/suggest-names.ts";
import { whyTooLarge } from "../kube/file-size.ts";
import { notificationTemplate } from "../notifications/text.ts";
import { MOST_RESTARTS } from "../workloads/workload.ts";
import { failureText } from "./failure.ts";

type Fields = Record<string, unknown>;

/** Reads fields of the configuration. Each function throws an Error that names the field and what is wrong with it. */
function fieldsOf(value: unknown, at: string, known: readonly string[]): Fields {
  const where = at === "" ? "the configuration" : at;
  if (!isObject(value)) throw new Error(`${where}: must be an object`);
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown === undefined) return value as Fields;
  const field = at === "" ? unknown : `${at}.${unknown}`;
  throw new Error(`${field}: unknown field; ${suggestNames(where, unknown, known)}`);
}

function listOf<T>(value: unknown, at: string, each: (item: unknown, at: string) => T): T[] {
  if (!Array.isArray(value)) throw new Error(`${at}: must be a list`);
  return value.map((item, n) => each(item, `${at}[${n}]`));
}

/** Globs or names. The empty string means the core group. */
function textsOf(value: unknown, at: string): string[] {
  return listOf(value, at, (item, where) => {
    if (typeof item !== "string") throw new Error(`${where}: must be a string`);
    return item;
  });
}

function flagOf(value: unknown, at: string): boolean {
  if (typeof value === "boolean") return value;
  throw new Error(`${at}: must be true or false`);
}

function filledTextOf(value: unknown, at: string): string {
  if (typeof value === "string" && value !== "") return value;
  throw new Error(`${at}: must be a string that is not empty`);
}

function oneOf<T>(known: readonly T[], value: unknown, at: string, expected = known.join(", ")): T {
  const found = known.find((each) => each === value);
  if (found === undefined) throw new Error(`${at}: must be ${expected}`);
  return found;
}

/** Reads a text that matches a pattern. */
const matching =
  (pattern: RegExp, expected: string) =>
  (value: unknown, at: string): string => {
    if (typeof value === "string" && pattern.test(value)) return value;
    throw new Error(`${at}: must be ${expected}`);
  };

/** What `make` returns. Throws its Problem as an Error that names the field. */
function usable<T>(make: () => T, at: string): T {
  const made = attemptSync(make);
  if (made instanceof Problem) throw new Error(`${at}: ${made.message}`);
  return made;
}

/** Refuses other limits than whole numbers of at least 1. */
function checkLimits(limits: Fields, at: string, otherwise: string): void {
  for (const [name, limit] of Object.entries(limits))
    if (!Number.isSafeInteger(limit) || Number(limit) < 1)
      throw new Error(`${at}.${name}: must be a whole number of at least 1; remove it for ${otherwise}`);
}

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
const ANNOTATION_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";
const KEY = new RegExp(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?${ANNOTATION_NAME}$`);
const labelKeyOf = matching(KEY, "the key of a label");
const labelOf = matching(
  new RegExp(`^(${ANNOTATION_NAME})?$`),
  "the value of a label, as a string; put true, false and numbers in quotes",
);

function reloaderOf(value: unknown): ReloaderRules {
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
  const kinds = listOf(value, at, (item, where) => oneOf(KINDS, item, where, `one of ${KINDS.join(", ")}`));
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
  const known = oneOf(OPERATORS, operator, `${at}.operator`);
  const labels = values === undefined ? [] : listOf(values, `${at}.values`, labelOf);
  const takesValues = known === "In" || known === "NotIn";
  if (takesValues !== labels.length > 0)
    throw new Error(`${at}.values: ${known} takes ${takesValues ? "at least one" : "none"}`);
  return { key: labelKeyOf(key, `${at}.key`), operator: known, ...(takesValues && { values: labels }) };
}

const FIELDS = ["name", "type", "url", "insecure", "events", "namespaces", "template"];
const nameOf = matching(
  /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
  "a name of lowercase letters, digits and -, such as ops",
);

export function notificationsOf(value: unknown): ReceiverRules[] {
  const receivers = listOf(value, "notifications", receiverOf);
  for (const [n, { name }] of receivers.entries())
    if (receivers.findIndex((each) => each.name === name) < n)
      throw new Error(
        `notifications[${n}].name: another receiver has the name ${name} too; give each receiver its own name`,
      );
  return receivers;
}

function receiverOf(value: unknown, at: string): ReceiverRules {
  const { name, type, url, insecure = false, events, namespaces, template } = fieldsOf(value, at, FIELDS);
  return {
    name: nameOf(name, `${at}.name`),
    type: oneOf(RECEIVER_TYPES, type, `${at}.type`),
    url: urlOf(url, `${at}.url`),
    insecure: flagOf(insecure, `${at}.insecure`),
    events: events === undefined ? NOTIFIED_EVENTS : filled(listOf(events, `${at}.events`, eventOf), `${at}.events`),
    namespaces: namespaces === undefined ? ["*"] : filled(textsOf(namespaces, `${at}.namespaces`), `${at}.namespaces`),
    ...(template !== undefined && { template: templateOf(template, `${at}.template`) }),
  };
}

/** The URL itself is a secret, so the configuration must not contain it. */
function urlOf(value: unknown, at: string): ReceiverRules["url"] {
  if (typeof value === "string")
    throw new Error(`${at}: must be { secret: { name, key } }; store the URL in that Secret`);
  const { secret } = fieldsOf(value, at, ["secret"]);
  const { name, key } = fieldsOf(secret, `${at}.secret`, ["name", "key"]);
  return { secret: filledTextOf(name, `${at}.secret.name`), key: filledTextOf(key, `${at}.secret.key`) };
}

const eventOf = (value: unknown, at: string): NotifiedEvent =>
  oneOf(NOTIFIED_EVENTS, value, at, NOTIFIED_EVENTS.join(" or "));

function filled<T>(list: readonly T[], at: string): readonly T[] {
  if (list.length === 0)
    throw new Error(`${at}: must not be empty, because nothing would be sent; remove it to send all`);
  return list;
}

function templateOf(value: unknown, at: string): string {
  const template = filledTextOf(value, at);
  usable(() => notificationTemplate(template), at);
  return template;
}

const TYPE = { apiVersion: "config.inlay.dev/v1alpha1", kind: "ControllerConfiguration" };

/** More than a ConfigMap holds. */
const MAX_MIB = 2;
const ACKNOWLEDGEMENTS: readonly Acknowledgement[] = ["ReadableCopies"];
const ROLLOUT_LIMITS = ["maxConcurrent", "maxConcurrentPerNamespace"] as const;
const UNLIMITED = "Unlimited";
const MAX_WINDOW_MS = 24 * 3_600_000;
const RULE_CONDITIONS = ["apiGroups", "kinds", "namespaces", "paths"] as const;

/**
 * Without a file, returns the defaults. `scope` is the namespace of an installation for one namespace. Throws Error that names the file,
 * the field, and what is wrong with it.
 */
export function loadInstallation(file: string | undefined, ownNamespace: string, scope?: string): Installation {
  if (file === undefined) return new Installation({ ownNamespace, scope });
  try {
    const why = whyTooLarge(file, MAX_MIB);
    if (why !== undefined) throw new Error(why);
    return installationOf(readFileSync(file, "utf8"), ownNamespace, scope);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new Error(`can't use the configuration ${file}: ${failureText(error).replace(`${file}: `, "")}`, {
      cause: error,
    });
  }
}

/** Like `loadInstallation`, for the text of a file. */
export function installationOf(text: string, ownNamespace: string, scope?: string): Installation {
  const sections = [
    "allowSystemNamespaces",
    "targets",
    "requireAcknowledgement",
    "rollouts",
    "reloader",
    "notifications",
    "vault",
    "limits",
  ];
  const config = fieldsOf(read(text), "", [...Object.keys(TYPE), ...sections]);
  for (const [field, expected] of Object.entries(TYPE)) {
    if (config[field] !== expected) throw new Error(`${field}: must be ${expected}`);
  }
  // A section whose lines are all commented out is null, which is not a list.
  const { allowSystemNamespaces = [], targets = {}, requireAcknowledgement = [], rollouts = {}, reloader } = config;
  const { deny = [], allow } = fieldsOf(targets, "targets", ["deny", "allow"]);
  const allowed = allow === undefined ? [] : listOf(allow, "targets.allow", (each, at) => ruleOf(each, at, []));
  if (allow !== undefined && allowed.length === 0) {
    throw new Error("targets.allow: must not be empty; remove it to allow all targets");
  }
  return new Installation({
    ownNamespace,
    scope,
    allowSystemNamespaces: textsOf(allowSystemNamespaces, "allowSystemNamespaces"),
    deny: listOf(deny, "targets.deny", (each, at) => ruleOf(each, at, ["message"])),
    allow: allowed,
    requireAcknowledgement: listOf(requireAcknowledgement, "requireAcknowledgement", (each, at) =>
      oneOf(ACKNOWLEDGEMENTS, each, at, ACKNOWLEDGEMENTS.join(" or ")),
    ),
    rollouts: rolloutsOf(rollouts),
    reloader: reloader === undefined ? undefined : reloaderOf(reloader),
    notifications: notificationsOf(config["notifications"] ?? []),
    vaultAddresses: vaultAddressesOf(config["vault"] ?? {}),
    limits: limitsOf(config["limits"] ?? {}),
  });
}

function limitsOf(value: unknown): Partial<Limits> {
  const limits = fieldsOf(value, "limits", Object.keys(DEFAULT_LIMITS));
  checkLimits(limits, "limits", "the default");
  return limits;
}

function vaultAddressesOf(value: unknown): VaultAddresses {
  const { addresses = [] } = fieldsOf(value, "vault", ["addresses"]);
  return new VaultAddresses(textsOf(addresses, "vault.addresses"));
}

function rolloutsOf(value: unknown): RolloutRules {
  const names = ["suspend", ...ROLLOUT_LIMITS, "maxRestarts", "maxRestartsWindow"];
  const { suspend = false, maxRestarts, maxRestartsWindow, ...limits } = fieldsOf(value, "rollouts", names);
  const isSuspended = flagOf(suspend, "rollouts.suspend");
  // A limit of 0 is not allowed, because `suspend` exists for that.
  checkLimits(limits, "rollouts", "no limit");
  return { suspend: isSuspended, ...limits, ...restartsOf(maxRestarts, maxRestartsWindow) };
}

function restartsOf(max: unknown, window: unknown): Pick<RolloutRules, "maxRestarts" | "maxRestartsWindow"> {
  const isNumber = typeof max === "number" && Number.isInteger(max) && max > 0 && max <= MOST_RESTARTS;
  if (max !== undefined && max !== UNLIMITED && !isNumber)
    throw new Error(`rollouts.maxRestarts: must be a whole number from 1 to ${MOST_RESTARTS}, or ${UNLIMITED}`);
  const ms = typeof window === "string" ? attemptSync(() => parseDuration(window)) : undefined;
  if (window !== undefined && !(typeof ms === "number" && ms >= 1_000 && ms <= MAX_WINDOW_MS))
    throw new Error("rollouts.maxRestartsWindow: must be a duration from 1s to 24h, such as 10m");
  return {
    ...(max !== undefined && { maxRestarts: max as number | typeof UNLIMITED }),
    ...(window !== undefined && { maxRestartsWindow: window as string }),
  };
}

function read(text: string): unknown {
  const document = parseDocument(text);
  const [error] = document.errors;
  // Its other lines quote the file, which may have the URL of a receiver.
  if (error !== undefined)
    throw new Error(`not valid YAML: ${error.message.split("\n", 1)[0]?.replace(/:$/, "")}; correct it`);
  if (document.contents === null)
    throw new Error(`the file is empty; write at least apiVersion: ${TYPE.apiVersion} and kind: ${TYPE.kind}`);
  return document.toJS({ maxAliasCount: 0 });
}

/** Throws Error for a rule without a condition, which would match everything. */
function ruleOf(value: unknown, at: string, others: readonly string[]): WriteRule {
  const rule = fieldsOf(value, at, [...RULE_CONDITIONS, ...others]);
  const given = RULE_CONDITIONS.filter((each) => rule[each] !== undefined);
  if (given.length === 0) throw new Error(`${at}: a rule needs at least one of ${RULE_CONDITIONS.join(", ")}`);
  const lists = given.map((each) => {
    const texts = textsOf(rule[each], `${at}.${each}`);
    if (texts.length === 0)
      throw new Error(`${at}.${each}: must not be empty, because the rule would never match; remove it to match any`);
    const pathOf = (text: string, n: number) => usable(() => FieldPath.parse(text), `${at}.paths[${n}]`);
    return [each, each === "paths" ? texts.map(pathOf) : texts] as const;
  });
  const { message } = rule;
  return {
    ...Object.fromEntries(lists),
    ...(message !== undefined && { message: filledTextOf(message, `${at}.message`) }),
  };
}
