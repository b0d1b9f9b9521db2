/** Bundles certificates in PEM. A Problem quotes nothing of them. */
import { X509Certificate } from "node:crypto";
import { Problem } from "../apimachinery/problem.ts";

const BLOCK = /-----BEGIN ([A-Z0-9 ]*)-----([A-Za-z0-9+/=\s]*)-----END \1-----/g;
const COLUMNS = /.{1,64}/g;

/**
 * Each certificate once, in order, in lines of 64 characters. Text between blocks is a comment and is dropped. Ignores
 * empty texts. Throws Problem("InvalidValue") for a text without a certificate, for other PEM content such as a private
 * key, and if there is no certificate at all.
 */
export function pemBundle(texts: readonly string[], subject: string): string {
  const certificates = new Set(texts.filter((text) => text !== "").flatMap((text) => certificatesOf(text, subject)));
  if (certificates.size === 0) throw wrong(subject, "none of the strings contains a certificate");
  return [...certificates].map((body) => `-----BEGIN CERTIFICATE-----\n${body}-----END CERTIFICATE-----\n`).join("");
}

function certificatesOf(text: string, subject: string): string[] {
  const blocks = [...text.matchAll(BLOCK)];
  if (blocks.some(([, label]) => label !== "CERTIFICATE")) {
    const what = "a string contains PEM other than certificates, such as a private key; use only certificates";
    throw wrong(subject, what);
  }
  if (/-----(?:BEGIN|END)/.test(text.replace(BLOCK, "")))
    throw wrong(subject, "a PEM block is incomplete, or contains more than base64");
  if (blocks.length === 0) throw wrong(subject, "one of the strings has no certificate in PEM");
  return blocks.map(([, , body = ""]) => normalized(body, subject));
}

function normalized(body: string, subject: string): string {
  const der = Buffer.from(body, "base64");
  let raw: Buffer;
  try {
    ({ raw } = new X509Certificate(der));
  } catch {
    // The error may quote the text.
    throw wrong(subject, "a PEM block contains no X.509 certificate");
  }
  if (!raw.equals(der)) throw wrong(subject, "a PEM block contains more than one X.509 certificate");
  return raw.toString("base64").replace(COLUMNS, "$&\n");
}

const wrong = (subject: string, what: string) => new Problem("InvalidValue", `${subject}: ${what}`);
