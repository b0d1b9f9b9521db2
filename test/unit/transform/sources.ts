/** Sources for the tests of this folder: plain values come in, sources as if they had been read go out. */
import type { JsonObject } from "../../../src/model/kube-object.ts";
import { SecretValue } from "../../../src/model/secret-value.ts";
import type { LiveSource } from "../../../src/model/source-value.ts";

/** A Secret. Texts become their UTF-8 bytes. */
export function secret(keys: Record<string, string | Uint8Array>, description = "Secret registry/bucket"): LiveSource {
  const data = Object.entries(keys).map(([key, value]) => [key, new SecretValue(Buffer.from(value))] as const);
  return { kind: "data", description, data: new Map(data) };
}

export function object(value: JsonObject, description = "Service registry/web"): LiveSource {
  return { kind: "object", description, object: new SecretValue(value) };
}
