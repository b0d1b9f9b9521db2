/**
 * A namespace with a Secret to protect and with people who may write it by RBAC, one with the role edit and one with the
 * role admin; and what tests of protection do there as one person or the other.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "./api.ts";
import { eventually } from "./eventually.ts";
import { secretText } from "./hunted.ts";
import { newTeam, type Rule, type Team } from "./team.ts";

const RBAC = "rbac.authorization.k8s.io";
const PROTECTS = "inlay.dev/protects";
/** An API server learns of the kind of a policy's params within half a minute. */
export const KIND_IS_KNOWN_WITHIN = 60_000;

export interface Subject {
  kind: "User" | "Group" | "ServiceAccount";
  name: string;
  namespace?: string;
}

/** The protected Secret `bucket` as a source. */
export const bucket = (...writers: Subject[]) => ({ secret: { name: "bucket" }, protect: { writers } });

/** A binding that protects. */
export function guard(sources: object[], spec: object = {}, name = "guard"): AnyObject {
  const fields = [{ path: "data.a", template: "a" }];
  return {
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretBinding",
    metadata: { name, labels: { [PROTECTS]: "true" } },
    spec: { sources, targets: [{ apiVersion: "v1", kind: "ConfigMap", name: "target", fields }], ...spec },
  };
}

/** The arguments by which kubectl changes the spec of the binding `guard`. */
export const changeOf = (spec: object) => patchOf({ spec });
export const patchOf = (patch: object) => [
  ...["patch", "secretbinding", "guard", "--type=merge"],
  `--patch=${JSON.stringify(patch)}`,
];

/** `edith` has the role edit there, `adam` the role admin. */
export async function newGuarded(options: Parameters<typeof newTeam>[0] = { controller: false }): Promise<Guarded> {
  const guarded = new Guarded(await newTeam(options));
  await guarded.team.secret("bucket", { accessKeyID: secretText("protected") });
  await guarded.mayBy("edith", "edit");
  await guarded.mayBy("adam", "admin");
  return guarded;
}

export class Guarded {
  readonly team: Team;
  #count = 0;

  constructor(team: Team) {
    this.team = team;
  }

  /** Gives a user a ClusterRole in this namespace. Rights arrive at the authorizer a moment later. */
  mayBy(name: string, clusterRole: string): Promise<void> {
    return this.#bind(name, { apiGroup: RBAC, kind: "ClusterRole", name: clusterRole });
  }

  /** Gives a user these rights in this namespace. */
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

  /** Makes a binding as an admin, and waits until nobody but those who may can change what it protects. */
  async protect(binding: AnyObject, withinMs?: number): Promise<void> {
    await this.team.api.create(this.team.path("inlay.dev/v1alpha1", "secretbindings"), binding);
    for (const { protect, secret, configMap } of binding.spec.sources) {
      if (protect === undefined) continue;
      const object = secret ? `secret/${secret.name}` : `configmap/${configMap.name}`;
      const labels = () => this.as("edith", "label", object, "a=b", "--dry-run=server");
      await refused(/protects it/, labels, withinMs);
    }
  }

  /** Changes an object; once more as long as the user's rights have not arrived. */
  changes(who: string, object = "secret/bucket"): Promise<string> {
    return eventually(() => this.as(who, "label", "--overwrite", object, `count=${++this.#count}`));
  }

  /** `who` is a name, maybe with groups behind it: `dora,storage`. */
  as(who: string, ...args: string[]): Promise<string> {
    return this.#kubectl(who, args);
  }

  creates(who: string, object: object, ...flags: string[]): Promise<string> {
    return this.#kubectl(who, ["create", "--filename=-", ...flags], JSON.stringify(object));
  }

  /** Whether an apply of it would be let through. */
  applies(who: string, object: object, ...flags: string[]): Promise<string> {
    return this.#kubectl(who, ["apply", "--filename=-", "--dry-run=server", ...flags], JSON.stringify(object));
  }

  /** Whether it would be let through now or in a moment. */
  letsCreate(who: string, object: object): Promise<string> {
    return eventually(() => this.creates(who, object, "--dry-run=server"));
  }

  /** The refusal's text; asked again until it says that, since rights and params arrive a moment later. */
  refuses(who: string, saying: RegExp, ...args: string[]): Promise<string> {
    return refused(saying, () => this.as(who, ...args, "--dry-run=server"));
  }

  refusesToCreate(who: string, object: object, saying: RegExp): Promise<string> {
    return refused(saying, () => this.creates(who, object, "--dry-run=server"));
  }

  get secretPath(): string {
    return `${this.team.path("v1", "secrets")}/bucket`;
  }

  async #kubectl(who: string, args: string[], stdin?: string): Promise<string> {
    const [name, ...groups] = who.split(",");
    const as = [`--as=${name}`, ...groups.map((group) => `--as-group=${group}`)];
    const options = stdin === undefined ? {} : { stdin };
    const { stdout } = await controlPlane().kubectlWith(options, ...as, `--namespace=${this.team.namespace}`, ...args);
    return stdout;
  }
}

function refused(saying: RegExp, act: () => Promise<string>, withinMs?: number): Promise<string> {
  return eventually(async () => {
    const refusal = await act().then(
      () => "it was let through",
      (error: Error) => error.message,
    );
    assert.match(refusal, saying);
    return refusal;
  }, withinMs);
}

/** For the hook before a file's tests: policies with params begin to work some time after kind and policy are there. */
export async function untilProtectionWorks(): Promise<void> {
  const guarded = await newGuarded();
  await guarded.protect(guard([bucket()]), KIND_IS_KNOWN_WITHIN);
}
