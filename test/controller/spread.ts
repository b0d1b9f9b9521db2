/** A team whose binding clones a Secret into other namespaces, and restarts what reads the clones there. */
import type { AnyObject } from "./api.ts";
import { secretText } from "./leak-detector.ts";
import { createNamespace, type Rule, type TestNamespace } from "./test-namespace.ts";
import { rolloutRules, Workloads } from "./workloads.ts";

/** What the account needs in the namespaces of the clones. */
export const cloneRules: Rule[] = [
  { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch", "create", "patch", "delete"] },
];
/** What a namespace gives by a RoleBinding of inlay-rollouts, as far as these tests need it. */
export const restartRules: Rule[] = [
  { apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list", "watch", "patch"] },
  { apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: ["list"] },
];

/** The Role and RoleBinding by which a namespace lets the team restart its workloads. */
export const CONSENT = "restarts";

/** The Secret that is cloned. */
export const ORIGIN = "login";

export interface Tenant {
  namespace: TestNamespace;
  workloads: Workloads;
}

export class Spread {
  readonly team: TestNamespace;
  readonly tenants: readonly Tenant[];

  private constructor(team: TestNamespace, tenants: readonly Tenant[]) {
    this.team = team;
    this.tenants = tenants;
  }

  /** A team with the Secret, and so many other namespaces, into which it may clone. `mayRestart`: there it may restart Deployments too. */
  static async over(count: number, mayRestart: (index: number) => boolean = () => true): Promise<Spread> {
    const team = await createNamespace({ rules: [...cloneRules, ...rolloutRules] });
    const tenants = await Promise.all(
      Array.from({ length: count }, async (_, index): Promise<Tenant> => {
        const namespace = await createNamespace({ account: false, rules: [], controller: false });
        await team.grant(cloneRules, { namespace: namespace.namespace, role: "clones" });
        if (mayRestart(index)) await team.grant(restartRules, { namespace: namespace.namespace, role: CONSENT });
        return { namespace, workloads: new Workloads(namespace) };
      }),
    );
    const spread = new Spread(team, tenants);
    await spread.rotate();
    return spread;
  }

  get namespaces(): string[] {
    return this.tenants.map(({ namespace: { namespace } }) => namespace);
  }

  rotate(keys: readonly string[] = ["user", "password"]): Promise<void> {
    return this.team.secret(ORIGIN, Object.fromEntries(keys.map((key) => [key, secretText(key)])));
  }

  /** A target: a clone of all data in each of the namespaces. */
  clones(more: object = {}): object {
    return {
      apiVersion: "v1",
      kind: "Secret",
      name: ORIGIN,
      namespaceSelector: { names: this.namespaces },
      create: { manifest: {} },
      fields: [{ path: "data", from: { source: ORIGIN } }],
      ...more,
    };
  }

  /** Makes the binding `spread`, which clones and restarts. */
  bind(rollout: object, more: object = {}): Promise<AnyObject> {
    return this.team.bind("spread", {
      acknowledge: ["ReadableCopies"],
      sources: [{ secret: { name: ORIGIN } }],
      targets: [this.clones()],
      rollout,
      ...more,
    });
  }

  /** What the condition of the rollout says. */
  async condition(): Promise<AnyObject> {
    const { status } = await this.team.binding("spread");
    return status.conditions.find(({ type }: AnyObject) => type === "RolledOut");
  }
}
