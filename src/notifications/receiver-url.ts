/** Reads the URL of a receiver from its Secret, as the controller itself. It is a secret: who knows it can write to the channel. */
import type { ReceiverRules } from "../api/notification-rules.ts";
import { at } from "../apimachinery/fields.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SECRETS } from "../apimachinery/resources.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { attempt } from "../kube/access-error.ts";
import type { Client } from "../kube/client.ts";
import { getAsController } from "../kube/get.ts";

/** The URL, or why there is none, in words without it. It is read for each message, so a rotation takes effect at once. */
export async function receiverUrl(
  client: Pick<Client, "get">,
  namespace: string,
  { url: { secret: name, key }, insecure }: Pick<ReceiverRules, "url" | "insecure">,
): Promise<SecretValue<URL> | string> {
  const found = await attempt(getAsController(client, { resource: SECRETS, namespace, name }));
  if (found instanceof Problem) return found.message;
  const place = `Secret ${namespace}/${name}`;
  const value = found === undefined ? undefined : at(found, "data", key);
  if (typeof value !== "string") return found === undefined ? `there is no ${place}` : `${place} has no key ${key}`;
  const url = URL.parse(Buffer.from(value, "base64").toString().trim());
  const isPlain = url?.protocol === "http:";
  if (url === null || (url.protocol !== "https:" && !isPlain)) return `key ${key} of ${place} is no https URL`;
  if (isPlain && !insecure) return `key ${key} of ${place} is an http URL; the receiver needs insecure: true for that`;
  if (url.username !== "" || url.password !== "") return `key ${key} of ${place} has a user in it, which is not sent`;
  return new SecretValue(url);
}
