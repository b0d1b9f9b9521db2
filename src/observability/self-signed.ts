/**
 * Creates a key and a self-signed certificate as PEM, for a server without a given one. Node can't create certificates. This writes one
 * fixed form in DER (RFC 5280), which is smaller than a package for all forms.
 */
import { generateKeyPairSync, randomBytes, sign } from "node:crypto";

export interface CertificateAndKey {
  cert: string;
  key: string;
}

const DAY_MS = 86_400_000;
/** As long as controller-runtime's. */
const VALID_DAYS = 365;

// The tags of ASN.1 and the object identifiers that are used, in DER.
const [INTEGER, BIT_STRING, OCTET_STRING, OID, UTF8, UTC_TIME, SEQUENCE, SET] = [2, 3, 4, 6, 12, 23, 48, 49] as const;
const DNS_NAME = 0x82;
const explicit = (tag: number) => 0xa0 + tag;
const oid = (hex: string) => der(OID, Buffer.from(hex, "hex"));
const COMMON_NAME = oid("550403");
const SUBJECT_ALT_NAME = oid("551d11");
const EXTENDED_KEY_USAGE = oid("551d25");
const SERVER_AUTH = oid("2b06010505070301");
const ECDSA_WITH_SHA256 = der(SEQUENCE, oid("2a8648ce3d040302"));

/** Creates a certificate for these DNS names. The first is its subject. It is valid from an hour ago. */
export function selfSigned(names: readonly [string, ...string[]], now = Date.now()): CertificateAndKey {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8, Buffer.from(names[0])))));
  const serial = randomBytes(16);
  serial[0] = 0x40 | ((serial[0] ?? 0) & 0x3f); // positive, and no leading zero
  const validity = [now - DAY_MS / 24, now + VALID_DAYS * DAY_MS].map((time) => der(UTC_TIME, utcTime(time)));
  const alternatives = names.map((each) => der(DNS_NAME, Buffer.from(each)));
  const extensions = [
    der(SEQUENCE, SUBJECT_ALT_NAME, der(OCTET_STRING, der(SEQUENCE, ...alternatives))),
    der(SEQUENCE, EXTENDED_KEY_USAGE, der(OCTET_STRING, der(SEQUENCE, SERVER_AUTH))),
  ];
  const toBeSigned = der(
    SEQUENCE,
    der(explicit(0), der(INTEGER, Buffer.of(2))), // version 3
    der(INTEGER, serial),
    ECDSA_WITH_SHA256,
    name,
    der(SEQUENCE, ...validity),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(explicit(3), der(SEQUENCE, ...extensions)),
  );
  const signature = der(BIT_STRING, Buffer.of(0), sign("sha256", toBeSigned, privateKey));
  const certificate = der(SEQUENCE, toBeSigned, ECDSA_WITH_SHA256, signature).toString("base64");
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${certificate.replace(/.{64}/g, "$&\n").trimEnd()}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

/** A value with its tag and its length. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), content]);
  const bytes = length < 0x100 ? Buffer.of(length) : Buffer.of(length >> 8, length & 0xff);
  return Buffer.concat([Buffer.of(tag, 0x80 + bytes.length), bytes, content]);
}

/** `YYMMDDhhmmssZ`: for years from 1950 to 2049. */
const utcTime = (time: number) => Buffer.from(`${new Date(time).toISOString().slice(2, 19).replace(/[-:T]/g, "")}Z`);
