/**
 * Tries attacks on each sample and composition that protects Secrets or copies them into other namespaces, while its page is run word for
 * word. The attackers are users and ServiceAccounts with the roles edit and admin in the namespaces of tenants, and the accounts of Inlay
 * there, by impersonation and with their tokens.
 */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { untilMay } from "../controller/access.ts";
import { type AnyObject, Api, type RequestFailed } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { applyFile, deleteFile, objectsOf } from "../controller/manifests.ts";
import { sharedController } from "../controller/shared.ts";
import { MANIFEST } from "./compositions.ts";
import { root, runPage, type Step } from "./pages.ts";

const MARK = "impersonate-extra-inlay.dev%2fbinding";
const RBAC = "rbac.authorization.k8s.io";
const VICTIM = "victim";
const ROLES = ["edit", "admin"];
const CLAIMS_TO_BE_INLAY = "claim to be Inlay";

interface Shipped {
  /** The attacks are tried after the step of the page that has this text. */
  after: string;
  /** The namespace of the Secret that is protected or copied, with the account `inlay`. */
  home: string;
  secret: string;
  /** The binding that protects it. */
  binding?: string;
  /** A namespace with a copy. */
  copyIn?: string;
  /** What the page says, because who acts as the account may change the copies. */
  limit?: RegExp;
  /** The claim of a tenant that asks for a copy: its annotations, by the namespaces of source and copy. */
  asks?: (name: string, from: string, into: string) => Record<string, string>[];
  /** Files that the page describes and does not apply. */
  also?: string[];
}

const REFLECTOR = "reflector.v1.k8s.emberstack.com";
const REPLICATOR = "replicator.v1.mittwald.de";
const folders: Record<string, Shipped> = {
  "samples/shared-secret": {
    after: "kubectl wait --for=condition=RolledOut",
    home: "platform",
    secret: "blogsecret",
    binding: "blogsecret",
    copyIn: "blog-01",
    limit: /account `platform\/inlay` may write the Secret `blogsecret` in every namespace/,
  },
  "compositions/shared-secret": {
    after: "kubectl delete secret blogsecret -n blog-03",
    home: "platform",
    secret: "blogsecret",
    binding: "blogsecret",
    copyIn: "blog-01",
    limit: /account `platform\/inlay` may write the Secret `blogsecret` in every namespace/,
  },
  "compositions/protected-secrets": {
    after: "kubectl wait --for=condition=Ready secretbinding/payments-api-protection",
    home: "team-shop",
    secret: "payments-api",
    binding: "payments-api-protection",
  },
  "compositions/reflector": {
    after: "kubectl apply -f compositions/reflector/composition.yaml",
    home: "certs",
    secret: "wildcard",
    copyIn: "mirror-a",
    limit: /role `edit` in `certs` can impersonate its accounts/,
    also: ["pull.yaml"],
    asks: (name, from, into) => [
      {
        [`${REFLECTOR}/reflection-allowed`]: "true",
        [`${REFLECTOR}/reflection-auto-enabled`]: "true",
        [`${REFLECTOR}/reflection-auto-namespaces`]: into,
      },
      { [`${REFLECTOR}/reflects`]: `${from}/${name}` },
    ],
  },
  "compositions/replicator": {
    after: "kubectl apply -f compositions/replicator/composition.yaml",
    home: "registry-login",
    secret: "login",
    copyIn: "copy-a",
    limit: /role `edit` in `registry-login` can impersonate its accounts/,
    also: ["pull.yaml"],
    asks: (name, from, into) => [
      { [`${REPLICATOR}/replicate-to`]: into },
      { [`${REPLICATOR}/replicate-from`]: `${from}/${name}` },
    ],
  },
};

const api = () => new Api(controlPlane());
const pathIn = (namespace: string, plural: string, group = "v1") =>
  `${group === "v1" ? "/api/v1" : `/apis/${group}`}/namespaces/${namespace}/${plural}`;
const secretsIn = (namespace: string) => pathIn(namespace, "secrets");
const bindingsIn = (namespace: string) => pathIn(namespace, "secretbindings", "inlay.dev/v1alpha1");
const bindingOf = (name: string, spec: object, labels: object = {}) => ({
  apiVersion: "inlay.dev/v1alpha1",
  kind: "SecretBinding",
  metadata: { name, labels },
  spec,
});

/** Whether a folder protects a Secret, or copies one into other namespaces. */
function isExposed(objects: readonly AnyObject[]): boolean {
  const specs = objects.flatMap(({ kind, spec }) =>
    kind === "SecretBinding" ? [{ spec }] : kind === "BindingComposition" ? spec.bindings.map(specOf) : [],
  );
  return specs.some(({ spec, patches }: AnyObject) => {
    const places = (patches ?? []).map(({ toFieldPath }: AnyObject) => toFieldPath ?? "");
    const isElsewhere = (target: AnyObject) =>
      target.namespaceSelector !== undefined ||
      places.some((place: string) => /^spec\.targets\[\d+\]\.namespace/.test(place));
    return (
      spec.sources.some(({ protect }: AnyObject) => protect !== undefined) ||
      (spec.targets ?? []).some((target: AnyObject) => target.kind === "Secret" && isElsewhere(target))
    );
  });
}
const specOf = ({ base, patches }: AnyObject) => ({ spec: base.spec, patches });

interface Attacker {
  who: string;
  api: Api;
  /** Whether the test impersonates the user, as a cluster admin, who may set the mark of Inlay. */
  isImpersonated?: boolean;
}
/** A request that a cluster admin may send, and no attacker. */
type Attack = (api: Api) => Promise<unknown>;

/** Users and accounts with the roles edit and admin in a namespace, and these acting as its account `inlay`. */
async function attackersIn(namespace: string, home: string): Promise<Attacker[]> {
  const account = `system:serviceaccount:${home}:inlay`;
  const found: Attacker[] = [];
  for (const role of ROLES) {
    const [user, robot] = [`${role}-of-${namespace}`, `robot-${role}`];
    await api().create(pathIn(namespace, "serviceaccounts"), { metadata: { name: robot } });
    await api().create(pathIn(namespace, "rolebindings", `${RBAC}/v1`), {
      metadata: { name: `attackers-${role}` },
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: role },
      subjects: [
        { kind: "User", name: user, apiGroup: RBAC },
        { kind: "ServiceAccount", name: robot, namespace },
      ],
    });
    const token = await tokenOf(api(), namespace, robot);
    const itself = api().bearing(token);
    // Otherwise attacks would fail for another reason.
    for (const each of [api().as(user), itself])
      await eventually(() =>
        each.dryRun.merge(`${secretsIn(namespace)}/${VICTIM}`, { metadata: { labels: { a: "b" } } }),
      );
    found.push(
      { who: user, api: api().as(user), isImpersonated: true },
      { who: `${robot} of ${namespace}`, api: itself },
    );
    found.push({ who: `${robot} of ${namespace} as ${account}`, api: itself.as(account) });
    found.push({
      who: `${robot} of ${namespace} as inlay-compositions`,
      api: itself.as("system:serviceaccount:inlay-system:inlay-compositions"),
    });
    if (namespace === home)
      found.push({
        who: `${role} of ${namespace} with a token of inlay`,
        api: api().bearing(await tokenOf(itself, home, "inlay")),
      });
    else await assert.rejects(tokenOf(itself, home, "inlay"), { status: 403 });
  }
  return found;
}

async function tokenOf(by: Api, namespace: string, account: string): Promise<string> {
  const spec = { audiences: [], expirationSeconds: 600 };
  const path = `${pathIn(namespace, "serviceaccounts")}/${account}/token`;
  const { status } = await by.create(path, { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec });
  return status.token;
}

const DATA = { data: { password: "Yg==" } };
const OWNED = { metadata: { ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "mine", uid: "a-uid" }] } };
const merges = (path: string, patches: Record<string, object>): [string, Attack][] =>
  Object.entries(patches).map(([what, patch]) => [what, (by) => by.merge(path, patch)]);

/** Attacks on a protected Secret, and on the binding that protects it. */
function onProtected({ home, secret, binding = "" }: Shipped, present: AnyObject): [string, Attack][] {
  const path = `${secretsIn(home)}/${secret}`;
  const guard = `${bindingsIn(home)}/${binding}`;
  const source = { name: "again", secret: { name: secret } };
  const { sources } = present.spec;
  const weaker = sources.map((each: AnyObject) => ({ ...each, protect: undefined }));
  // A binding has to do something.
  const workload = { apiVersion: "apps/v1", kind: "Deployment", name: "web" };
  const rollout = present.spec.rollout ? {} : { rollout: { targets: [workload] } };
  const field = { path: "data.stolen", from: { source: "own", key: "a" } };
  const own = { name: "own", secret: { name: VICTIM } };
  const open = sources.map(({ protect, ...each }: AnyObject) => ({
    ...each,
    protect: { ...protect, writers: [{ kind: "Group", name: "system:authenticated" }] },
  }));
  const another = (name: string, spec: object) => bindingOf(name, spec, { "inlay.dev/protects": "true" });
  return [
    ...merges(path, {
      "change it": DATA,
      "label it": { metadata: { labels: { a: "b" } } },
      "remove its labels": { metadata: { labels: null } },
      "give it an owner": OWNED,
    }),
    [
      "apply it",
      (by) => by.apply(path, { apiVersion: "v1", kind: "Secret", metadata: { name: secret }, ...DATA }, "thief", true),
    ],
    ["delete it", (by) => by.delete(path)],
    ["delete all Secrets", (by) => by.delete(secretsIn(home))],
    [
      CLAIMS_TO_BE_INLAY,
      (by) => by.sending({ [MARK]: `${home}/${binding}/${present.metadata.uid}` }).merge(path, DATA),
    ],
    ...merges(guard, {
      "end the protection": {
        metadata: { labels: { "inlay.dev/protects": null } },
        spec: { sources: weaker, ...rollout },
      },
      "become a writer": { spec: { sources: open } },
      "protect another Secret": { spec: { sources: [{ name: secret, ...sources[0], secret: { name: VICTIM } }] } },
      "change the account": { spec: { serviceAccountName: "robot-edit" } },
      "give the binding an owner": OWNED,
      "let a composition delete the binding": { metadata: { labels: { "inlay.dev/claim-uid": "another" } } },
      "write it by the binding": {
        spec: {
          sources: [...sources, own],
          targets: [{ apiVersion: "v1", kind: "Secret", name: secret, fields: [field] }],
        },
      },
    }),
    ["delete the binding", (by) => by.delete(guard)],
    ["delete all bindings", (by) => by.delete(bindingsIn(home))],
    [
      "protect it again",
      (by) => by.create(bindingsIn(home), another("again", { sources: [{ ...source, protect: {} }] })),
    ],
  ];
}

/** Attacks on what the roles of a folder let its accounts do. */
function onOthers({ home }: Shipped, elsewhere: string): [string, Attack][] {
  const path = `${secretsIn(elsewhere)}/${VICTIM}`;
  const verb = { apiGroups: [""], resources: ["secrets"], verbs: ["change-protected-secrets", "protect"] };
  const rbac = (plural: string) => pathIn(home, plural, `${RBAC}/v1`);
  const compositions = "/apis/inlay.dev/v1alpha1/bindingcompositions";
  return [
    ["read another Secret elsewhere", (by) => by.get(path)],
    ["change another Secret elsewhere", (by) => by.merge(path, DATA)],
    ["delete another Secret elsewhere", (by) => by.delete(path)],
    ["list Secrets elsewhere", (by) => by.get(secretsIn(elsewhere))],
    [
      "give oneself the verbs of writers",
      (by) => by.create(rbac("roles"), { metadata: { name: "mine" }, rules: [verb] }),
    ],
    ["delete all compositions", (by) => by.delete(compositions)],
  ];
}

const refused = (attacker: string, what: string) => (error: RequestFailed) => {
  const isDenied = error.status === 403 || /ValidatingAdmissionPolicy 'inlay-/.test(error.message);
  assert.ok(isDenied, `${attacker}: ${what}: ${error.message}`);
  return true;
};

async function attack(folder: string, shipped: Shipped): Promise<void> {
  const { home, secret, binding, copyIn, limit, asks, also = [] } = shipped;
  const made: string[] = [];
  const make = async (by: Api, path: string, object: AnyObject) => {
    await by.create(path, object);
    made.push(`${path}/${object.metadata.name}`);
  };
  const other = copyIn ?? "default";
  for (const namespace of [home, other])
    await make(api(), secretsIn(namespace), { metadata: { name: VICTIM }, stringData: { a: "example-of-a-tenant" } });
  for (const namespace of copyIn ? [home, copyIn] : [home]) {
    const accounts = pathIn(namespace, "serviceaccounts");
    if ((await api().find(`${accounts}/inlay`)) === undefined)
      await make(api(), accounts, { metadata: { name: "inlay" } });
    // The most that an admin of the namespace may give to the account.
    await make(api(), pathIn(namespace, "rolebindings", `${RBAC}/v1`), {
      metadata: { name: "inlay-edits" },
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: "edit" },
      subjects: [{ kind: "ServiceAccount", name: "inlay", namespace }],
    });
    await untilMay(`system:serviceaccount:${namespace}:inlay`, { verb: "patch", resource: "secrets", namespace });
  }
  const tenants = await attackersIn(home, home);
  const strangers = copyIn ? await attackersIn(copyIn, home) : [];

  const attacks = [
    ...(binding ? onProtected(shipped, await api().get(`${bindingsIn(home)}/${binding}`)) : []),
    ...onOthers(shipped, other),
  ];
  for (const [what, act] of attacks) {
    // Only who impersonates a user may send a mark.
    const admin = what === CLAIMS_TO_BE_INLAY ? api().as("admin", "system:masters") : api();
    await act(admin.dryRun).catch((error) =>
      assert.match(error.message, /inlay.dev\/delete-copies/, `${what}: ${error.message}`),
    );
    const all = [...tenants, ...(what.endsWith("elsewhere") ? [] : strangers)].filter(
      ({ who, isImpersonated }) => what !== CLAIMS_TO_BE_INLAY || (!isImpersonated && who.includes(" as ")),
    );
    await Promise.all(
      all.map(({ who, api: by }) => assert.rejects(act(by.dryRun), refused(who, what), `${who} may ${what}`)),
    );
  }

  const before = await api().get(`${secretsIn(home)}/${secret}`);
  const victims = () =>
    Promise.all([home, other].map(async (each) => (await api().get(`${secretsIn(each)}/${VICTIM}`)).data));
  const untouched = await victims();
  const editor = api().as(`edit-of-${home}`);
  const target = (name: string, more: object = {}) => ({
    apiVersion: "v1",
    kind: "Secret",
    name,
    ...more,
    fields: [{ path: "data.stolen", from: { source: VICTIM, key: "a" } }],
  });
  const spec = (targets: object[]) => ({
    acknowledge: ["ReadableCopies"],
    sources: [{ secret: { name: VICTIM } }],
    targets,
  });
  if (binding) await make(editor, bindingsIn(home), bindingOf("thief", spec([target(secret)])));
  await make(editor, bindingsIn(home), bindingOf("thief-elsewhere", spec([target(VICTIM, { namespace: other })])));
  if (binding) await untilReason(home, "thief", ["Protected"]);
  await untilReason(home, "thief-elsewhere", ["Forbidden"]);

  if (copyIn) {
    // A copy of a Secret that the account may read and the stranger may not.
    const stolen = { acknowledge: ["ReadableCopies"], sources: [{ secret: { name: VICTIM, namespace: home } }] };
    const fields = [{ path: "data.stolen", from: { source: VICTIM, key: "a" } }];
    const copy = {
      ...stolen,
      targets: [{ apiVersion: "v1", kind: "ConfigMap", name: "loot", create: { manifest: {} }, fields }],
    };
    await make(api().as(`edit-of-${copyIn}`), bindingsIn(copyIn), bindingOf("thief", copy));
    await untilReason(copyIn, "thief", ["NotGranted"]);
    // What the page calls a limit: the account may change the copies, so who acts as it may.
    const asAccount = tenants.filter(({ who }) => who.endsWith(":inlay") || who.endsWith("token of inlay"));
    assert.equal(asAccount.length, 2 * ROLES.length);
    for (const each of asAccount) await each.api.dryRun.merge(`${secretsIn(copyIn)}/${secret}`, DATA);
    assert.match((await readFile(join(root, folder, "README.md"), "utf8")).replaceAll("\n", " "), limit as RegExp);
  }

  if (asks) {
    await make(api(), pathIn(other, "rolebindings", `${RBAC}/v1`), {
      metadata: { name: "inlay-compositions" },
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: "inlay-compositions" },
      subjects: [{ kind: "ServiceAccount", name: "inlay-compositions", namespace: "inlay-system" }],
    });
    for (const file of also) await applyFile(api(), join(root, folder, file));
    // The author of a claim asks for another's Secret, and to overwrite one.
    const [push, pull] = asks(VICTIM, home, other) as [object, object];
    await make(api().as(`edit-of-${other}`), secretsIn(other), {
      metadata: { name: "loot", annotations: pull },
      data: {},
    });
    await api().merge(`${secretsIn(home)}/${VICTIM}`, { metadata: { annotations: push } });
    await eventually(async () => {
      for (const [namespace, name] of [
        [other, "loot"],
        [home, VICTIM],
      ] as const) {
        const { items } = await api().get(bindingsIn(namespace));
        const composed = items.filter(({ spec: { sources, targets } }: AnyObject) =>
          targets?.some((each: AnyObject) => each.name === name && sources[0].name === "source"),
        );
        assert.equal(composed.length, 1, `${namespace}/${name}`);
        const reason = composed[0].status?.conditions?.[0].reason;
        assert.ok(
          ["NotGranted", "Forbidden", "AccountMissing", "Conflict"].includes(reason),
          `${namespace}/${name}: ${reason}`,
        );
      }
    });
    assert.deepEqual((await api().get(`${secretsIn(other)}/loot`)).data, undefined);
    for (const file of also) await deleteFile(api(), join(root, folder, file));
  }

  assert.deepEqual(await victims(), untouched);
  const after = await api().get(`${secretsIn(home)}/${secret}`);
  assert.deepEqual([after.metadata.uid, after.data], [before.metadata.uid, before.data]);
  // The account goes last, because Inlay releases the bindings as it.
  for (const path of made.reverse()) {
    await api().remove(path);
    await eventually(async () => assert.equal(await api().find(path), undefined));
  }
}

const untilReason = (namespace: string, name: string, reasons: string[]) =>
  eventually(async () => {
    const { status } = await api().get(`${bindingsIn(namespace)}/${name}`);
    const [ready] = status?.conditions ?? [];
    assert.ok(reasons.includes(ready?.reason), `${namespace}/${name}: ${ready?.reason}: ${ready?.message}`);
  });

describe("the attacks on what is shipped", function () {
  this.timeout("3m");
  before(async () => {
    await applyFile(api(), MANIFEST);
    await sharedController(controlPlane()).start();
  });
  after(() => deleteFile(api(), MANIFEST));

  it("cover each folder that protects a Secret or copies one into other namespaces", async () => {
    const files = globSync(["samples/*/*.yaml", "compositions/*/*.yaml"], { cwd: root });
    const byFolder = Map.groupBy(files, (file) => dirname(file));
    const exposed: string[] = [];
    for (const [folder, names] of byFolder) {
      const texts = await Promise.all(names.map((name) => readFile(join(root, name), "utf8")));
      if (isExposed(texts.flatMap(objectsOf))) exposed.push(folder);
    }
    assert.deepEqual(exposed.sort(), Object.keys(folders).sort());
  });

  for (const [folder, shipped] of Object.entries(folders))
    it(`fail in ${folder}, as tenants and as its account`, async () => {
      let tried = 0;
      const taken = async ({ commands }: Step) => {
        if (commands.includes(shipped.after) && tried++ === 0) await attack(folder, shipped);
      };
      await runPage(`${folder}/README.md`, {}, taken, undefined, ["Forbidden", "NotGranted", "Protected"]);
      assert.ok(tried > 0, "the page has the step");
    });
});
