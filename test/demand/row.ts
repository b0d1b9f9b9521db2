/**
 * What a row of the table of demands is made of: the sources, the objects as one keeps them in git, what a binding says of
 * them, and what has to stand there then. Values are made anew by each call, and hunted.
 */
import { randomBytes } from "node:crypto";
import type { AnyObject } from "../controller/api.ts";
import { registerSecret } from "../controller/leak-detector.ts";

/** Something that users keep by hand today. */
export interface Row {
  /** Its number in docs/demand.md. */
  number: number;
  title: string;
  /** What the sources hold, by their names, then their keys. Called again, it is a rotation. */
  values: () => Values;
  /** The sources that are ConfigMaps; the others are Secrets. */
  configMaps?: string[];
  targets: Target[];
}

export type Values = Record<string, Record<string, string>>;

/** Keys and indexes from an object's root. */
export type Place = (string | number)[];

export interface Target {
  apiVersion: string;
  kind: string;
  plural: string;
  name: string;
  scope?: "Cluster";
  /** The object as it is without Inlay; none where it can't be without the value, so that the binding makes it. */
  object?: AnyObject;
  /** The binding's entry for it, without apiVersion, kind and name. */
  entry: { fields: object[]; create?: { manifest: object }; mode?: "Once" };
  /** What stands where, for values. Nothing else of the object may differ. */
  arrives: (values: AnyObject) => [Place, unknown][];
  /** How managedFields say that fields of an object that was there are written: `Update` is a patch. */
  operation?: "Apply" | "Update";
  /** Where a value stays, whatever the release says, since the object is not valid without it. */
  required?: Place[];
  /** The API server would take the object without the value: its kind has no schema. */
  schemaless?: true;
}

/** A certificate to look at: nobody can read this one. */
export function pem(): string {
  const body = registerSecret(randomBytes(48).toString("base64"));
  return `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;
}

export const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** What COSI leaves in the one key of its Secrets. */
export function bucketInfo(bucketName: string, endpoint: string, accessKeyID: string): string {
  const secretS3 = { endpoint, region: "eu-central-1", accessKeyID, accessSecretKey: "made-up" };
  return JSON.stringify({ metadata: { name: "bc-1" }, spec: { bucketName, authenticationType: "KEY", secretS3 } });
}
