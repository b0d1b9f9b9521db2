/**
 * Checks the string formats that the API server checks in custom resources, and is never stricter (kube-openapi's
 * strfmt). Only the API server checks email, duration, isbn, creditcard, ssn, rgbcolor, bsonobjectid, k8s-short-name
 * and k8s-long-name.
 */
import { isIPv6 } from "node:net";

const HEX = "[0-9a-f]";
const uuid = (third: string, fourth: string) =>
  new RegExp(`^${HEX}{8}-?${HEX}{4}-?${third}-?${fourth}-?${HEX}{12}$`, "i");
const matches = (pattern: RegExp) => (text: string) => pattern.test(text);

const formats = new Map<string, (text: string) => boolean>([
  ["byte", (text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)],
  ["cidr", isCidr],
  ["date", isDate],
  ["datetime", isDateTime],
  ["hexcolor", matches(/^#?(?:[0-9a-f]{3}|[0-9a-f]{6})$/i)],
  ["ipv4", (text) => text.includes(".") && isIp(text)],
  ["ipv6", (text) => text.includes(":") && isIp(text)],
  ["mac", matches(/^(?:[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1)*[0-9a-f]{2}|(?:[0-9a-f]{4}\.)+[0-9a-f]{4})$/i)],
  ["uri", isUri],
  ["uuid", matches(uuid(`${HEX}{4}`, `${HEX}{4}`))],
  ["uuid3", matches(uuid(`3${HEX}{3}`, `${HEX}{4}`))],
  ["uuid4", matches(uuid(`4${HEX}{3}`, `[89ab]${HEX}{3}`))],
  ["uuid5", matches(uuid(`5${HEX}{3}`, `[89ab]${HEX}{3}`))],
]);

/** True for unknown formats too. */
export function isOfFormat(format: string, text: string): boolean {
  return formats.get(format.replaceAll("-", ""))?.(text) ?? true;
}

/** Only the API server checks longer ones: removing leading zeros takes time with the cube of the length. */
const MAX_IP_LENGTH = 128;

/** Accepts leading zeros, as Go did before 1.17. */
function isIp(text: string): boolean {
  if (text.length > MAX_IP_LENGTH) return true;
  if (text.includes(":")) return !text.includes("%") && isIPv6(text.replace(/0*(\d+)(?=\.|$)/g, "$1"));
  const parts = text.split(".");
  return parts.length === 4 && parts.every((part) => /^\d+$/.test(part) && Number(part) <= 255);
}

function isCidr(text: string): boolean {
  const [, ip = "", bits = ""] = /^([^/]+)\/(\d+)$/.exec(text) ?? [];
  return isIp(ip) && Number(bits) <= (ip.includes(":") ? 128 : 32);
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

function isDateTime(text: string): boolean {
  const [date = "", time = ""] = text.toLowerCase().split("t");
  const [, hours = "", minutes = "", seconds = ""] =
    /^(\d{2}):(\d{2}):(\d{2})(?:.\d+)?(?:z|[+-]\d{2}:\d{2})$/.exec(time) ?? [];
  return isDate(date) && hours !== "" && hours <= "23" && minutes <= "59" && seconds <= "59";
}

/** Refuses what Go's url.ParseRequestURI certainly refuses: texts without path or scheme, and control characters. */
function isUri(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern refuses these characters
  return /^(?:\/|[a-z][a-z0-9+.-]*:)/i.test(text) && !/[\x00-\x1f\x7f]/.test(text);
}
