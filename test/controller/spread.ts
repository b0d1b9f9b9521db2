/** A team whose binding clones a Secret into other namespaces, and restarts the consumers of the clones. */
import { isDeepStrictEqual } from "node:util";
import type { AnyObject } from "./api.ts";
import { secretText } from "./leak-detector.ts";
import { createNamespace, type Rule, type TestNamespace } from "./test-namespace.ts";
import { rolloutRules, Workloads } from "./workloads.ts";

/** The permissions of the account in the namespaces of the clones. */
export const cloneRules: Rule[] = [
  { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch", "create", "patch", "delete"] },
];
/** The permissions that a RoleBinding to inlay-rollouts gives, as far as these tests need them. */
export const restartRules: Rule[] = [
  { apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list", "watch", "patch"] },
  { apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: ["list"] },
];

/** The Role and RoleBinding by which a namespace permits the team to restart its workloads. */
export const CONSENT = "restarts";

const LABEL = "spread.test/of";

/** The Secret that is cloned. */
export const ORIGIN = "login";

export interface Tenant {
  namespace: TestNamespace;
  workloads: Workloads;
}

/** The permissions for selecting namespaces by a label, which are needed in the whole cluster. */
const namespaceRules: Rule[] = [{ apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"] }];

export class Spread {
  readonly team: TestNamespace;
  readonly tenants: Tenant[];
  /** Whether the binding selects namespaces by their label instead of their names. */
  readonly #byLabel: boolean;

  private constructor(team: TestNamespace, tenants: Tenant[], byLabel: boolean) {
    this.team = team;
    this.tenants = tenants;
    this.#byLabel = byLabel;
  }

  /**
   * Creates a team with the Secret, whose account may clone and restart in all namespaces, and `count` other namespaces with a
   * label.
   */
  static async everywhere(count: number): Promise<Spread> {
    const team = await createNamespace({ rules: rolloutRules });
    await team.grantInCluster([...cloneRules, ...restartRules, ...namespaceRules]);
    const spread = new Spread(team, [], true);
    await Promise.all(Array.from({ length: count }, () => spread.addTenant()));
    await spread.rotate();
    return spread;
  }

  /** Creates one more namespace with the label. */
  async addTenant(): Promise<Tenant> {
    const namespace = await createNamespace({ account: false, rules: [], controller: false });
    const tenant = { namespace, workloads: new Workloads(namespace) };
    this.tenants.push(tenant);
    const labels = { [LABEL]: this.team.namespace };
    await this.team.api.merge(`/api/v1/namespaces/${namespace.namespace}`, { metadata: { labels } });
    return tenant;
  }

  /**
   * Creates a team with the Secret, and `count` other namespaces in which its account may clone. With `mayRestart`, it may
   * restart Deployments there too.
   */
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
    const spread = new Spread(team, tenants, false);
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
      namespaceSelector: this.#byLabel ? { matchLabels: { [LABEL]: this.team.namespace } } : { names: this.namespaces },
      create: { manifest: {} },
      fields: [{ path: "data", from: { source: ORIGIN } }],
      ...more,
    };
  }

  /** Creates the binding `spread`, which clones and restarts. */
  bind(rollout: object, more: object = {}): Promise<AnyObject> {
    return this.team.bind("spread", {
      acknowledge: ["ReadableCopies"],
      sources: [{ secret: { name: ORIGIN } }],
      targets: [this.clones()],
      rollout,
      ...more,
    });
  }

  /** The clone in a namespace, or undefined. */
  clone({ namespace }: Tenant): Promise<AnyObject | undefined> {
    return this.team.api.find(`${namespace.path("v1", "secrets")}/${ORIGIN}`);
  }

  /** The namespaces without a clone, or with one that has other values. */
  async behind(): Promise<string[]> {
    const { data } = await this.team.api.get(`${this.team.path("v1", "secrets")}/${ORIGIN}`);
    const clones = await Promise.all(this.tenants.map((tenant) => this.clone(tenant)));
    return this.namespaces.filter((_, at) => !isDeepStrictEqual(clones[at]?.data, data));
  }

  /** The condition of the rollout. */
  async condition(): Promise<AnyObject> {
    const { status } = await this.team.binding("spread");
    return status.conditions.find(({ type }: AnyObject) => type === "RolledOut");
  }
}
