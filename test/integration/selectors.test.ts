/** Shows that a target by selector covers all matching objects, in one namespace or in many, and up to a thousand of them. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { isOfBarrier, through } from "../controller/barrier.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { requestsFor, watchesFor } from "../controller/requests.ts";
import { scaled } from "../controller/scale.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, fieldsOf, type Rule, type TestNamespace } from "../controller/test-namespace.ts";

const widget: Kind = {
  group: "selectors.example.com",
  kind: "Widget",
  plural: "widgets",
  spec: { type: "object", properties: { token: { type: "string" }, other: { type: "string" } } },
};
const gadget: Kind = { ...widget, kind: "Gadget", plural: "gadgets", scope: "Cluster" };
const WIDGETS = through(widget, "spec.token");
const RESOURCE = `${widget.group}/${widget.plural}`;
const LIMIT_MS = 60_000;

const secrets: Rule = { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"] };
const namespaces: Rule = { apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"] };

/** Creates a team that may write all widgets of its namespace. */
async function widgetTeam(rules: Rule[] = [secrets, mayWrite(widget)]): Promise<TestNamespace> {
  const team = await createNamespace({ rules });
  await installKind(team.api, widget);
  return team;
}

/** Creates a namespace with labels and without an account. */
async function newNamespace(team: TestNamespace, name: string, labels: object = {}): Promise<string> {
  const whole = `${team.namespace}-${name}`;
  await team.api.create("/api/v1/namespaces", {
    metadata: { name: whole, labels: { team: team.namespace, ...labels } },
  });
  return whole;
}

/** Creates widgets, and returns once all exist. */
async function widgets(team: TestNamespace, names: readonly string[], labels: object = {}, namespace = team.namespace) {
  await installKind(team.api, widget);
  const object = (name: string) => ({
    apiVersion: apiVersionOf(widget),
    kind: widget.kind,
    metadata: { name, labels },
  });
  const [first, ...others] = names;
  if (first === undefined) return;
  // The API server lists a kind a moment before it accepts objects of it.
  await eventually(() => team.api.create(objectPath(widget, namespace), object(first)));
  for (let from = 0; from < others.length; from += 50) {
    const some = others.slice(from, from + 50);
    await Promise.all(some.map((name) => team.api.create(objectPath(widget, namespace), object(name))));
  }
}

const relabel = (team: TestNamespace, name: string, labels: object, namespace = team.namespace) =>
  team.api.merge(objectPath(widget, namespace, name), { metadata: { labels } });

function entry(chosen: object, more: object = {}): object {
  const fields = [{ path: "spec.token", from: { source: "bucket", key: "token" } }];
  return { apiVersion: apiVersionOf(widget), kind: widget.kind, fields, ...chosen, ...more };
}

const specOf = (...targets: object[]) => ({ sources: [{ secret: { name: "bucket" } }], targets });

async function rotate(team: TestNamespace): Promise<string> {
  const token = secretText("token");
  await team.secret("bucket", { token });
  return token;
}

/** The values of spec.token of all widgets of a namespace by name, without those of a barrier. */
async function tokens(team: TestNamespace, namespace = team.namespace): Promise<Record<string, string | undefined>> {
  const { items } = await team.api.get(objectPath(widget, namespace));
  const tested = items.filter(({ metadata }: AnyObject) => !isOfBarrier(metadata));
  return Object.fromEntries(tested.map(({ metadata, spec }: AnyObject) => [metadata.name, spec?.token]));
}

/** Waits until these widgets have the token, and the others of the namespace have none. */
function untilHeld(
  team: TestNamespace,
  token: string,
  names: readonly string[],
  namespace = team.namespace,
): Promise<void> {
  return eventually(async () => {
    const held = Object.entries(await tokens(team, namespace)).filter(([, value]) => value !== undefined);
    assert.deepEqual(Object.fromEntries(held), Object.fromEntries(names.map((name) => [name, token])));
  }, LIMIT_MS);
}

/** How often the account did that to each widget since a mark. */
async function counts(team: TestNamespace, mark: number, verb: string): Promise<Map<string, number>> {
  const byName = new Map<string, number>();
  for (const each of await requestsFor(team, mark)) {
    if (each.verb === verb && each.resource === RESOURCE && !isOfBarrier(each))
      byName.set(each.name, (byName.get(each.name) ?? 0) + 1);
  }
  return byName;
}

const messageOf = (binding: AnyObject): string => binding.status.conditions[0].message;
const remove = { onRelease: "Remove" };

describe("a target by selector", () => {
  it("covers every object with the labels, while objects are created, changed and deleted", async () => {
    const team = await widgetTeam();
    await widgets(team, ["a", "b"], { tier: "prod" });
    await widgets(team, ["c"], { tier: "test" });
    const token = await rotate(team);
    await team.bind("all", specOf(entry({ selector: { matchLabels: { tier: "prod" } } }, remove)));
    await team.until("all", "Synced");
    await untilHeld(team, token, ["a", "b"]);
    await widgets(team, ["d"], { tier: "prod" });
    await untilHeld(team, token, ["a", "b", "d"]);
    await relabel(team, "c", { tier: "prod" });
    await untilHeld(team, token, ["a", "b", "c", "d"]);
    await relabel(team, "a", { tier: null });
    await untilHeld(team, token, ["b", "c", "d"]);
    await team.api.delete(objectPath(widget, team.namespace, "d"));
    await eventually(async () => {
      const { status } = await team.until("all", "Synced");
      assert.equal(status.synced, "2/2");
      assert.deepEqual(
        status.targets.map(({ objects }: AnyObject) => objects.map((each: string) => each.split(" ")[0])),
        [[`${team.namespace}/b`, `${team.namespace}/c`]],
      );
    });
    await team.unbind("all");
    await untilHeld(team, token, []);
  });

  it("keeps its value, without ownership, when it no longer matches and onRelease is Retain", async () => {
    const team = await widgetTeam();
    await widgets(team, ["a"], { tier: "prod" });
    const token = await rotate(team);
    await team.bind("all", specOf(entry({ selector: { matchLabels: { tier: "prod" } } })));
    await team.until("all", "Synced");
    await relabel(team, "a", { tier: "test" });
    await eventually(async () => assert.equal((await team.binding("all")).status.targets.length, 0));
    const object = await team.api.get(objectPath(widget, team.namespace, "a"));
    assert.deepEqual([object.spec.token, fieldsOf(object, team.manager("all"))], [token, undefined]);
    assert.match(messageOf(await team.until("all", "Synced")), /matches spec\.targets\[0\]/);
  });

  it("is selected by names with wildcards and by expressions, only where all of them match", async () => {
    const team = await widgetTeam();
    await widgets(team, ["web-1", "web-22", "db-1"], { tier: "prod" });
    await widgets(team, ["web-3"], { tier: "test", old: "yes" });
    const token = await rotate(team);
    await team.bind("some", specOf(entry({ selector: { names: ["web-?", "db*"] } }, remove)));
    await untilHeld(team, token, ["db-1", "web-1", "web-3"]);
    const matchExpressions = [
      { key: "tier", operator: "In", values: ["prod", "test"] },
      { key: "old", operator: "DoesNotExist" },
      { key: "tier", operator: "Exists" },
      { key: "tier", operator: "NotIn", values: ["dev"] },
    ];
    await team.rebind("some", { targets: [entry({ selector: { names: ["web-*"], matchExpressions } }, remove)] });
    await untilHeld(team, token, ["web-1", "web-22"]);
  });

  it("of a cluster-scoped kind is found in the cluster", async () => {
    const team = await widgetTeam();
    await installKind(team.api, gadget);
    await team.grantInCluster([mayWrite(gadget)]);
    const name = `${team.namespace}-g`;
    await createObject(team.api, gadget, name, {});
    const token = await rotate(team);
    await team.bind("all", specOf(entry({ kind: gadget.kind, selector: { names: [`${team.namespace}-*`] } })));
    const { status } = await team.until("all", "Synced");
    assert.equal((await team.api.get(objectPath(gadget, undefined, name))).spec.token, token);
    assert.match(status.targets[0].objects[0], new RegExp(`^${name} `));
    await team.rebind("all", { targets: [entry({ kind: gadget.kind, name, namespaceSelector: { names: ["x"] } })] });
    assert.match(messageOf(await team.until("all", "InvalidBinding")), /remove namespaceSelector/);
    assert.equal((await team.api.get(objectPath(gadget, undefined, name))).spec.token, token);
  });

  it("belongs to the entry that names it, otherwise to the first, and the condition reports that", async () => {
    const team = await widgetTeam();
    await widgets(team, ["a", "b", "c"], { tier: "prod" });
    const token = await rotate(team);
    const fields = [{ path: "spec.token", template: "special" }];
    await team.bind(
      "all",
      specOf(
        entry({ selector: { names: ["b", "c"] } }),
        entry({ selector: { matchLabels: { tier: "prod" } } }, { fields }),
        entry({ name: "c" }, { fields: [{ path: "spec.other", template: "named" }] }),
      ),
    );
    const binding = await team.until("all", "Synced");
    assert.equal(binding.status.synced, "3/3");
    assert.deepEqual(await tokens(team), { a: "special", b: token, c: undefined });
    assert.match(binding.status.notes[0], /1 objects that spec\.targets\[0\] matches belong to other/);
    assert.match(binding.status.notes[1], /2 objects that spec\.targets\[1\] matches belong to other/);
  });

  it("belongs to the binding that already owns the field, otherwise to the older binding", async () => {
    const team = await widgetTeam();
    await widgets(team, ["a", "b"], { tier: "prod" });
    const token = await rotate(team);
    await team.bind("first", specOf(entry({ selector: { matchLabels: { tier: "prod" } } })));
    await team.until("first", "Synced");
    // Of two bindings that are created in the same second, the first by name has precedence.
    const fields = [{ path: "spec.token", template: "second" }];
    await team.bind("second", specOf(entry({ selector: { names: ["*"] } }, { fields })));
    assert.match(
      messageOf(await team.until("second", "Conflict")),
      /SecretBinding \S+\/first has precedence on \S+token/,
    );
    await widgets(team, ["c"]);
    await eventually(async () => assert.deepEqual(await tokens(team), { a: token, b: token, c: "second" }));
    await relabel(team, "c", { tier: "prod" });
    assert.match(
      messageOf(await team.until("first", "Conflict")),
      /SecretBinding \S+\/second has precedence on \S+token/,
    );
    assert.deepEqual(await tokens(team), { a: token, b: token, c: "second" });
    await relabel(team, "b", { tier: "test" });
    await eventually(async () => assert.equal((await tokens(team))["b"], "second"));
    await team.unbind("first");
    await team.until("second", "Synced");
    assert.deepEqual(await tokens(team), { a: "second", b: "second", c: "second" });
  });
});

describe("namespaces by selector", () => {
  it("are followed while they are created, changed and deleted", async () => {
    const team = await widgetTeam();
    await team.grantInCluster([namespaces, mayWrite(widget)]);
    const [one, two] = [await newNamespace(team, "one", { env: "prod" }), await newNamespace(team, "two")];
    for (const namespace of [one, two]) await widgets(team, ["w", "v"], {}, namespace);
    const token = await rotate(team);
    const selected = { team: team.namespace, env: "prod" };
    const target = entry({ selector: { names: ["w"] }, namespaceSelector: { matchLabels: selected } }, remove);
    await team.bind("all", specOf(target));
    await untilHeld(team, token, ["w"], one);
    await untilHeld(team, token, [], two);
    const label = (namespace: string, env: string | null) =>
      team.api.merge(`/api/v1/namespaces/${namespace}`, { metadata: { labels: { env } } });
    await label(two, "prod");
    await untilHeld(team, token, ["w"], two);
    await label(one, null);
    await untilHeld(team, token, [], one);
    const three = await newNamespace(team, "three", { env: "prod" });
    await widgets(team, ["w"], {}, three);
    await untilHeld(team, token, ["w"], three);
    const open = (await watchesFor(team, 0)).filter(({ open, resource }) => open && resource === RESOURCE);
    assert.deepEqual(
      open.map(({ namespace }) => namespace),
      [""],
    );
  });

  it("that are listed by name require no permission on namespaces, and none outside of them", async () => {
    const team = await widgetTeam([secrets]);
    const [one, two] = [await newNamespace(team, "one"), await newNamespace(team, "two")];
    for (const namespace of [one, two]) {
      await widgets(team, ["w"], {}, namespace);
      await team.grant([mayWrite(widget)], { namespace, role: "widgets" });
    }
    const token = await rotate(team);
    const target = entry({ name: "w", namespaceSelector: { names: [one, two] } }, remove);
    await team.bind("all", specOf(target));
    const { status } = await team.until("all", "Synced");
    assert.equal(status.synced, "2/2");
    assert.equal(status.targets.length, 1);
    for (const namespace of [one, two]) await untilHeld(team, token, ["w"], namespace);
    await team.rebind("all", { targets: [entry({ name: "w", namespaceSelector: { names: [one] } }, remove)] });
    await untilHeld(team, token, [], two);
    await untilHeld(team, token, ["w"], one);
    await team.api.delete(objectPath(widget, one, "w"));
    await team.until("all", "TargetNotFound");
  });

  it("that are deleted with their permissions do not affect the other namespaces", async () => {
    const team = await widgetTeam([secrets]);
    await team.grantInCluster([namespaces]);
    const names = [`${team.namespace}-*`];
    const [one, two] = [await newNamespace(team, "one"), await newNamespace(team, "two")];
    for (const namespace of [one, two]) {
      await widgets(team, ["w"], {}, namespace);
      await team.grant([mayWrite(widget)], { namespace, role: "widgets" });
    }
    const token = await rotate(team);
    await team.bind("all", specOf(entry({ selector: { names: ["w"] }, namespaceSelector: { names } }, remove)));
    await team.until("all", "Synced");
    await untilHeld(team, token, ["w"], two);
    // No controller of this control plane empties a namespace, so the test deletes what matters here.
    await team.api.delete(`/apis/rbac.authorization.k8s.io/v1/namespaces/${two}/rolebindings/widgets`);
    await team.api.delete(`/api/v1/namespaces/${two}`);
    await eventually(async () => {
      const { status } = await team.binding("all");
      assert.ok(["Synced", "Forbidden"].includes(status.conditions[0].reason), JSON.stringify(status));
    });
    await untilHeld(team, token, ["w"], one);
  });
});

describe("an account that may not list what its binding selects", () => {
  it("gets the commands that allow it in the condition, first for namespaces, then for the kind", async () => {
    const team = await widgetTeam([secrets]);
    const one = await newNamespace(team, "one");
    await widgets(team, ["w"], {}, one);
    const token = await rotate(team);
    await team.bind("all", specOf(entry({ selector: { names: ["*"] }, namespaceSelector: { names: [`${one}*`] } })));
    const first = messageOf(await team.until("all", "Forbidden"));
    assert.match(first, /list namespaces;/);
    await paste(commandsIn(first));
    const second = await eventually(async () => {
      const message = messageOf(await team.until("all", "Forbidden"));
      assert.match(message, new RegExp(`namespace ${one} .* list widgets.${widget.group} in it`));
      return message;
    });
    await paste(commandsIn(second));
    await team.until("all", "Synced", LIMIT_MS);
    await untilHeld(team, token, ["w"], one);
  });

  it("keeps what was written while it has lost the permission, and continues once it has it again", async () => {
    const team = await widgetTeam();
    await widgets(team, ["a", "b"]);
    const token = await rotate(team);
    await team.bind("all", specOf(entry({ selector: { names: ["*"] } }, remove)));
    await team.until("all", "Synced");
    await team.controller.stop();
    await team.revoke();
    await team.controller.start();
    const { status } = await team.until("all", "Forbidden", LIMIT_MS);
    assert.equal(status.targets[0].objects.length, 2);
    assert.equal(status.targets[0].reason, "Forbidden");
    await untilHeld(team, token, ["a", "b"]);
    await team.grant([secrets, mayWrite(widget)], { role: "again" });
    await team.until("all", "Synced", LIMIT_MS);
    assert.equal((await team.binding("all")).status.synced, "2/2");
  });
});

const MANY = scaled(1_000, 80);

describe(`${MANY} selected targets`, () => {
  const names = Array.from({ length: MANY }, (_, index) => `w-${index}`);

  it("are each written once when their value changes, and not when the controller restarts; a changed one is read alone", async () => {
    const team = await widgetTeam();
    await widgets(team, names);
    const mark = await auditLog().mark();
    const first = await rotate(team);
    await team.bind("all", specOf(entry({ selector: { names: ["w-*"] } }, remove)));
    await team.until("all", "Synced", LIMIT_MS);
    await untilHeld(team, first, names);
    const exactlyOnce = new Map(names.map((name) => [name, 1]));
    assert.deepEqual(sorted(await counts(team, mark, "patch")), sorted(exactlyOnce));
    const { status } = await team.binding("all");
    assert.deepEqual([status.synced, status.targets.length], [`${MANY}/${MANY}`, 1]);
    assert.ok(JSON.stringify(status).length < 100_000);

    const rotated = await auditLog().mark();
    const second = await rotate(team);
    await untilHeld(team, second, names);
    await team.barrier({ through: WIDGETS });
    assert.deepEqual(sorted(await counts(team, rotated, "patch")), sorted(exactlyOnce));

    await team.until("all", "Synced", LIMIT_MS);
    const changed = await auditLog().mark();
    await team.api.merge(objectPath(widget, team.namespace, "w-7"), { spec: { token: "drift" } });
    await untilHeld(team, second, names);
    await team.barrier({ through: WIDGETS });
    assert.deepEqual([...(await counts(team, changed, "patch")).keys()], ["w-7"]);
    const read = await counts(team, changed, "get");
    assert.deepEqual([...read.keys()], ["w-7"]);
    assert.ok((read.get("w-7") ?? 0) <= 2);

    await team.controller.stop();
    const restarted = await auditLog().mark();
    await team.controller.start();
    await eventually(async () => assert.equal((await counts(team, restarted, "get")).size, names.length), LIMIT_MS);
    await team.barrier({ through: WIDGETS });
    assert.equal((await counts(team, restarted, "patch")).size, 0);
    const writes = await auditLog().controllerWritesSince(restarted);
    assert.deepEqual(
      writes.filter((write) => write.namespace === team.namespace && !isOfBarrier(write)),
      [],
    );
    await team.unbind("all", LIMIT_MS);
    await untilHeld(team, second, []);
  }).timeout(180_000);
});

const sorted = (counts: Map<string, number>) => [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
