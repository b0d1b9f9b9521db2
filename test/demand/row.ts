/**
 * The parts of a row of the table in docs/demand.md: the sources, the objects as users keep them in git, the entries of the
 * binding, and the values that the test expects. Each call creates new values, and registers them with the leak detector.
 */
import { randomBytes } from "node:crypto";
import type { AnyObject } from "../controller/api.ts";
import { registerSecret } from "../controller/leak-detector.ts";

/** An object with values that users write by hand today. */
export interface Row {
  /** Its number in docs/demand.md. */
  number: number;
  title: string;
  /** The data of the sources by name and key. The second call returns the values of a rotation. */
  values: () => Values;
  /** The names of the sources that are ConfigMaps. The other sources are Secrets. */
  configMaps?: string[];
  targets: Target[];
}

export type Values = Record<string, Record<string, string>>;

/** Keys and indexes from the root of an object. */
export type Place = (string | number)[];

export interface Target {
  apiVersion: string;
  kind: string;
  plural: string;
  name: string;
  scope?: "Cluster";
  /**
   * The object without Inlay. It is omitted if the object is not valid without the value, so that the binding creates it.
   */
  object?: AnyObject;
  /** The binding's entry for it, without apiVersion, kind and name. */
  entry: { fields: object[]; create?: { manifest: object }; mode?: "Once" };
  /** The expected value of each place. Nothing else of the object may differ. */
  arrives: (values: AnyObject) => [Place, unknown][];
  /** The operation in managedFields for the fields of an object that existed before: `Update` is a patch. */
  operation?: "Apply" | "Update";
  /** The places where a value stays after every release, because the object is not valid without it. */
  required?: Place[];
  /** The API server would accept the object without the value, because its kind has no schema. */
  schemaless?: true;
}

/** A text with the form of a certificate. Its content is random. */
export function pem(): string {
  const body = registerSecret(randomBytes(48).toString("base64"));
  return `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;
}

export const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** The JSON that COSI writes into the only key of its Secrets. */
export function bucketInfo(bucketName: string, endpoint: string, accessKeyID: string): string {
  const secretS3 = { endpoint, region: "eu-central-1", accessKeyID, accessSecretKey: "made-up" };
  return JSON.stringify({ metadata: { name: "bc-1" }, spec: { bucketName, authenticationType: "KEY", secretS3 } });
}
