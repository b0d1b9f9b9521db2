/** A binding that copies from the Secret bucket to the HarborCluster harbor, and its view of watches that the test fills. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../src/api/binding.ts";
import type { ObjectRef, Resource, Version } from "../../src/apimachinery/objects.ts";
import { Problem } from "../../src/apimachinery/problem.ts";
import type { Subscription } from "../../src/cache/subscription.ts";
import { type ObservedState, observe } from "../../src/controllers/binding/observed-state.ts";
import { serviceAccountIdentity } from "../../src/kube/identity.ts";
import type { ProducedBy } from "../../src/sources/grant-rules.ts";
import { observeGrants } from "../../src/sources/grants.ts";
import { Poller } from "../../src/sources/poller.ts";
import { parseSources } from "../../src/sources/registry.ts";
import type { References } from "../../src/targets/references.ts";
import { selectTargets } from "../../src/targets/select.ts";
import { finish } from "../../src/workqueue/cpu-scheduler.ts";
import { immediately } from "./fakes.ts";
import { FakeInformers, placeOf, version } from "./informers.ts";
import { bindingOf, targetOf } from "./objects.ts";
import { ACCOUNTS, HARBOR, SECRETS } from "./resources.ts";
import { watched } from "./sources/watched.ts";

export const KEY = "registry/harbor-s3";
export const IDENTITY = serviceAccountIdentity("registry", "inlay");
export const inRegistry = (resource: Resource, name: string): ObjectRef => ({ resource, namespace: "registry", name });
export const ACCOUNT = inRegistry(ACCOUNTS, "inlay");
export const BUCKET = inRegistry(SECRETS, "bucket");

/** The input of a view, besides what the watches show. */
export interface Given {
  binding?: SecretBinding;
  account?: ObjectRef;
  sources?: ObjectRef[];
  /** What the target resolves to. */
  at?: References["targets"][number]["at"];
  /** What older bindings claim of the target. */
  older?: unknown[];
  /** The composition of the binding. */
  composition?: ProducedBy;
  workloads?: Subscription[];
}

export class ObservedStateFixture {
  readonly informers = new FakeInformers();
  readonly poller = new Poller({
    changed: () => {},
    refreshed: () => {},
    onError: (error) => assert.fail(String(error)),
  });

  constructor() {
    this.show(ACCOUNT, version("1"));
    this.show(BUCKET, version("2"));
    this.show(HARBOR, version("3", 1));
  }

  /** The watches show an object from now on, or that there is none. */
  show(ref: ObjectRef, seen: Version | undefined): void {
    if (seen === undefined) this.informers.objects.delete(placeOf(ref));
    else this.informers.objects.set(placeOf(ref), seen);
  }

  look(given: Given = {}): ObservedState {
    const { binding = copying(), account = ACCOUNT, sources = [BUCKET], at = HARBOR } = given;
    const { older = [], composition = "none", workloads } = given;
    const references: References = {
      parsedSources: parseSources(binding),
      sources: new Map(sources.map((ref) => [ref.name, watched(ref, undefined, ref.namespace !== "registry")])),
      targets: binding.spec.targets.map((target) => ({ target, at })),
    };
    const resolved = [...references.sources.values()].flatMap((each) => (each instanceof Problem ? [] : [each]));
    const compiled = {
      key: KEY,
      binding,
      identity: IDENTITY,
      references,
      resolved,
      selection: finish(selectTargets(this.informers, KEY, IDENTITY, references)),
      grants: finish(observeGrants(this.informers, KEY, binding, resolved, () => composition)),
    };
    const services = { watcher: this.informers, polls: this.poller, competingAt: () => immediately(older) };
    return finish(observe(services, compiled, { as: { identity: IDENTITY }, account }, workloads));
  }
}

export const copying = (metadata: Partial<SecretBinding["metadata"]> = {}): SecretBinding =>
  bindingOf({ metadata, spec: { targets: [targetOf()] } });

/** The only target of a view. */
export function only({ objects: [member] }: ObservedState) {
  assert.ok(member !== undefined && !(member.ref instanceof Problem));
  return { target: member.target, ref: member.ref };
}
