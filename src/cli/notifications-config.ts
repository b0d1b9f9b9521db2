/**
 * Reads the section `notifications` of the configuration: the receivers of notifications about restarts. Throws Error with the field that
 * is wrong.
 */
import { NOTIFIED_EVENTS, type NotifiedEvent, RECEIVER_TYPES, type ReceiverRules } from "../api/notification-rules.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { notificationTemplate } from "../notifications/text.ts";
import { fieldsOf, flagOf, listOf, textsOf } from "./config-fields.ts";

const FIELDS = ["name", "type", "url", "insecure", "events", "namespaces", "template"];
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

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
  const { name, type, url, insecure, events, namespaces, template } = fieldsOf(value, at, FIELDS);
  if (typeof name !== "string" || !NAME.test(name))
    throw new Error(`${at}.name: must be a name of lowercase letters, digits and -, such as ops`);
  const known = RECEIVER_TYPES.find((each) => each === type);
  if (known === undefined) throw new Error(`${at}.type: must be ${RECEIVER_TYPES.join(", ")}`);
  return {
    name,
    type: known,
    url: urlOf(url, `${at}.url`),
    insecure: flagOf(insecure, `${at}.insecure`) ?? false,
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
  for (const [field, text] of Object.entries({ name, key }))
    if (typeof text !== "string" || text === "")
      throw new Error(`${at}.secret.${field}: must be a string that is not empty`);
  return { secret: String(name), key: String(key) };
}

function eventOf(value: unknown, at: string): NotifiedEvent {
  const known = NOTIFIED_EVENTS.find((each) => each === value);
  if (known === undefined) throw new Error(`${at}: must be ${NOTIFIED_EVENTS.join(" or ")}`);
  return known;
}

function filled<T>(list: readonly T[], at: string): readonly T[] {
  if (list.length === 0)
    throw new Error(`${at}: must not be empty, because nothing would be sent; remove it to send all`);
  return list;
}

function templateOf(value: unknown, at: string): string {
  if (typeof value !== "string" || value === "") throw new Error(`${at}: must be a string that is not empty`);
  const template = attemptSync(() => notificationTemplate(value));
  if (template instanceof Problem) throw new Error(`${at}: ${template.message}`);
  return value;
}
