/**
 * Reads the URL of a receiver from its Secret with the controller's own identity. The URL is a secret: it gives write access to the
 * channel.
 */
import type { ReceiverRules } from "../api/notification-rules.ts";
import { at } from "../apimachinery/fields.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SECRETS } from "../apimachinery/resources.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { attempt } from "../kube/access-error.ts";
import type { Client } from "../kube/client.ts";
import { getAsController } from "../kube/get.ts";

/**
 * Returns the URL, or the reason why there is none, without the URL. Reads it for each message, so that a rotation takes effect at once.
 */
export async function receiverUrl(
  client: Pick<Client, "get">,
  namespace: string,
  { url: { secret: name, key }, insecure }: Pick<ReceiverRules, "url" | "insecure">,
): Promise<SecretValue<URL> | string> {
  const found = await attempt(getAsController(client, { resource: SECRETS, namespace, name }));
  if (found instanceof Problem) return found.message;
  const place = `Secret ${namespace}/${name}`;
  const value = found === undefined ? undefined : at(found, "data", key);
  if (typeof value !== "string")
    return found === undefined ? `there is no ${place}; create it` : `${place} has no key ${key}; add it`;
  const url = URL.parse(Buffer.from(value, "base64").toString().trim());
  const isPlain = url?.protocol === "http:";
  if (url === null || (url.protocol !== "https:" && !isPlain))
    return `key ${key} of ${place} is not an https URL; write one that begins with https://`;
  if (isPlain && !insecure)
    return `key ${key} of ${place} is an http URL; set insecure: true on the receiver to allow that`;
  if (url.username !== "" || url.password !== "")
    return `key ${key} of ${place} contains a user or password; remove them, because Inlay does not send them`;
  return new SecretValue(url);
}
