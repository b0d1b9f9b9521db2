/** Collects the permissions of accounts, and what the controller needs to impersonate them. Pure. */
import { SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import type { RequiredPermission } from "../controllers/binding/required-access.ts";
import { OPEN_ACCOUNT, OWN_ACCOUNT, READ_VERBS } from "../kube/access-error.ts";
import type { AccountAccess } from "./roles.ts";

/** The account for BindingCompositions that the manifests create. */
const COMPOSITIONS_ACCOUNT = "inlay-compositions";

export class AccountList {
  readonly #ownNamespace: string;
  readonly #accounts = new Map<string, AccountAccess & { permissions: RequiredPermission[] }>();

  /** In the namespace of the controller are the accounts of the installation. */
  constructor(ownNamespace: string) {
    this.#ownNamespace = ownNamespace;
  }

  get isEmpty(): boolean {
    return this.#accounts.size === 0;
  }

  /** `isRead`: the controller also watches the account. */
  add(namespace: string, name: string, permissions: readonly RequiredPermission[], isRead = true): void {
    const isInstalled = namespace === this.#ownNamespace && [OWN_ACCOUNT, COMPOSITIONS_ACCOUNT].includes(name);
    const isNew = !this.#accounts.has(`${namespace}/${name}`);
    const account = this.#of(namespace, name, isInstalled);
    account.permissions.push(...permissions);
    if (!isNew || isInstalled || name === OPEN_ACCOUNT) return;
    const ref = { resource: SERVICE_ACCOUNTS, namespace, name };
    const verbs = ["impersonate", ...(isRead ? READ_VERBS : [])];
    const why = `acts as ServiceAccount ${namespace}/${name}`;
    this.#of(this.#ownNamespace, OWN_ACCOUNT, true).permissions.push({ ref, verbs, why });
  }

  /** Sorted by namespace and name. */
  all(): AccountAccess[] {
    return [...this.#accounts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, account]) => account);
  }

  #of(namespace: string, name: string, isInstalled: boolean) {
    const key = `${namespace}/${name}`;
    const account = this.#accounts.get(key) ?? { namespace, name, isInstalled, permissions: [] };
    this.#accounts.set(key, account);
    return account;
  }
}
