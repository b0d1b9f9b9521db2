/** References to sources come in; what each holds now goes out, read once, as the binding's account. */
import { isStatus } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import type { Identity } from "../kube/identity.ts";
import { READ_VERBS, refusal } from "../kube/refusal.ts";
import { describeObject, type JsonObject, type ObjectRef } from "../model/kube-object.ts";
import { Problem } from "../model/problem.ts";
import { SecretValue } from "../model/secret-value.ts";
import type { LiveSource } from "../model/source-value.ts";

interface DataObject {
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
}

/** Reads one source. What keeps it from being read is a result, since other targets may not need it. */
export async function readSource(client: Client, identity: Identity, ref: ObjectRef): Promise<LiveSource | Problem> {
  const description = describeObject(ref.resource.kind, ref.namespace, ref.name);
  try {
    if (isData(ref, "secrets")) return fromSecret(description, await client.get<DataObject>(identity, ref));
    if (isData(ref, "configmaps")) return fromConfigMap(description, await client.get<DataObject>(identity, ref));
    return { kind: "object", description, object: new SecretValue(await client.get<JsonObject>(identity, ref)) };
  } catch (error) {
    if (isStatus(error, 404) && error.reason === "NotFound") {
      return new Problem("SourceNotFound", `there is no ${description}; the binding waits for it`);
    }
    return refusal(error, { identity, ref, verbs: READ_VERBS }, "get");
  }
}

const isData = ({ resource }: ObjectRef, plural: string) => resource.group === "" && resource.plural === plural;

function fromSecret(description: string, secret: DataObject): LiveSource {
  return { kind: "data", description, data: new Map(decoded(secret.data)) };
}

function fromConfigMap(description: string, configMap: DataObject): LiveSource {
  const texts = Object.entries(configMap.data ?? {}).map(
    ([key, text]) => [key, new SecretValue<Uint8Array>(Buffer.from(text, "utf8"))] as const,
  );
  return { kind: "data", description, data: new Map([...texts, ...decoded(configMap.binaryData)]) };
}

function decoded(data: Record<string, string> = {}): (readonly [string, SecretValue<Uint8Array>])[] {
  return Object.entries(data).map(([key, text]) => [key, new SecretValue<Uint8Array>(Buffer.from(text, "base64"))]);
}
