/**
 * Writes the text of a message: a default sentence or a rendered template for one notification, and counts for many. Escapes all text from
 * the cluster, so that a name or message can't mention people or disguise a link in a chat. Pure.
 */
import type { NotifiedEvent, ReceiverType } from "../api/notification-rules.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { suggestNames } from "../apimachinery/suggest-names.ts";
import type { LiveSource } from "../transform/live-source.ts";
import { Template } from "../transform/template.ts";

export interface Notification {
  /** Two bindings that observe the same restart give it the same id. The id is not sent. */
  readonly id: string;
  readonly event: NotifiedEvent;
  /** The reason of the Kubernetes event or of the binding's condition, such as RolloutFailed or Forbidden. */
  readonly reason: string;
  readonly message: string;
  /** In RFC 3339. */
  readonly time: string;
  readonly workload: {
    readonly apiVersion: string;
    readonly kind: string;
    /** Empty for a cluster-scoped workload. */
    readonly namespace: string;
    readonly name: string;
  };
  readonly binding: { readonly namespace: string; readonly name: string };
  /** The names of the changed values, such as `bucket/accessKeyID`. */
  readonly keys: readonly string[];
}

/** Used to try templates. */
const EXAMPLE: Notification = {
  id: "",
  event: "Restarted",
  reason: "Restarted",
  message: "restarted by SecretBinding shop/web, as bucket/token changed",
  time: "2026-01-01T00:00:00.000Z",
  workload: { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web" },
  binding: { namespace: "shop", name: "web" },
  keys: ["bucket/token"],
};
/** The names that templates may use. */
const NAMES = [
  ...["event", "reason", "message", "time", "keys"],
  ...["workload.kind", "workload.name", "workload.namespace", "workload.apiVersion"],
  ...["binding.name", "binding.namespace"],
];

const SOURCE = "notification";
/** Slack truncates texts at 4,000 characters. */
const MAX_TEXT = 3_500;
/** How many failures and namespaces a combined message names. */
const MAX_NAMED = 10;

type Escape = (text: string) => string;

const ESCAPES: Readonly<Record<ReceiverType, Escape>> = {
  Slack: (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
  // Teams renders Markdown.
  Teams: (text) => text.replace(/[\\[\]*]/g, "\\$&"),
  Webhook: (text) => text,
};

/** Throws Problem("InvalidTemplate") for a malformed template, or a name that notifications do not have. */
export function notificationTemplate(text: string): Template {
  const template = new Template(text, SOURCE);
  for (const { path, at } of template.references) {
    const name = path.join(".");
    if (NAMES.includes(name)) continue;
    const advice = suggestNames("a notification", name, NAMES);
    throw new Problem("InvalidTemplate", `template ${at}: ${name} does not exist; ${advice}`);
  }
  // An invalid call of a helper fails here, and not at the first restart.
  render(template, EXAMPLE, ESCAPES.Webhook);
  return template;
}

export class NotificationText {
  readonly #template: Template | undefined;
  readonly #escape: Escape;

  /** Throws like `notificationTemplate`. */
  constructor(type: ReceiverType, template: string | undefined) {
    this.#template = template === undefined ? undefined : notificationTemplate(template);
    this.#escape = (text) => ESCAPES[type](inOneLine(text));
  }

  /** The text for one or more notifications. */
  of(notifications: readonly Notification[]): string {
    const [only, ...others] = notifications;
    if (only === undefined) return "";
    return shortened(others.length === 0 ? this.#one(only) : this.#many(notifications));
  }

  #one(notification: Notification): string {
    if (this.#template === undefined) return sentence(notification, this.#escape);
    const text = attemptSync(() => render(this.#template as Template, notification, this.#escape));
    return text instanceof Problem ? sentence(notification, this.#escape) : text;
  }

  #many(notifications: readonly Notification[]): string {
    const failed = notifications.filter(({ event }) => event === "RestartFailed");
    const restarted = notifications.length - failed.length;
    const counts = [...(restarted > 0 ? [`${workloads(restarted)} restarted`] : [])];
    if (failed.length > 0) counts.push(`${workloads(failed.length)} failed to restart`);
    const byNamespace = Map.groupBy(notifications, ({ workload }) => workload.namespace);
    const largest = [...byNamespace].toSorted(([, one], [, other]) => other.length - one.length);
    const named = largest.slice(0, MAX_NAMED).map(([namespace, all]) => `${namespace} (${all.length})`);
    const more = largest.length - named.length;
    const places = `${named.join(", ")}${more > 0 ? ` and ${more} more namespaces` : ""}`;
    const lines = failed.slice(0, MAX_NAMED).map((each) => sentence(each, this.#escape));
    const unnamed = failed.length - lines.length;
    return [
      `${counts.join(", ")}, in ${places}`,
      ...lines,
      ...(unnamed > 0 ? [`and ${unnamed} more that failed`] : []),
    ].join("\n");
  }
}

const workloads = (count: number) => `${count} workload${count === 1 ? "" : "s"}`;

/** Throws Problem. */
function render(template: Template, notification: Notification, neutral: Escape): string {
  const { id: _, workload, binding, keys, ...texts } = notification;
  const escaped = (all: object) =>
    Object.fromEntries(Object.entries(all).map(([name, text]) => [name, neutral(String(text))]));
  const object: JsonObject = {
    ...escaped(texts),
    keys: neutral(keys.join(", ")),
    workload: escaped(workload),
    binding: escaped(binding),
  };
  const source: LiveSource = {
    kind: "object",
    description: "the notification",
    version: "",
    policy: { onMissing: "Wait", optional: true },
    annotations: new SecretValue({}),
    labels: new SecretValue({}),
    object: new SecretValue(object),
  };
  // A template with only one expression returns a value of that expression's type.
  const result = template.render(new Map([[SOURCE, source]])).reveal();
  return typeof result === "string" ? result : JSON.stringify(result);
}

function sentence({ event, message, workload, binding }: Notification, neutral: Escape): string {
  const { kind, namespace, name } = workload;
  const what = neutral(`${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`);
  if (event === "Restarted") return `${what} ${neutral(message)}`;
  return `${what} failed to restart: ${neutral(message)} (SecretBinding ${neutral(`${binding.namespace}/${binding.name}`)})`;
}

/** Keeps a message on one line, so that it can't look like two. */
const inOneLine = (text: string) => text.replace(/[\p{Cc}\u2028\u2029]+/gu, " ");

function shortened(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT).toWellFormed()}…`;
}
