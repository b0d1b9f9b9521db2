/**
 * Checks the installation while this replica leads: the admission policies, the controller's own permissions, and the Secret with the
 * digest key. A problem degrades Inlay and stops nothing, so only the log, /readyz?verbose, the metrics and conditions report it.
 */
import { DEFAULT_NAMESPACE, type Installation, LEASE_NAME } from "../../api/installation.ts";
import type { Resource } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import {
  ADMISSION_POLICIES,
  ADMISSION_POLICY_BINDINGS,
  BINDING_COMPOSITIONS,
  LEASES,
  NAMESPACES,
  PODS,
  SECRET_BINDINGS,
  SECRET_GRANTS,
  SECRETS,
  SERVICE_ACCOUNTS,
  VAULT_CONNECTIONS,
} from "../../apimachinery/resources.ts";
import { type AccessRules, isListed } from "../../kube/access-rules.ts";
import { ifFound } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { resourceText } from "../../kube/grant-commands.ts";
import { CONTROLLER } from "../../kube/identity.ts";
import { MARK_RIGHT } from "../../kube/request-budget.ts";
import type {
  InstallationCheck,
  InstallationProblem,
  InstallationProblems,
} from "../../observability/installation-problems.ts";
import type { Log } from "../../observability/log.ts";
import { DIGEST_KEY_NAME, type DigestKeys } from "../../rollout/digest/keys.ts";
import { WorkQueue, type WorkResult } from "../../workqueue/work-queue.ts";
import { ALL_POLICIES, judgePolicies, policiesOf } from "./policies.ts";

type Kind = Pick<Resource, "group" | "version" | "plural">;

/** One permission. */
interface Right extends Kind {
  verb: string;
  /** Undefined for any name. */
  name: string | undefined;
  /** `own`: in the controller's namespace. Otherwise in all namespaces, or in the one that Inlay is installed for. */
  where: "own" | undefined;
}

interface Rule {
  kind: Kind;
  verbs: readonly string[];
  names?: readonly (string | undefined)[];
  where?: "own";
  /** Only in an installation for the cluster: a Role can't grant it. */
  isForCluster?: true;
}

const statusOf = ({ group, version, plural }: Kind): Kind => ({ group, version, plural: `${plural}/status` });
const kind = (group: string, plural: string): Kind => ({ group, version: "v1", plural });

/** deploy/manifests/10-controller-role.yaml and deploy/namespaced/10-controller-role.yaml. A test compares them. */
const RULES: readonly Rule[] = [
  { kind: SECRET_BINDINGS, verbs: ["list", "watch", "patch"] },
  { kind: statusOf(SECRET_BINDINGS), verbs: ["update"] },
  { kind: BINDING_COMPOSITIONS, verbs: ["list", "watch", "patch"], isForCluster: true },
  { kind: statusOf(BINDING_COMPOSITIONS), verbs: ["update"], isForCluster: true },
  { kind: VAULT_CONNECTIONS, verbs: ["list", "watch"] },
  { kind: statusOf(VAULT_CONNECTIONS), verbs: ["update"] },
  { kind: SECRET_GRANTS, verbs: ["get", "list", "watch"] },
  { kind: SERVICE_ACCOUNTS, verbs: ["impersonate", "get", "list", "watch"], names: ["inlay"] },
  { kind: NAMESPACES, verbs: ["get"] },
  { kind: NAMESPACES, verbs: ["list", "watch"], isForCluster: true },
  { kind: kind("apiextensions.k8s.io", "customresourcedefinitions"), verbs: ["get"], isForCluster: true },
  { kind: ADMISSION_POLICIES, verbs: ["get"], names: ALL_POLICIES, isForCluster: true },
  { kind: ADMISSION_POLICY_BINDINGS, verbs: ["get"], names: ALL_POLICIES, isForCluster: true },
  { kind: kind("events.k8s.io", "events"), verbs: ["create"] },
  { kind: kind("authentication.k8s.io", "tokenreviews"), verbs: ["create"], isForCluster: true },
  { kind: kind("authorization.k8s.io", "subjectaccessreviews"), verbs: ["create"], isForCluster: true },
  { kind: MARK_RIGHT, verbs: [MARK_RIGHT.verb], isForCluster: true },
  { kind: LEASES, verbs: ["create"], where: "own" },
  { kind: LEASES, verbs: ["get", "update"], names: [LEASE_NAME], where: "own" },
  { kind: SECRETS, verbs: ["get", "patch"], names: [DIGEST_KEY_NAME], where: "own" },
  { kind: PODS, verbs: ["list", "watch", "patch"], where: "own" },
];

const rightsOf = ({ kind: { group, version, plural }, verbs, names = [undefined], where }: Rule): Right[] =>
  verbs.flatMap((verb) => names.map((name): Right => ({ verb, group, version, plural, name, where })));

/** What the controller needs. `scope`: the one namespace that Inlay is installed for. */
export const rightsFor = (scope: string | undefined): Right[] =>
  RULES.filter(({ isForCluster }) => scope === undefined || !isForCluster).flatMap(rightsOf);

/** What the check of the policies reads. In an installation for one namespace, it is optional. */
export const policyRightsFor = (scope: string | undefined): Right[] =>
  [ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS].flatMap((kind) =>
    rightsOf({ kind, verbs: ["get"], names: policiesOf(scope) }),
  );

/** `command` grants all permissions of the controller. */
export function missingRights(missing: readonly Right[], command: string): InstallationProblem | undefined {
  if (missing.length === 0) return undefined;
  const byWhat = Map.groupBy(missing, resourceText);
  const parts = [...byWhat].map(([what, rights]) => {
    const verbs = [...new Set(rights.map(({ verb }) => verb))].join(", ");
    const names = [...new Set(rights.flatMap(({ name }) => name ?? []))];
    return `${verbs} ${what}${names.length === 1 ? ` ${names[0]}` : ""}`;
  });
  return {
    message:
      `the controller's own account lacks permissions (${parts.join("; ")}), and docs/reference/permissions.md says what does not work ` +
      `without them; in a clone of this version of Inlay, run: ${command}`,
    parts,
  };
}

const KEY = "installation";
const EVERY_MS = 30_000;
/** While something is wrong: an admin is probably about to fix it. */
const WRONG_EVERY_MS = 5_000;
/** How much longer each further check waits that finds the same. */
const SLOWER_MS = 1_000;
/** A problem is reported if it is still there then: a role that was just created, or an API server that just started, may need that long. */
const CONFIRM_MS = 2_000;
const BACKOFF_MS = { first: 1_000, most: EVERY_MS };

interface Services {
  installation: Pick<Installation, "ownNamespace" | "scope">;
  client: Pick<Client, "get" | "may" | "rules">;
  digestKeys: Pick<DigestKeys, "verify">;
  problems: Pick<InstallationProblems, "report" | "withdraw">;
  replica: { readonly version: string };
  log: Pick<Log, "info">;
}

type Found = InstallationProblem | undefined;

export class InstallationController {
  readonly name = "installation";
  readonly queue = new WorkQueue({ concurrency: 1, backoffMs: BACKOFF_MS });
  readonly #services: Services;
  readonly #rights: readonly Right[];
  /** The problems that the last check found, whether they were reported or not. */
  #suspected: ReadonlySet<InstallationCheck> = new Set();
  /** How many checks in a row found the same. */
  #same = 0;
  #saidThatPoliciesAreUnknown = false;

  constructor(services: Services) {
    this.#services = services;
    this.#rights = rightsFor(services.installation.scope);
  }

  start(): void {
    this.queue.add(KEY);
  }

  /** The queue has one key: the installation. */
  async reconcile(): Promise<WorkResult> {
    const { client, installation, problems } = this.#services;
    const found = new Map<InstallationCheck, Found>();
    const own = await client.rules(CONTROLLER, installation.ownNamespace);
    const missing = await this.#missingRights(own);
    found.set("permissions", missingRights(missing, this.#roleCommand));
    if (await this.#mayReadPolicies(own, missing)) found.set("policies", await this.#judgePolicies());
    else problems.withdraw("policies");
    found.set("digest_key", await this.#digestKey());
    const wrong = new Set([...found].flatMap(([check, problem]) => (problem === undefined ? [] : [check])));
    const isNew = (check: InstallationCheck) => wrong.has(check) && !this.#suspected.has(check);
    for (const [check, problem] of found) if (!isNew(check)) problems.report(check, problem);
    const isUnconfirmed = [...wrong].some(isNew);
    this.#same = isUnconfirmed || wrong.size !== this.#suspected.size ? 0 : this.#same + 1;
    this.#suspected = wrong;
    if (isUnconfirmed) return { retry: "after", ms: CONFIRM_MS };
    const wrongMs = Math.min(WRONG_EVERY_MS + this.#same * SLOWER_MS, EVERY_MS);
    return { retry: "after", ms: wrong.size > 0 ? wrongMs : EVERY_MS };
  }

  /** An authorizer other than RBAC lists no permissions, so each that is not listed is asked for. */
  async #missingRights(own: AccessRules): Promise<Right[]> {
    const { client, installation } = this.#services;
    const { ownNamespace, scope = ownNamespace } = installation;
    const watched = scope === ownNamespace ? own : await client.rules(CONTROLLER, scope);
    const missing: Right[] = [];
    for (const right of this.#rights) {
      const rules = right.where === "own" ? own : watched;
      if (!(await this.#isAllowed(rules, right))) missing.push(right);
    }
    return missing;
  }

  async #isAllowed(rules: AccessRules, right: Right): Promise<boolean> {
    if (isListed(rules, right)) return true;
    const { ownNamespace, scope } = this.#services.installation;
    const namespace = right.where === "own" ? ownNamespace : scope;
    return this.#services.client.may(CONTROLLER, right.verb, right, namespace, right.name);
  }

  /** A controller for the cluster has that permission, or lacks it as one of its own. For one namespace, an admin may grant it. */
  async #mayReadPolicies(own: AccessRules, missing: readonly Right[]): Promise<boolean> {
    const { installation, log } = this.#services;
    const { ownNamespace: namespace, scope } = installation;
    const rights = policyRightsFor(scope);
    if (scope === undefined) return !missing.some((each) => rights.some(({ plural }) => plural === each.plural));
    for (const right of rights) {
      if (await this.#isAllowed(own, right)) continue;
      if (!this.#saidThatPoliciesAreUnknown) log.info({ namespace }, UNKNOWN_POLICIES);
      this.#saidThatPoliciesAreUnknown = true;
      return false;
    }
    this.#saidThatPoliciesAreUnknown = false;
    return true;
  }

  async #judgePolicies(): Promise<Found> {
    const { client, installation, replica } = this.#services;
    const find = (resource: Resource, name: string) => ifFound(client.get(CONTROLLER, { resource, name }));
    const seen = [];
    for (const name of policiesOf(installation.scope)) {
      const policy = await find(ADMISSION_POLICIES, name);
      seen.push({ name, policy, binding: await find(ADMISSION_POLICY_BINDINGS, name) });
    }
    return judgePolicies(seen, replica.version, this.#policiesCommand);
  }

  async #digestKey(): Promise<Found> {
    const problem = await this.#services.digestKeys.verify().catch((error: unknown) => {
      if (error instanceof Problem && error.reason !== "Unavailable") return error;
      throw error;
    });
    return problem && { message: problem.message, parts: [DIGEST_KEY_NAME] };
  }

  /** The policy on tokens has the namespace of a controller for the cluster. */
  get #policiesCommand(): string {
    const { ownNamespace, scope } = this.#services.installation;
    if (scope !== undefined || ownNamespace === DEFAULT_NAMESPACE) return "kubectl apply -f deploy/policies/";
    return `kubectl kustomize deploy/policies | sed 's/${DEFAULT_NAMESPACE}/${ownNamespace}/g' | kubectl apply -f -`;
  }

  /** Applies the role of the controller again. */
  get #roleCommand(): string {
    const { ownNamespace, scope } = this.#services.installation;
    const file = `deploy/${scope === undefined ? "manifests" : "namespaced"}/10-controller-role.yaml`;
    const shipped = scope === undefined ? DEFAULT_NAMESPACE : "registry";
    if (ownNamespace === shipped) return `kubectl apply -f ${file}`;
    return `sed 's/${shipped}/${ownNamespace}/g' ${file} | kubectl apply -f -`;
  }
}

const UNKNOWN_POLICIES =
  "can't check whether the admission policies are installed, because the controller may not read them; " +
  "a cluster admin can allow it as deploy/namespaced/README.md describes";
