/**
 * A missing permission of the account of a binding is reported with the commands that grant it. Until then, the binding
 * does not do it.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject, RequestFailed } from "../controller/api.ts";
import { inlay, inlayJson } from "../controller/cli.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { objectsOf } from "../controller/manifests.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { accessKey, messageOf, newRegistry, SECONDS, spec } from "../controller/registry.ts";
import { stopSharedController } from "../controller/shared.ts";
import {
  createNamespace,
  harborTarget,
  RESTARTED_WITHIN_MS,
  type Rule,
  type TestNamespace,
  usualRules,
} from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const admin = () => controlPlane().kubeconfigFile;

const rule = (resource: "secrets" | "harborclusters", ...verbs: string[]): Rule => ({
  apiGroups: [resource === "secrets" ? "" : "goharbor.io"],
  resources: [resource],
  verbs,
});

/** Each verb on each resource and name, sorted. */
const permissionsOf = (roles: AnyObject[]): string[] =>
  roles
    .flatMap(({ rules }) => rules as Required<Rule>[])
    .flatMap(({ apiGroups, resources, verbs, resourceNames = ["*"] }) =>
      [apiGroups, resources, resourceNames, verbs].reduce<string[]>(
        (all, parts) => all.flatMap((before) => parts.map((part) => `${before}/${part}`)),
        [""],
      ),
    )
    .sort();

describe("permissions: a binding", () => {
  describe("whose account may not", () => {
    const cases: { lacks: string; names: string; rules: Rule[] }[] = [
      {
        lacks: "get the source",
        names: "may not get secrets/bucket in namespace",
        rules: [rule("secrets", "list", "watch"), rule("harborclusters", "get", "list", "watch", "patch")],
      },
      {
        lacks: "watch the source",
        names: "may not watch secrets/bucket in namespace",
        rules: [rule("secrets", "get"), rule("harborclusters", "get", "list", "watch", "patch")],
      },
      {
        lacks: "get the target",
        names: "may not get harborclusters.goharbor.io/harbor in namespace",
        rules: [rule("secrets", "get", "list", "watch"), rule("harborclusters", "list", "watch", "patch")],
      },
      {
        lacks: "watch the target",
        names: "may not watch harborclusters.goharbor.io/harbor in namespace",
        rules: [rule("secrets", "get", "list", "watch"), rule("harborclusters", "get", "patch")],
      },
      {
        lacks: "patch the target",
        names: "may not patch harborclusters.goharbor.io/harbor in namespace",
        rules: [rule("secrets", "get", "list", "watch"), rule("harborclusters", "get", "list", "watch")],
      },
    ];
    for (const { lacks, names, rules } of cases) {
      it(`${lacks} is Forbidden, and works after the commands of the message were run word for word`, async () => {
        const { team, value } = await newRegistry({ rules });
        await team.bind("harbor-s3", spec());
        const binding = await team.until("harbor-s3", "Forbidden");
        const message = messageOf(binding);
        assert.ok(message.includes(`ServiceAccount ${team.namespace}/inlay ${names} ${team.namespace}`), message);
        assert.equal((await team.s3()).accesskey, undefined);
        await paste(commandsIn(message));
        await team.until("harbor-s3", "Synced", SECONDS);
        assert.equal((await team.s3()).accesskey, value);
      });
    }

    it("do anything gets all permissions that it needs, and no more, from the commands of one message", async () => {
      const { team, value } = await newRegistry({ rules: [] });
      await team.secret("other", { accessKeyID: secretText("other") });
      await team.bind("harbor-s3", spec());
      await paste(commandsIn(messageOf(await team.until("harbor-s3", "Forbidden"))));
      const { status } = await team.until("harbor-s3", "Synced", SECONDS);
      assert.equal(status.missingPermissions, undefined);
      assert.equal((await team.s3()).accesskey, value);
      const { items } = await team.api.get(team.path("rbac.authorization.k8s.io/v1", "roles"));
      const names = items.flatMap(({ rules }: AnyObject) => (rules ?? []).map((each: Rule) => each.resourceNames));
      assert.deepEqual(names.sort(), [["bucket"], ["harbor"]]);
    });

    it("read, create or restart anything gets all of that from the commands in the status, pasted once", async () => {
      const { team, value } = await newRegistry({ rules: [] });
      const shop = new Workloads(team);
      await shop.deploy({ core: { env: { bucket: ["accessKeyID"] } } });
      const copy = {
        apiVersion: "v1",
        kind: "Secret",
        name: "copy",
        create: { manifest: {} },
        fields: [{ path: "data.accessKeyID", from: { source: "bucket", key: "accessKeyID" } }],
      };
      const rollout = { consumersOf: ["bucket"], runCronJobs: true, replacePods: true, requireDisruptionBudget: true };
      await team.bind("harbor-s3", spec({ targets: [...spec().targets, copy], rollout }));
      const denied = await shop.until("harbor-s3", "Forbidden");
      const { missingPermissions, conditions } = denied["status"];
      for (const { type, reason, message } of conditions) {
        assert.equal(reason, "Forbidden");
        if (type === "Reconciling") continue;
        assert.match(
          message,
          / with: kubectl get secretbinding harbor-s3 -n \S+ -o jsonpath='{.status.missingPermissions}'$/,
        );
        for (const part of [
          "get, list, watch on secrets/bucket",
          "create on secrets",
          "list, watch, patch on deployments.apps",
        ])
          assert.ok(message.includes(part), message);
      }
      await paste(missingPermissions);
      await team.until("harbor-s3", "Synced", SECONDS);
      await shop.rolledOut("harbor-s3", 0);
      const secret = `${team.path("v1", "secrets")}/copy`;
      assert.equal((await team.api.get(secret)).data.accessKeyID, Buffer.from(value).toString("base64"));
      await team.api.create(team.path("policy/v1", "poddisruptionbudgets"), {
        metadata: { name: "core" },
        spec: { maxUnavailable: 1, selector: { matchLabels: { app: "core" } } },
      });
      await team.secret("bucket", { accessKeyID: secretText("rotated") });
      await shop.rolledOut("harbor-s3", 1);
      assert.deepEqual(await shop.restarts(), { core: 1 });
      const { items } = await team.api.get(team.path("rbac.authorization.k8s.io/v1", "roles"));
      const granted = items.filter(({ metadata }: AnyObject) => metadata.name.startsWith("inlay-"));
      assert.equal(granted.length, missingPermissions.split("\n").length);
    });

    it("read a cluster-scoped source gets a command for a ClusterRole, which works", async () => {
      const { team } = await newRegistry();
      await team.api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {
        metadata: { name: team.namespace },
        value: 7,
        description: "a-description",
      });
      await team.bind("harbor-s3", {
        sources: [
          {
            name: "class",
            object: {
              apiVersion: "scheduling.k8s.io/v1",
              resource: "priorityclasses",
              name: team.namespace,
              scope: "Cluster",
            },
          },
        ],
        targets: [harborTarget({ accesskey: { from: { source: "class", fieldPath: "description" } } })],
      });
      const message = messageOf(await team.until("harbor-s3", "Forbidden"));
      assert.match(message, /may not watch priorityclasses\.scheduling\.k8s\.io\/.*: kubectl create clusterrole /);
      await paste(commandsIn(message));
      await team.until("harbor-s3", "Synced", SECONDS);
      assert.equal((await team.s3()).accesskey, "a-description");
    });

    it("write a target gets commands that do exactly what they say, whatever the name of the target", async () => {
      const { team } = await newRegistry({ rules: [rule("secrets", "get", "list", "watch")] });
      const name = "harbor'; touch mine; echo $(touch yours) `touch theirs`";
      await team.bind("harbor-s3", spec({}, { name }));
      const binding = await team.until("harbor-s3", "Forbidden");
      assert.deepEqual(await paste(commandsIn(messageOf(binding))), []);
      await team.until("harbor-s3", "TargetNotFound", SECONDS);
    });
  });

  it("is Forbidden when a permission is removed later, and no later rotation is written", async () => {
    // A value that the binding wrote is written without a read. After a refusal, it is read first.
    for (const [lost, kept, verb] of [
      ["secrets", rule("harborclusters", "get", "list", "watch", "patch"), "get"],
      ["harborclusters", rule("secrets", "get", "list", "watch"), "(get|patch)"],
    ] as const) {
      const { team, value } = await newRegistry();
      await team.bind("harbor-s3", spec());
      await team.until("harbor-s3", "Synced");
      await team.grant([kept], { role: "kept" });
      await team.revoke();
      // The API server allows requests of the account for a moment, until it has read the change itself.
      const account = `system:serviceaccount:${team.namespace}:inlay`;
      const [name, path] =
        lost === "secrets"
          ? ["secrets/bucket", `${team.path("v1", "secrets")}/bucket`]
          : ["harborclusters.goharbor.io/harbor", team.harborPath()];
      const isForbidden = ({ status }: RequestFailed) => status === 403;
      await eventually(() => assert.rejects(team.api.as(account).get(path), isForbidden));
      await team.secret("bucket", { accessKeyID: secretText("unseen") });
      const message = messageOf(await team.until("harbor-s3", "Forbidden"));
      assert.match(message, new RegExp(`may not ${verb} ${name} in namespace ${team.namespace}\\b`));
      assert.equal((await team.s3()).accesskey, value);
      await team.grant(usualRules, { role: "again" });
      await team.until("harbor-s3", "Synced", SECONDS);
      assert.notEqual((await team.s3()).accesskey, value);
    }
  });

  it("that has lost its Role is advised everywhere what inlay rbac prints, and works with it after a restart of Inlay", async () => {
    const { team } = await newRegistry({ rules: rolloutRules });
    const shop = new Workloads(team);
    await shop.deploy({ core: { env: { bucket: ["accessKeyID"] } } });
    await team.bind("harbor-s3", spec({ rollout: { consumersOf: ["bucket"] } }));
    await shop.rolledOut("harbor-s3", 0);
    await team.revoke();
    await team.secret("bucket", { accessKeyID: secretText("unseen") });
    await team.until("harbor-s3", "Forbidden");
    const binding = await shop.until("harbor-s3", "Forbidden", SECONDS);

    const command = binding["status"].missingPermissions.replaceAll("\n", "; ");
    const [ready, rolledOut] = binding["status"].conditions;
    assert.deepEqual(
      [ready, rolledOut].map(({ message }) => commandsIn(message)),
      [command, command],
    );
    await eventually(async () => {
      const events = await team.events("harbor-s3");
      assert.ok(events.some(({ reason, note }) => reason === "Forbidden" && note.endsWith(command)));
    });
    const { json } = await inlayJson(admin(), "explain", "harbor-s3", "-n", team.namespace);
    assert.equal(json.advice.command, command);

    await paste(command);
    await shop.rolledOut("harbor-s3", 1);
    await stopSharedController();
    await team.controller.start();
    // It reads the Secret and the target, and restarts the workload, by new watches.
    await team.secret("bucket", { accessKeyID: secretText("rotated") });
    await shop.rolledOut("harbor-s3", 2, RESTARTED_WITHIN_MS);
    await team.until("harbor-s3", "Synced");

    const folder = await mkdtemp(join(tmpdir(), "inlay-rights-"));
    try {
      const file = join(folder, "binding.json");
      await writeFile(file, JSON.stringify(await team.binding("harbor-s3")));
      const { stdout, stderr } = await inlay(admin(), "rbac", "-f", file, "--cluster");
      assert.equal(stderr, "");
      const { items } = await team.api.get(team.path("rbac.authorization.k8s.io/v1", "roles"));
      const granted = items.filter(({ metadata }: AnyObject) => metadata.name.startsWith("inlay-"));
      const printed = objectsOf(stdout).filter(({ kind }) => kind === "Role");
      assert.deepEqual(permissionsOf(granted), permissionsOf(printed));
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("that selects objects and has lost all permissions works with the command of explain after a restart of Inlay", async () => {
    const { team } = await newRegistry();
    const [used = "", empty = ""] = await Promise.all(
      [1, 2].map(async () => {
        const { namespace } = await createNamespace({ account: false, rules: [], controller: false });
        await team.api.merge(`/api/v1/namespaces/${namespace}`, { metadata: { labels: { of: team.namespace } } });
        return namespace;
      }),
    );
    const app = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`;
    const create = (namespace: string) =>
      team.api.create(app(namespace), { metadata: { name: "app", labels: { app: "app" } } });
    await create(used);
    const watch = ["get", "list", "watch"];
    await team.grantInCluster([
      { apiGroups: [""], resources: ["namespaces"], verbs: watch },
      { apiGroups: [""], resources: ["configmaps"], verbs: [...watch, "patch"] },
    ]);
    const apps = {
      apiVersion: "v1",
      kind: "ConfigMap",
      selector: { matchLabels: { app: "app" } },
      namespaceSelector: { matchLabels: { of: team.namespace } },
      fields: [{ path: "data.key", from: { source: "bucket", key: "accessKeyID" } }],
    };
    await team.bind("harbor-s3", spec({ acknowledge: ["ReadableCopies"], targets: [...spec().targets, apps] }));
    await team.until("harbor-s3", "Synced");

    await team.revokeInCluster();
    await team.revoke();
    await team.secret("bucket", { accessKeyID: secretText("unseen") });
    await team.until("harbor-s3", "Forbidden", SECONDS);
    const { json } = await inlayJson(admin(), "explain", "harbor-s3", "-n", team.namespace);
    await paste(json.advice.command);
    await team.until("harbor-s3", "Synced", SECONDS);

    await stopSharedController();
    await create(empty);
    const rotated = secretText("rotated");
    await team.secret("bucket", { accessKeyID: rotated });
    await team.controller.start();
    await eventually(async () => {
      for (const namespace of [used, empty])
        assert.equal((await team.api.get(`${app(namespace)}/app`)).data?.key, rotated, namespace);
    }, RESTARTED_WITHIN_MS);
    const { status } = await team.until("harbor-s3", "Synced");
    assert.equal(status.missingPermissions, undefined);
    assert.equal((await team.s3()).accesskey, rotated);
  });

  it("that loses one Role after the other is advised both, although the answer to the first question is new", async () => {
    const [reads, writes] = usualRules as [Rule, Rule];
    const { team } = await newRegistry({ rules: [reads] });
    await team.grant([writes], { role: "writes" });
    await team.bind("harbor-s3", spec());
    await team.until("harbor-s3", "Synced");
    await team.revoke("writes");
    await team.secret("bucket", { accessKeyID: secretText("unseen") });
    await team.until("harbor-s3", "Forbidden", SECONDS);
    await team.revoke();
    const last = secretText("unseen too");
    await team.secret("bucket", { accessKeyID: last });
    const json = await eventually(async () => {
      const { json } = await inlayJson(admin(), "explain", "harbor-s3", "-n", team.namespace);
      assert.match(json.advice.message, /may not get secrets\/bucket /);
      return json;
    }, SECONDS);
    await paste(json.advice.command);
    await team.until("harbor-s3", "Synced", SECONDS);
    assert.equal((await team.s3()).accesskey, last);
  });

  it("writes into another namespace only if its account has permission there", async () => {
    const { team, value } = await newRegistry();
    const { team: other } = await newRegistry();
    await team.bind("harbor-s3", spec({}, { namespace: other.namespace }));
    const message = messageOf(await team.until("harbor-s3", "Forbidden"));
    assert.ok(message.includes(`namespace ${other.namespace} does not exist, or ServiceAccount `), message);
    assert.equal((await other.s3()).accesskey, undefined);
    await paste(commandsIn(message));
    await team.until("harbor-s3", "Synced", SECONDS);
    assert.equal((await other.s3()).accesskey, value);
  });

  it("works after its commands although another binding's commands were run for the same object", async () => {
    const [{ team: one }, { team: two }, { team: other }] = [
      await newRegistry(),
      await newRegistry(),
      await newRegistry(),
    ];
    for (const [team, field] of [
      [one, "accesskey"],
      [two, "regionendpoint"],
    ] as const) {
      const target = harborTarget({ [field]: accessKey.accesskey }, { namespace: other.namespace });
      await team.bind("harbor-s3", spec({ targets: [target] }));
      await paste(commandsIn(messageOf(await team.until("harbor-s3", "Forbidden"))));
      await team.until("harbor-s3", "Synced", SECONDS);
    }
  });
});

describe("permissions: an account without permissions in another namespace", () => {
  const made = { create: { manifest: {} }, fields: [{ path: "spec.version", template: "1.2.3" }] };
  /** The messages of two bindings, each without the name of its namespace. */
  const answers = (bindings: AnyObject[], namespaces: string[]) =>
    bindings.map(({ status }, n) => {
      const conditions = status.conditions.map(({ type, reason, message }: AnyObject) => ({ type, reason, message }));
      return JSON.parse(
        JSON.stringify([conditions, status.targets, status.missingPermissions])
          .replaceAll(namespaces[n] as string, "other")
          .replaceAll(`to-${n}`, "to"),
      );
    });

  /** A team, and the names of a namespace that exists and of one that does not. */
  async function beside(rules: Rule[]): Promise<{ team: TestNamespace; namespaces: string[] }> {
    const { team } = await newRegistry({ rules });
    const { namespace } = await createNamespace({ account: false, rules: [] });
    return { team, namespaces: [namespace, `${namespace}-missing`] };
  }

  for (const [what, target] of Object.entries({ "creates its target": made, "writes into its target": {} })) {
    it(`does not learn whether it exists, by a binding that ${what} there`, async () => {
      const { team, namespaces } = await beside(usualRules);
      const bindings = await Promise.all(
        namespaces.map(async (namespace, n) => {
          await team.bind(`to-${n}`, spec({}, { ...target, namespace }));
          return team.until(`to-${n}`, "Forbidden");
        }),
      );
      const [there, missing] = answers(bindings, namespaces);
      assert.deepEqual(missing, there);
      assert.match(messageOf(bindings[1] as AnyObject), /namespace \S+ does not exist, or .*: kubectl create /);
    });
  }

  it("learns that a namespace is missing if it may read namespaces, with the command that creates it", async () => {
    const { team, namespaces } = await beside(usualRules);
    await team.grantInCluster([{ apiGroups: [""], resources: ["namespaces"], verbs: ["get"] }]);
    const [there = "", missing = ""] = namespaces;
    for (const [n, namespace] of namespaces.entries()) await team.bind(`to-${n}`, spec({}, { ...made, namespace }));
    const command = `kubectl create namespace ${missing}`;
    const says = messageOf(await team.until("to-1", "Forbidden"));
    assert.ok(says.endsWith(`: there is no namespace ${missing}; create it with: ${command}`), says);
    assert.match(messageOf(await team.until("to-0", "Forbidden")), new RegExp(` -n ${there}\\b`));
    assert.doesNotMatch(JSON.stringify(await team.binding("to-0")), /there is no namespace/);
  });

  it("does not learn it by a release either, of an object that it could not create", async () => {
    const { team, namespaces } = await beside(usualRules);
    // The account would see that there is no such object, and may not create one.
    await team.grantInCluster([rule("harborclusters", "get", "list", "watch")]);
    for (const [n, namespace] of namespaces.entries()) {
      await team.bind(`to-${n}`, spec({}, { ...made, namespace }));
      const { status } = await team.until(`to-${n}`, "Forbidden");
      assert.equal(status.targets[0].created, undefined);
    }
    await team.api.delete(`${team.path("v1", "serviceaccounts")}/inlay`);
    const bindings = await Promise.all(
      namespaces.map(async (_, n) => {
        await team.rebind(`to-${n}`, spec());
        return team.until(`to-${n}`, "ServiceAccountNotFound", SECONDS);
      }),
    );
    const [there, missing] = answers(bindings, namespaces);
    assert.deepEqual(missing, there);
    assert.equal(bindings[1]?.["status"].targets.length, bindings[0]?.["status"].targets.length);
  });
});
