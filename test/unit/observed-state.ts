/** A binding that copies from the Secret bucket to the HarborCluster harbor, and its view of streams that the test fills. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../src/api/binding.ts";
import type { ObjectRef, Resource, Version } from "../../src/apimachinery/objects.ts";
import { Problem } from "../../src/apimachinery/problem.ts";
import type { Streams } from "../../src/cache/informers.ts";
import type { Dependency } from "../../src/cache/subscription.ts";
import { type View, viewOf } from "../../src/controllers/binding/observed-state.ts";
import { serviceAccountIdentity } from "../../src/kube/identity.ts";
import type { References } from "../../src/targets/references.ts";
import { bindingOf, harbor } from "./bindings.ts";
import { FakeStreams, placeOf, version } from "./informers.ts";
import { ACCOUNTS, HARBOR, SECRETS } from "./resources.ts";

export const KEY = "registry/harbor-s3";
export const IDENTITY = serviceAccountIdentity("registry", "inlay");
export const inRegistry = (resource: Resource, name: string): ObjectRef => ({ resource, namespace: "registry", name });
export const ACCOUNT = inRegistry(ACCOUNTS, "inlay");
export const BUCKET = inRegistry(SECRETS, "bucket");

/** What a view is made of, beside what the streams show. */
export interface Given {
  binding?: SecretBinding;
  account?: ObjectRef;
  sources?: ObjectRef[];
  /** What the target is resolved to. */
  at?: References["targets"][number]["at"];
  /** What older bindings claim of the target. */
  older?: unknown[];
  workloads?: Dependency[];
}

export class Viewing {
  readonly streams = new FakeStreams();

  constructor() {
    this.show(ACCOUNT, version("1"));
    this.show(BUCKET, version("2"));
    this.show(HARBOR, version("3", 1));
  }

  /** The streams show an object from now on, or that there is none. */
  show(ref: ObjectRef, seen: Version | undefined): void {
    if (seen === undefined) this.streams.objects.delete(placeOf(ref));
    else this.streams.objects.set(placeOf(ref), seen);
  }

  look(given: Given = {}): View {
    const { binding = copying(), account = ACCOUNT, sources = [BUCKET], at = HARBOR, older = [], workloads } = given;
    const references: References = {
      sources: new Map(sources.map((ref) => [ref.name, ref])),
      targets: binding.spec.targets.map((target) => ({ target, at })),
    };
    const streams = this.streams as unknown as Streams;
    return viewOf(streams, KEY, binding, { as: { identity: IDENTITY }, account }, references, () => older, workloads);
  }
}

export const copying = (): SecretBinding => bindingOf({ targets: [harbor()] });

/** The same binding with other metadata. */
export function withMetadata(more: Partial<SecretBinding["metadata"]>): SecretBinding {
  const { metadata, ...rest } = copying();
  return { ...rest, metadata: { ...metadata, ...more } };
}

/** The only target of a view. */
export function only({ members: [member] }: View) {
  assert.ok(member !== undefined && !(member.ref instanceof Problem));
  return { target: member.target, ref: member.ref };
}
