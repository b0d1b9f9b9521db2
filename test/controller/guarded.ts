/**
 * A namespace with a Secret to protect, and users who may write it by RBAC: one with the role edit and one with the role admin.
 */
import assert from "node:assert/strict";
import type { AnyObject, Api } from "./api.ts";
import { eventually } from "./eventually.ts";
import { secretText } from "./leak-detector.ts";
import { createNamespace, type Rule, type TestNamespace } from "./test-namespace.ts";

const RBAC = "rbac.authorization.k8s.io";
const PROTECTS = "inlay.dev/protects";
/** An API server notices the kind of a policy's params within half a minute. */
export const KIND_IS_KNOWN_WITHIN = 60_000;

export interface Subject {
  kind: "User" | "Group" | "ServiceAccount" | "SecretBinding";
  name: string;
  namespace?: string;
}

/** The protected Secret `bucket` as a source. */
export const bucket = (...writers: Subject[]) => ({ secret: { name: "bucket" }, protect: { writers } });

/** A binding that protects sources. */
export function guard(sources: object[], spec: object = {}, name = "guard"): AnyObject {
  const fields = [{ path: "data.a", template: "a" }];
  return {
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretBinding",
    metadata: { name, labels: { [PROTECTS]: "true" } },
    spec: { sources, targets: [{ apiVersion: "v1", kind: "ConfigMap", name: "target", fields }], ...spec },
  };
}

/** A user, optionally with groups. */
export type Who = string | readonly [user: string, ...groups: string[]];

/** An attempt of a user to change the object at a path. */
export type Act = (api: Api, path: string) => Promise<unknown>;

export const label: Act = (api, path) => api.merge(path, { metadata: { labels: { a: "b" } } });
export const remove: Act = (api, path) => api.delete(path);
export const removeAtOnce: Act = (api, path) => api.delete(`${path}?gracePeriodSeconds=0`);
export const edit =
  (patch: object): Act =>
  (api, path) =>
    api.merge(path, patch);

/** Deletes all objects of a collection one by one, as `kubectl delete --all` does. */
export const removeEach: Act = async (api, path) => {
  const all = collectionOf(path);
  const { items } = await api.get(all);
  const deletions = items.map(({ metadata }: AnyObject) => api.delete(`${all}/${metadata.name}`));
  const failed = (await Promise.allSettled(deletions)).filter(({ status }) => status === "rejected");
  if (failed.length > 0) throw new AggregateError(failed, failed.map((each: AnyObject) => each.reason).join("\n"));
};

/** Deletes all objects of a collection by one request. */
export const removeCollection: Act = (api, path) => api.delete(collectionOf(path));

const collectionOf = (path: string) => path.slice(0, path.lastIndexOf("/"));

/** Creates a namespace in which `edith` has the role edit, and `adam` the role admin. */
export async function newGuarded(
  options: Parameters<typeof createNamespace>[0] = { controller: false },
): Promise<Guarded> {
  const guarded = new Guarded(await createNamespace(options));
  await Promise.all([
    guarded.team.secret("bucket", { accessKeyID: secretText("protected") }),
    guarded.mayBy("edith", "edit"),
    guarded.mayBy("adam", "admin"),
  ]);
  return guarded;
}

export class Guarded {
  readonly team: TestNamespace;
  #count = 0;

  constructor(team: TestNamespace) {
    this.team = team;
  }

  /** Gives a user a ClusterRole in this namespace. It takes effect a moment later. */
  mayBy(name: string, clusterRole: string): Promise<void> {
    return this.#bind(name, { apiGroup: RBAC, kind: "ClusterRole", name: clusterRole });
  }

  /** Gives a user these permissions in this namespace. */
  async may(name: string, ...rules: Rule[]): Promise<void> {
    const role = `user-${++this.#count}`;
    await this.team.api.create(this.team.path(`${RBAC}/v1`, "roles"), { metadata: { name: role }, rules });
    await this.#bind(name, { apiGroup: RBAC, kind: "Role", name: role });
  }

  async #bind(name: string, roleRef: object): Promise<void> {
    await this.team.api.create(this.team.path(`${RBAC}/v1`, "rolebindings"), {
      metadata: { name: `user-${++this.#count}` },
      roleRef,
      subjects: [{ kind: "User", name, apiGroup: RBAC }],
    });
  }

  /** Creates a binding as an admin, and waits until its protection works. */
  async protect(binding: AnyObject, withinMs?: number): Promise<void> {
    await this.team.api.create(this.#bindings, binding);
    for (const { protect, secret, configMap } of binding.spec.sources) {
      if (protect === undefined) continue;
      const [plural, { name }] = secret ? ["secrets", secret] : ["configmaps", configMap];
      await this.refuses("edith", /protects it/, label, `${this.team.path("v1", plural)}/${name}`, withinMs);
    }
  }

  /** Changes an object, by default the protected Secret. Retries until the user's permissions have taken effect. */
  changes(who: Who, path = this.secretPath): Promise<unknown> {
    return eventually(() => this.as(who).merge(path, { metadata: { labels: { count: `${++this.#count}` } } }));
  }

  /** Lets the binding be deleted with the objects that it created. */
  async confirmDeletion(): Promise<void> {
    const metadata = { annotations: { "inlay.dev/delete-copies": "true" } };
    await this.team.api.merge(this.team.bindingPath("guard"), { metadata });
  }

  /** The API for a user. */
  as(who: Who): Api {
    const [user, ...groups] = typeof who === "string" ? [who] : who;
    return this.team.api.as(user, ...groups);
  }

  /**
   * Waits until the API server refuses a dry run of what a user tries, and returns the message. Permissions and params of
   * policies take effect a moment later.
   */
  refuses(who: Who, saying: RegExp, act: Act, path = this.secretPath, withinMs?: number): Promise<string> {
    return refused(saying, () => act(this.as(who).dryRun, path), withinMs);
  }

  refusesToCreate(who: Who, binding: object, saying: RegExp): Promise<string> {
    return refused(saying, () => this.triesToCreate(who, binding));
  }

  /** Waits until a user may create a binding. */
  letsCreate(who: Who, binding: object): Promise<unknown> {
    return eventually(() => this.triesToCreate(who, binding));
  }

  /** Creates a binding by a dry run, with the validation that kubectl asks for. */
  triesToCreate(who: Who, binding: object): Promise<unknown> {
    return this.as(who).dryRun.create(`${this.#bindings}?fieldValidation=Strict`, binding);
  }

  get secretPath(): string {
    return `${this.team.path("v1", "secrets")}/bucket`;
  }

  get #bindings(): string {
    return this.team.path("inlay.dev/v1alpha1", "secretbindings");
  }
}

function refused(saying: RegExp, act: () => Promise<unknown>, withinMs?: number): Promise<string> {
  return eventually(async () => {
    const refusal = await act().then(
      () => "it was let through",
      (error: Error) => error.message,
    );
    assert.match(refusal, saying);
    return refusal;
  }, withinMs);
}

/** Use this in the hook before a file's tests: policies take effect some time after their params are created. */
export async function untilProtectionWorks(): Promise<void> {
  const guarded = await newGuarded();
  await guarded.protect(guard([bucket()]), KIND_IS_KNOWN_WITHIN);
}
