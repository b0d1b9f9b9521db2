/** Reads what `inlay init` offers and checks: kinds, objects, schemas, Secrets and their keys. Reads as the user. */
import { isWritableKind } from "../api/writable.ts";
import {
  apiVersionOf,
  describeObject,
  type KubeObject,
  type ObjectRef,
  type Resource,
} from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SECRETS } from "../apimachinery/resources.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { listNames, suggestNames } from "../apimachinery/suggest-names.ts";
import { type Reader, type Reading, withAdvice } from "../explain/reading.ts";
import type { Discovery, ServedResource } from "../kube/discovery.ts";
import type { KindSchema, Schemas } from "../kube/schemas.ts";
import { entries } from "../sources/watched-source.ts";
import type { LiveSource } from "../transform/live-source.ts";

export interface InitTools {
  readonly reader: Reader;
  readonly discovery: Pick<Discovery, "allKinds" | "byKindAsNamed">;
  readonly schemas: Pick<Schemas, "of">;
}

type Data = Extract<LiveSource, { kind: "data" }>;

export class ClusterView {
  readonly #tools: InitTools;
  readonly namespace: string;

  constructor(tools: InitTools, namespace: string) {
    this.#tools = tools;
    this.namespace = namespace;
  }

  /** The kinds that a binding can write, each in its preferred version. */
  async kinds(): Promise<ServedResource[]> {
    const all = (await this.#tools.discovery.allKinds()).filter(
      ({ group, kind, verbs }) => verbs.includes("patch") && verbs.includes("list") && isWritableKind(group, kind),
    );
    return [...new Map(all.toReversed().map((each) => [`${each.group}/${each.kind}`, each])).values()].toReversed();
  }

  /** The kind of that kind or plural, with or without its group. Throws Problem. */
  async kindCalled(text: string): Promise<Resource> {
    const all = await this.kinds();
    const wanted = text.toLowerCase();
    const found = all.filter((each) =>
      [each.kind, each.plural].some((name) => [name, fullName(name, each)].some((one) => one.toLowerCase() === wanted)),
    );
    const [first, ...others] = found;
    if (first === undefined)
      throw new Problem(
        "KindNotFound",
        `--target: the cluster serves no kind ${JSON.stringify(text)} that a binding can write; ${suggestNames(
          "the cluster",
          text,
          [...new Set(all.map(({ kind }) => kind))],
        )}`,
      );
    if (others.length > 0)
      throw new Problem(
        "KindNotFound",
        `--target: several groups have the kind ${first.kind}; write one of ${found.map((each) => fullName(each.kind, each)).join(", ")}`,
      );
    return (await this.#tools.discovery.byKindAsNamed(apiVersionOf(first), first.kind)) as Resource;
  }

  names(resource: Resource): Promise<string[]> {
    const namespace = resource.namespaced ? this.namespace : undefined;
    const scope = { resource, namespace, form: "metadata" as const };
    return this.#tools.reader.list(scope, ({ metadata }) => metadata.name).then(foundIn);
  }

  /** Throws Problem if there is none. */
  async object(resource: Resource, name: string): Promise<KubeObject> {
    const ref: ObjectRef = { resource, name, ...(resource.namespaced && { namespace: this.namespace }) };
    const read = await this.#tools.reader.get(ref, (object) => object, "whole");
    if (read.state !== "NotFound") return foundIn(read);
    const what = describeObject(resource.kind, ref.namespace, name);
    const others = listNames("the namespace", name, await this.names(resource));
    throw new Problem("TargetNotFound", `--target: there is no ${what}; ${others}`);
  }

  schemaOf(resource: Resource): Promise<KindSchema | undefined> {
    return this.#tools.schemas.of(resource);
  }

  /** The values stay sealed. Throws Problem if there is no such Secret. */
  async secret(name: string): Promise<Data> {
    const ref: ObjectRef = { resource: SECRETS, namespace: this.namespace, name };
    const read = await this.#tools.reader.get(ref, (object) => sealed(object, this.namespace), "whole");
    if (read.state !== "NotFound") return foundIn(read);
    const others = listNames("the namespace", name, await this.names(SECRETS));
    throw new Problem("SourceNotFound", `--secret: there is no Secret ${this.namespace}/${name}; ${others}`);
  }
}

const fullName = (name: string, { group }: Pick<Resource, "group">) => (group === "" ? name : `${name}.${group}`);

function foundIn<T>(read: Reading<T>): T {
  if (read.state === "Found") return read.it;
  throw new Problem("Forbidden", read.state === "Unreadable" ? withAdvice(read) : "there is no such object");
}

function sealed({ metadata, ...object }: KubeObject & { data?: unknown }, namespace: string): Data {
  return {
    kind: "data",
    isSecret: true,
    description: `Secret ${namespace}/${metadata.name}`,
    version: metadata.resourceVersion,
    policy: { onMissing: "Wait", optional: false },
    annotations: new SecretValue({}),
    labels: new SecretValue({}),
    data: new Map(entries(object.data, "base64")),
  };
}
