/** References to sources come in; what each holds now goes out, read once, as the binding's account. */

import { describeObject, type JsonObject, type KubeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { type MissingPolicy, MissingValue, Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { attempt, READ_VERBS } from "../kube/access-error.ts";
import type { Client } from "../kube/client.ts";
import { findObject } from "../kube/get.ts";
import type { Identity } from "../kube/identity.ts";
import type { LiveSource } from "../transform/live-source.ts";

interface DataObject extends KubeObject {
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
}

type Entry = readonly [key: string, bytes: SecretValue<Uint8Array>];

/** Reads one source, of the version that was seen or later. What keeps it from being read is a result, since other targets may not need it. */
export async function readSource(
  client: Client,
  identity: Identity,
  ref: ObjectRef,
  policy: MissingPolicy,
  seen: string | undefined,
): Promise<LiveSource | Problem> {
  const description = describeObject(ref.resource.kind, ref.namespace, ref.name);
  const read = await attempt(findObject<DataObject>({ client, identity, ref, verbs: READ_VERBS }, seen));
  if (read instanceof Problem) return read;
  if (read === undefined) {
    const problem = new MissingValue("SourceNotFound", `there is no ${description}; the binding waits for it`, policy);
    return { kind: "absent", description, version: "none", policy, problem };
  }
  const version = `${read.metadata.uid}/${read.metadata.resourceVersion}`;
  const { annotations = {}, labels = {} } = read.metadata;
  const texts = { annotations: new SecretValue(annotations), labels: new SecretValue(labels) };
  const base = { description, version, policy, ...texts };
  if (isData(ref, "secrets")) return { kind: "data", isSecret: true, ...base, data: new Map(decoded(read.data)) };
  if (isData(ref, "configmaps")) return { kind: "data", isSecret: false, ...base, data: new Map(ofConfigMap(read)) };
  return { kind: "object", ...base, object: new SecretValue(read as unknown as JsonObject) };
}

/** The versions of a binding's spec and of its sources as they were read: what a stream has brought may be older. */
export function inputsOf(generation: number | undefined, sources: Iterable<LiveSource | Problem>): string {
  return [
    generation,
    ...[...sources].map((source) => (source instanceof Problem ? source.reason : source.version)),
  ].join();
}

const isData = ({ resource }: ObjectRef, plural: string) => resource.group === "" && resource.plural === plural;

function ofConfigMap({ data = {}, binaryData }: DataObject): Entry[] {
  const texts = Object.entries(data).map(([key, text]): Entry => [key, new SecretValue(Buffer.from(text, "utf8"))]);
  return [...texts, ...decoded(binaryData)];
}

function decoded(data: Record<string, string> = {}): Entry[] {
  return Object.entries(data).map(([key, text]) => [key, new SecretValue(Buffer.from(text, "base64"))]);
}
