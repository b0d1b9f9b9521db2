/** Builds sources with plain values for the tests of this folder. */
import type { JsonObject } from "../../../src/apimachinery/objects.ts";
import { type MissingPolicy, MissingValue } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import type { LiveSource } from "../../../src/transform/live-source.ts";

const wait: MissingPolicy = { onMissing: "Wait", optional: false };

/** A Secret. Texts become their UTF-8 bytes. */
export function secret(
  keys: Record<string, string | Uint8Array>,
  { description = "Secret registry/bucket", policy = wait, annotations = {}, isSecret = true } = {},
): LiveSource {
  const data = Object.entries(keys).map(([key, value]) => [key, new SecretValue(Buffer.from(value))] as const);
  return {
    kind: "data",
    isSecret,
    description,
    version: "1",
    policy,
    annotations: new SecretValue(annotations),
    labels: new SecretValue({}),
    data: new Map(data),
  };
}

export function object(
  value: JsonObject,
  { description = "Service registry/web", policy = wait, annotations = {} } = {},
): LiveSource {
  return {
    kind: "object",
    description,
    version: "1",
    policy,
    annotations: new SecretValue(annotations),
    labels: new SecretValue({}),
    object: new SecretValue(value),
  };
}

/** A missing source. */
export function absent(policy = wait, description = "Secret registry/lost"): LiveSource {
  return {
    kind: "absent",
    description,
    version: "none",
    policy,
    problem: new MissingValue("SourceNotFound", `there is no ${description}`, policy),
  };
}
