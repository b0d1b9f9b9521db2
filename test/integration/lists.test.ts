/** Fields of elements in lists, for every kind of list of the API server, and fields of objects that are one value. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { through } from "../controller/barrier.ts";
import { whileBusy } from "../controller/busy.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, RESTARTED_WITHIN_MS, type TestNamespace, usualRules } from "../controller/test-namespace.ts";

/** As LabelSelector in the CRDs of Prometheus. */
const selector = {
  type: "object",
  "x-kubernetes-map-type": "atomic",
  properties: {
    matchLabels: { type: "object", additionalProperties: { type: "string" } },
    matchExpressions: {
      type: "array",
      "x-kubernetes-list-type": "atomic",
      items: { type: "object", properties: { key: { type: "string" }, operator: { type: "string" } } },
    },
  },
};
const entry = {
  type: "object",
  required: ["name"],
  properties: {
    name: { type: "string" },
    port: { type: "integer" },
    token: { type: "string" },
    kind: { type: "string" },
    selector,
    parts: {
      type: "array",
      items: { type: "object", properties: { id: { type: "string" }, token: { type: "string" } } },
    },
  },
};
const inner = {
  type: "array",
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": ["name"],
  items: { type: "object", required: ["name"], properties: { name: { type: "string" }, token: { type: "string" } } },
};
const keyed = { ...entry, required: ["name", "port"], properties: { ...entry.properties, inner } };

const shelf: Kind = {
  group: "lists.example.com",
  kind: "Shelf",
  plural: "shelves",
  spec: {
    type: "object",
    properties: {
      size: { type: "string" },
      selector,
      atomic: { type: "array", items: entry },
      strict: { type: "array", items: { ...entry, required: ["name", "token"] } },
      texts: { type: "array", items: { type: "string" } },
      names: { type: "array", items: { type: "object", properties: { name: { type: "string" } } } },
      set: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } },
      map: {
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name", "port"],
        items: keyed,
      },
      free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    },
  },
};

const rules = [
  ...usualRules,
  mayWrite(shelf),
  { apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list", "watch", "patch"] },
];

/** A team with the Secret `bucket`, whose keys a and b have values, and a Shelf that the manager `git` created. */
async function createNamespaceWith(spec: object): Promise<{ team: TestNamespace; a: string; b: string }> {
  const team = await createNamespace({ rules });
  await installKind(team.api, shelf);
  const [a, b] = [secretText("a"), secretText("b")];
  await team.secret("bucket", { a, b });
  await createObject(team.api, shelf, "shelf", spec, team.namespace);
  return { team, a, b };
}

const shelfPath = (team: TestNamespace) => objectPath(shelf, team.namespace, "shelf");
const specOf = async (team: TestNamespace) => (await team.api.get(shelfPath(team))).spec;

/** Each path with the key of the Secret `bucket` that belongs there. */
const fieldsFrom = (paths: Record<string, string>, more: object = {}) =>
  Object.entries(paths).map(([path, key]) => ({ path, from: { source: "bucket", key }, ...more }));

const bindingOf = (fields: object[], target: object = {}) => ({
  sources: [{ secret: { name: "bucket" } }],
  targets: [{ apiVersion: apiVersionOf(shelf), kind: shelf.kind, name: "shelf", fields, ...target }],
});

async function bind(
  team: TestNamespace,
  paths: Record<string, string>,
  more: { field?: object; target?: object } = {},
) {
  await team.bind("lists", bindingOf(fieldsFrom(paths, more.field), more.target));
  return team.until("lists", "Synced");
}

/** The fields of each owner of the object, by manager and operation. */
async function heldBy(team: TestNamespace, manager: string): Promise<Record<string, object>> {
  const { metadata } = await team.api.get(shelfPath(team));
  const own = metadata.managedFields.filter((each: AnyObject) => each.manager === manager);
  return Object.fromEntries(own.map((each: AnyObject) => [each.operation, each.fieldsV1]));
}

describe("an element of a list that is one value", () => {
  const atomic = [{ name: "web", port: 80 }, { name: "db", token: "old" }, { name: "mq" }];

  it("is written at its name, and the other elements do not change", async () => {
    const { team, a, b } = await createNamespaceWith({ atomic });
    const { status } = await bind(team, { "spec.atomic[name=db].token": "a", "spec.atomic[name=mq].token": "b" });
    const [web] = atomic;
    assert.deepEqual((await specOf(team)).atomic, [web, { name: "db", token: a }, { name: "mq", token: b }]);
    assert.deepEqual(status.targets[0].paths, ["spec.atomic[name=db].token", "spec.atomic[name=mq].token"]);
    assert.deepEqual(await heldBy(team, team.manager("lists")), { Update: { "f:spec": { "f:atomic": {} } } });
    const rotated = secretText("rotated");
    await team.secret("bucket", { a: rotated });
    await eventually(async () => assert.equal((await specOf(team)).atomic[1].token, rotated));
  });

  it("is found again after the list was reordered", async () => {
    const { team, a } = await createNamespaceWith({ atomic });
    await bind(team, { "spec.atomic[name=db].token": "a" });
    await team.api.merge(shelfPath(team), { spec: { atomic: [{ name: "new" }, { name: "db", token: a }] } });
    const rotated = secretText("rotated");
    await team.secret("bucket", { a: rotated });
    await eventually(async () =>
      assert.deepEqual((await specOf(team)).atomic, [{ name: "new" }, { name: "db", token: rotated }]),
    );
  });

  it("is written by its index, and by several of its fields, with all characters", async () => {
    const { team, a, b } = await createNamespaceWith({
      atomic: [{ name: "web" }, { name: "a,b]&<c>", port: 80 }, { name: "a,b]&<c>", port: 443 }],
      texts: ["x", "y"],
    });
    await bind(team, {
      'spec.atomic[name="a,b]&<c>",port=443].token': "a",
      "spec.atomic[0].token": "b",
      "spec.texts[1]": "b",
    });
    const spec = await specOf(team);
    assert.deepEqual(
      spec.atomic.map(({ token }: AnyObject) => token),
      [b, undefined, a],
    );
    assert.deepEqual(spec.texts, ["x", b]);
  });

  it("is written in lists within lists, and in lists without a schema", async () => {
    const { team, a, b } = await createNamespaceWith({
      atomic: [{ name: "web", parts: [{ id: "1" }, { id: "2" }] }],
      map: [{ name: "web", port: 80, parts: [{ id: "1" }] }],
      free: { list: [{ name: "x", deep: [{ n: 1 }, { n: 2 }] }] },
    });
    await bind(team, {
      "spec.atomic[name=web].parts[id=2].token": "a",
      "spec.map[name=web].parts[id=1].token": "b",
      "spec.free.list[name=x].deep[n=2].token": "a",
    });
    const { atomic: plain, map, free } = await specOf(team);
    assert.deepEqual(plain[0].parts, [{ id: "1" }, { id: "2", token: a }]);
    assert.deepEqual(map[0].parts, [{ id: "1", token: b }]);
    assert.deepEqual(free.list[0].deep, [{ n: 1 }, { n: 2, token: a }]);
  });

  it("is written with the other fields of its target in one request, or not at all", async () => {
    const { team, a, b } = await createNamespaceWith({ atomic });
    const paths = { "spec.atomic[name=db].token": "a", "spec.size": "b", "spec.free.deep.er": "a" };
    const requests = await team.requestsDuring(() => bind(team, paths));
    assert.equal(requests.filter(({ verb, resource }) => verb === "patch" && /shelves/.test(resource)).length, 1);
    const spec = await specOf(team);
    assert.deepEqual([spec.atomic[1].token, spec.size, spec.free], [a, b, { deep: { er: a } }]);
    await team.api.merge(shelfPath(team), { spec: { size: "theirs" } }, "other");
    await eventually(async () => assert.equal((await specOf(team)).size, b));
    await team.rebind(
      "lists",
      bindingOf(fieldsFrom({ ...paths, "spec.atomic[name=gone].token": "a", "spec.size": "a" })),
    );
    await team.until("lists", "ElementNotFound");
    assert.equal((await specOf(team)).size, b);
  });

  it("is not written again when nothing changed, or when it had the value already", async () => {
    const { team, a } = await createNamespaceWith({ atomic });
    await team.api.merge(shelfPath(team), { spec: { atomic: [{ name: "db", token: a }] } });
    const writes = async (act: () => Promise<unknown>) =>
      (await team.requestsDuring(act, through(shelf, "spec.size"))).filter(
        ({ verb, resource }) => verb === "patch" && /shelves/.test(resource),
      ).length;
    assert.equal(await writes(() => bind(team, { "spec.atomic[name=db].token": "a" })), 0);
    assert.deepEqual((await team.binding("lists")).status.targets[0].paths, ["spec.atomic[name=db].token"]);
    assert.equal(await writes(() => team.api.merge(shelfPath(team), { spec: { size: "other" } })), 0);
    assert.equal(
      await writes(async () => {
        await team.controller.stop();
        await team.controller.start();
      }),
      0,
    );
  });

  it("is reverted when another user changes it, and that user's other changes stay", async () => {
    const { team, a } = await createNamespaceWith({ atomic });
    await bind(team, { "spec.atomic[name=db].token": "a" });
    await team.api.merge(shelfPath(team), { spec: { atomic: [{ name: "db", token: "theirs", port: 1 }] } });
    await eventually(async () => assert.deepEqual((await specOf(team)).atomic, [{ name: "db", token: a, port: 1 }]));
  });

  it("reports once which manager applies the list and will have conflicts", async () => {
    const { team } = await createNamespaceWith({ size: "small" });
    const object = { apiVersion: apiVersionOf(shelf), kind: shelf.kind, metadata: { name: "shelf" }, spec: { atomic } };
    await team.api.apply(shelfPath(team), object, "argocd");
    await bind(team, { "spec.atomic[name=db].token": "a" });
    await eventually(async () => {
      const notes = (await team.events("lists")).filter(({ reason }) => reason === "Written").map(({ note }) => note);
      assert.equal(notes.length, 1);
      assert.match(notes[0] ?? "", /spec\.atomic .*argocd/);
    });
    await assert.rejects(team.api.apply(shelfPath(team), object, "argocd"), /conflict with "inlay\//);
  });

  it("is written while another client edits the list fifty times a second, and no edit is lost", async () => {
    const { team } = await createNamespaceWith({ atomic: [{ name: "db", token: "old" }] });
    const added: string[] = [];
    const add = async () => {
      const name = `n${added.length}`;
      // At the front, so that the indexes shift.
      const operations = [{ op: "add", path: "/spec/atomic/0", value: { name } }];
      await team.api.jsonPatch(shelfPath(team), operations, "busy");
      added.unshift(name);
    };
    await whileBusy(add, 20, async () => {
      await bind(team, { "spec.atomic[name=db].token": "a" });
      for (let n = 0; n < 5 || added.length < 50; n++) {
        const rotated = secretText("rotated");
        await team.secret("bucket", { a: rotated });
        await eventually(async () => assert.equal((await specOf(team)).atomic.at(-1).token, rotated));
      }
    });
    const { atomic: now } = await specOf(team);
    assert.deepEqual(
      now.map(({ name }: AnyObject) => name),
      [...added, "db"],
    );
    await team.until("lists", "Synced");
  });
});

describe("an element of a map list", () => {
  const map = [
    { name: "web", port: 80, kind: "x" },
    { name: "web", port: 443 },
    { name: "db", port: 5432, kind: "y" },
  ];
  const ofWeb = (...fields: string[]) => ({
    "f:spec": {
      "f:map": {
        'k:{"name":"web","port":443}': Object.fromEntries(
          [".", "f:name", "f:port", ...fields].map((name) => [name, {}]),
        ),
      },
    },
  });

  it("is applied by its keys, so that others own the other elements", async () => {
    const { team, a } = await createNamespaceWith({ map });
    await bind(team, { "spec.map[name=web,port=443].token": "a" });
    assert.deepEqual((await specOf(team)).map, [map[0], { ...map[1], token: a }, map[2]]);
    assert.deepEqual(await heldBy(team, team.manager("lists")), { Apply: ofWeb("f:token") });
  });

  it("is found by any of its fields, or by its index, and applied by its keys", async () => {
    const { team, a, b } = await createNamespaceWith({ map });
    await bind(team, { "spec.map[kind=y].token": "a", "spec.map[1].token": "b" });
    assert.deepEqual((await specOf(team)).map, [map[0], { ...map[1], token: b }, { ...map[2], token: a }]);
    const { Apply } = await heldBy(team, team.manager("lists"));
    assert.equal(Object.keys((Apply as AnyObject)["f:spec"]["f:map"]).length, 2);
  });

  it("stays in its place, also if an element is appended to it", async () => {
    const { team, a, b } = await createNamespaceWith({ map });
    const paths = {
      "spec.map[name=new,port=1].token": "a",
      "spec.map[kind=y].token": "a",
      "spec.map[0].inner[name=x].token": "b",
      "spec.map[1].token": "b",
    };
    await bind(team, paths, { field: { onMissingElement: "Append" } });
    assert.deepEqual((await specOf(team)).map, [
      { ...map[0], inner: [{ name: "x", token: b }] },
      { ...map[1], token: b },
      { ...map[2], token: a },
      { name: "new", port: 1, token: a },
    ]);
    assert.deepEqual(Object.keys(await heldBy(team, team.manager("lists"))), ["Apply"]);
  });

  it("is not created by the apply", async () => {
    const { team } = await createNamespaceWith({ map });
    await team.bind("lists", bindingOf(fieldsFrom({ "spec.map[name=new,port=1].token": "a" })));
    await team.until("lists", "ElementNotFound");
    assert.deepEqual((await specOf(team)).map, map);
  });

  it("is in conflict with the manager that applies the field, and taken over by Force", async () => {
    const { team, a } = await createNamespaceWith({ map });
    const theirs = { spec: { map: [{ name: "db", port: 5432, token: "theirs" }] } };
    const object = { apiVersion: apiVersionOf(shelf), kind: shelf.kind, metadata: { name: "shelf" }, ...theirs };
    await team.api.apply(shelfPath(team), object, "argocd");
    await team.bind("lists", bindingOf(fieldsFrom({ "spec.map[name=db].token": "a" })));
    const { status } = await team.until("lists", "Conflict");
    assert.match(status.conditions[0].message, /spec\.map\[name=db\]\.token .*"argocd"/);
    await team.rebind("lists", bindingOf(fieldsFrom({ "spec.map[name=db].token": "a" }), { onConflict: "Force" }));
    await team.until("lists", "Synced");
    assert.equal((await specOf(team)).map[2].token, a);
  });

  it("of a built-in kind is written like any other", async () => {
    const { team, a } = await createNamespaceWith({});
    const labels = { app: "x" };
    const containers = [
      { name: "side", image: "side" },
      { name: "app", image: "app", env: [{ name: "TOKEN", value: "old" }] },
    ];
    const path = team.path("apps/v1", "deployments");
    const template = { metadata: { labels }, spec: { containers } };
    const spec = { replicas: 0, selector: { matchLabels: labels }, template };
    await team.api.create(path, { metadata: { name: "app" }, spec });
    const container = "spec.template.spec.containers[name=app]";
    const fields = fieldsFrom({ [`${container}.env[name=TOKEN].value`]: "a", [`${container}.args[0]`]: "a" });
    const target = { apiVersion: "apps/v1", kind: "Deployment", name: "app", onConflict: "Force" };
    await team.bind("lists", { ...bindingOf([]), targets: [{ ...target, fields: fields.slice(0, 1) }] });
    await team.until("lists", "Synced");
    const [, app] = (await team.api.get(`${path}/app`)).spec.template.spec.containers;
    assert.deepEqual([app.image, app.env], ["app", [{ name: "TOKEN", value: a }]]);
    await team.rebind("lists", { targets: [{ ...target, fields }] });
    await team.until("lists", "ElementNotFound");
  });
});

describe("an element that does not exist", () => {
  it("delays the field: written values stay, and the field is written when the element exists", async () => {
    const { team, a } = await createNamespaceWith({ atomic: [{ name: "web" }] });
    await bind(team, { "spec.atomic[name=web].token": "a" });
    const two = { "spec.atomic[name=web].token": "a", "spec.atomic[name=db].token": "a" };
    await team.rebind("lists", bindingOf(fieldsFrom(two)));
    const { status } = await team.until("lists", "ElementNotFound");
    assert.match(status.conditions[0].message, /element spec\.atomic\[name=db\]/);
    await team.api.merge(shelfPath(team), { spec: { atomic: [{ name: "db" }, { name: "web", token: a }] } });
    await team.until("lists", "Synced");
    assert.equal((await specOf(team)).atomic[0].token, a);
    await team.api.merge(shelfPath(team), { spec: { atomic: [{ name: "web", token: "theirs" }] } });
    await team.until("lists", "ElementNotFound");
  });

  it("is appended if the binding says so, once for all its fields, with the list if there is none", async () => {
    const { team, a, b } = await createNamespaceWith({ atomic: [{ name: "web" }], map: [{ name: "x", port: 1 }] });
    const field = { onMissingElement: "Append" };
    const paths = {
      "spec.atomic[name=db,port=5432].token": "a",
      "spec.atomic[name=db,port=5432].kind": "b",
      "spec.map[name=db,port=2].token": "a",
      "spec.strict[name=new].token": "b",
      "spec.free.list[name=x].deep[id=y].token": "a",
    };
    const { status } = await bind(team, paths, { field, target: { onRelease: "Remove" } });
    const spec = await specOf(team);
    assert.deepEqual(spec, {
      atomic: [{ name: "web" }, { name: "db", port: 5432, token: a, kind: b }],
      map: [
        { name: "x", port: 1 },
        { name: "db", port: 2, token: a },
      ],
      strict: [{ name: "new", token: b }],
      free: { list: [{ name: "x", deep: [{ id: "y", token: a }] }] },
    });
    assert.ok(status.targets[0].parents.includes("spec.atomic[name=db,port=5432]"));
    await team.unbind("lists");
    // Required fields of the element are removed with it.
    assert.deepEqual(await specOf(team), { atomic: [{ name: "web" }], map: [{ name: "x", port: 1 }] });
    assert.deepEqual(await heldBy(team, team.manager("lists")), {});
    assert.deepEqual(await heldBy(team, "inlay-controller"), {});
  });

  it("that lacks a required field is refused with that field, and appended once the path or a field has it", async () => {
    const { team, a } = await createNamespaceWith({ strict: [{ name: "web", token: "x" }] });
    const field = { onMissingElement: "Append" };
    await team.bind("lists", bindingOf(fieldsFrom({ "spec.strict[name=db].kind": "a" }, field)));
    const { status } = await team.until("lists", "Rejected");
    assert.match(
      status.conditions[0].message,
      /: spec\.strict\[name=db\]\.token is required, and the binding does not write it: /,
    );
    await team.rebind("lists", bindingOf(fieldsFrom({ "spec.strict[name=db,token=t].kind": "a" }, field)));
    await team.until("lists", "Synced");
    assert.deepEqual((await specOf(team)).strict[1], { name: "db", token: "t", kind: a });
  });

  it("is named by its index if only the field is left that would find it, as the message says", async () => {
    const { team, a } = await createNamespaceWith({ names: [{ name: "old" }] });
    for (const [path, reason] of [
      ["spec.names.name", "TypeMismatch"],
      ["spec.names[name=old]", "TypeMismatch"],
      ["spec.names[name=old].name", "InvalidPath"],
    ] as const) {
      await team.bind("lists", bindingOf(fieldsFrom({ [path]: "a" })));
      const { status } = await team.until("lists", reason);
      const says = /\bas (?:in )?spec\.names\[INDEX\]\.name, where INDEX is its position in the list, from 0$/;
      assert.match(status.conditions[0].message, says);
      await team.unbind("lists");
    }
    await bind(team, { "spec.names[0].name": "a" }, { target: { onConflict: "Force" } });
    assert.deepEqual((await specOf(team)).names, [{ name: a }]);
  });

  it("is appended to a map list by an apply if no other list is written", async () => {
    const { team, a } = await createNamespaceWith({});
    const field = { onMissingElement: "Append" };
    await bind(team, { "spec.map[name=db,port=2].token": "a" }, { field, target: { onRelease: "Remove" } });
    assert.deepEqual((await specOf(team)).map, [{ name: "db", port: 2, token: a }]);
    assert.deepEqual(Object.keys(await heldBy(team, team.manager("lists"))), ["Apply"]);
    await team.unbind("lists");
    assert.equal((await specOf(team)).map, undefined);
    assert.deepEqual(await heldBy(team, team.manager("lists")), {});
  });

  it("is not appended when some of its keys are not given, or it is named by its index", async () => {
    const { team } = await createNamespaceWith({ map: [] });
    const field = { onMissingElement: "Append" };
    await team.bind("lists", bindingOf(fieldsFrom({ "spec.map[name=db].token": "a" }, field)));
    const { status } = await team.until("lists", "InvalidPath");
    assert.match(status.conditions[0].message, /spec\.map\[name=\.\.\.,port=\.\.\.\]/);
    await team.rebind("lists", bindingOf(fieldsFrom({ "spec.atomic[0].token": "a" }, field)));
    await team.until("lists", "ElementNotFound");
  });
});

describe("an element of a list that is released", () => {
  const spec = { atomic: [{ name: "web", port: 80 }, { name: "db" }], map: [{ name: "db", port: 1 }], texts: ["x"] };
  const paths = {
    "spec.atomic[name=db].token": "a",
    "spec.map[name=db].token": "a",
    "spec.size": "b",
    "spec.atomic[0].token": "b",
  };

  it("keeps its value with Retain, and no field manager of Inlay", async () => {
    const { team, a, b } = await createNamespaceWith(spec);
    await bind(team, paths);
    await team.unbind("lists");
    await eventually(async () => assert.deepEqual(await heldBy(team, team.manager("lists")), {}));
    assert.deepEqual(await specOf(team), {
      atomic: [
        { name: "web", port: 80, token: b },
        { name: "db", token: a },
      ],
      map: [{ name: "db", port: 1, token: a }],
      size: b,
      texts: ["x"],
    });
  });

  it("is restored with Remove, without a field manager of Inlay", async () => {
    const { team } = await createNamespaceWith(spec);
    await bind(team, paths, { target: { onRelease: "Remove" } });
    await team.unbind("lists");
    assert.deepEqual(await specOf(team), spec);
    assert.deepEqual(await heldBy(team, team.manager("lists")), {});
    assert.deepEqual(await heldBy(team, "inlay-controller"), {});
  });

  it("stays if an index names all of it: it existed before, and the other indexes would shift", async () => {
    const texts = ["run", "--token", "none", "--verbose"];
    const { team, a } = await createNamespaceWith({ ...spec, texts });
    await bind(team, { "spec.texts[2]": "a", "spec.map[0].token": "b" }, { target: { onRelease: "Remove" } });
    await team.unbind("lists");
    assert.deepEqual(await specOf(team), { ...spec, texts: texts.with(2, a) });
    for (const manager of [team.manager("lists"), "inlay"]) assert.deepEqual(await heldBy(team, manager), {});
    await eventually(async () => {
      const notes = (await team.events("lists")).filter(({ reason }) => reason === "ReleaseBlocked");
      assert.match(notes.map(({ note }) => note).join(), /spec\.texts\[2\] .* shift/);
    });
  });

  it("stays the binding's if another field of the list does", async () => {
    const { team, a } = await createNamespaceWith(spec);
    const target = { onRelease: "Remove" };
    await bind(team, paths, { target });
    await team.rebind("lists", bindingOf(fieldsFrom({ "spec.atomic[name=db].token": "a" }), target));
    await team.until("lists", "Synced");
    assert.deepEqual(await specOf(team), { ...spec, atomic: [spec.atomic[0], { name: "db", token: a }] });
    assert.deepEqual(await heldBy(team, team.manager("lists")), { Update: { "f:spec": { "f:atomic": {} } } });
  });

  it("is found wherever it is by then; an element that only an index names does not change if others changed the list", async () => {
    const { team, b } = await createNamespaceWith(spec);
    await bind(team, paths, { target: { onRelease: "Remove" } });
    await team.controller.stop();
    const { atomic } = await specOf(team);
    const moved = [{ name: "new", token: "theirs" }, ...atomic];
    await team.api.merge(shelfPath(team), { spec: { atomic: moved } });
    await team.api.delete(team.bindingPath("lists"));
    await team.controller.start();
    await team.untilGone(team.bindingPath("lists"), RESTARTED_WITHIN_MS);
    const now = await specOf(team);
    assert.deepEqual(now, { ...spec, atomic: [moved[0], { ...spec.atomic[0], token: b }, spec.atomic[1]] });
    await eventually(async () => {
      const notes = (await team.events("lists")).filter(({ reason }) => reason === "ReleaseBlocked");
      assert.match(notes.map(({ note }) => note).join(), /spec\.atomic\[0\]\.token .*the list/);
    });
  });
});

describe("a field of an object that is one value", () => {
  const matchExpressions = [{ key: "x", operator: "Exists" }];
  const key = "example.com/tea.m";
  const path = `spec.selector.matchLabels["${key}"]`;
  const selectorOf = async (team: TestNamespace) => (await specOf(team)).selector;

  it("is written alone, kept and released by several bindings, and the other fields stay", async () => {
    const before = { matchLabels: { app: "web", [key]: "old" }, matchExpressions };
    const { team, a, b } = await createNamespaceWith({ selector: before });
    await bind(team, { [path]: "a" }, { target: { onRelease: "Remove" } });
    assert.deepEqual(await selectorOf(team), { matchLabels: { app: "web", [key]: a }, matchExpressions });
    assert.deepEqual(await heldBy(team, team.manager("lists")), { Update: { "f:spec": { "f:selector": {} } } });

    await team.bind("two", bindingOf(fieldsFrom({ "spec.selector.matchLabels.tier": "b", "spec.size": "b" })));
    await team.until("two", "Synced");
    const rotated = secretText("rotated");
    await team.secret("bucket", { a: rotated });
    const both = { app: "web", [key]: rotated, tier: b };
    await eventually(async () => assert.deepEqual((await selectorOf(team)).matchLabels, both));
    await team.api.merge(shelfPath(team), { spec: { selector: { matchLabels: { [key]: "theirs", app: "db" } } } });
    await eventually(async () => assert.deepEqual((await selectorOf(team)).matchLabels, { ...both, app: "db" }));

    await team.bind("late", bindingOf(fieldsFrom({ [path]: "b" }, {}), { onConflict: "Force" }));
    await team.until("late", "Contended");
    await team.unbind("late");
    await team.unbind("lists");
    assert.deepEqual(await selectorOf(team), { matchLabels: { app: "db", tier: b }, matchExpressions });
    assert.deepEqual(await heldBy(team, team.manager("lists")), {});
    await team.unbind("two");
    await eventually(async () => assert.deepEqual(await heldBy(team, team.manager("two")), {}));
    assert.deepEqual(await selectorOf(team), { matchLabels: { app: "db", tier: b }, matchExpressions });
  });

  it("is written with the objects around it, in elements of lists too, and removed with them", async () => {
    const { team, a, b } = await createNamespaceWith({ map: [{ name: "db", port: 1 }] });
    const ofElement = "spec.map[name=db].selector.matchLabels.app";
    const field = { onMissingElement: "Append" };
    const expression = "spec.selector.matchExpressions[key=x].operator";
    await bind(team, { [path]: "a", [ofElement]: "b", [expression]: "a" }, { field, target: { onRelease: "Remove" } });
    const written = { matchLabels: { [key]: a }, matchExpressions: [{ key: "x", operator: a }] };
    const map = [{ name: "db", port: 1, selector: { matchLabels: { app: b } } }];
    assert.deepEqual(await specOf(team), { selector: written, map });
    await team.unbind("lists");
    assert.deepEqual(await specOf(team), { map: [{ name: "db", port: 1 }] });
    assert.deepEqual(await heldBy(team, team.manager("lists")), {});
  });

  it("names the manager that applies the object", async () => {
    const { team, a } = await createNamespaceWith({});
    const object = { apiVersion: apiVersionOf(shelf), kind: shelf.kind, metadata: { name: "shelf" } };
    const theirs = { ...object, spec: { selector: { matchLabels: { app: "web" } } } };
    await team.api.apply(shelfPath(team), theirs, "argocd");
    await bind(team, { [path]: "a" });
    assert.deepEqual((await selectorOf(team)).matchLabels, { app: "web", [key]: a });
    await eventually(async () => {
      const notes = (await team.events("lists")).filter(({ reason }) => reason === "Written").map(({ note }) => note);
      assert.match(notes.join(), /spec\.selector .*argocd/);
    });
    await assert.rejects(team.api.apply(shelfPath(team), theirs, "argocd"), /conflict with "inlay\//);
  });
});

describe("list values that the API server writes into managedFields", () => {
  const list = ["one", "two"];
  const entries = [{ name: "cm", port: 1 }];

  async function createNamespaceWithLists(): Promise<TestNamespace> {
    const { team } = await createNamespaceWith({ set: ["x"], map: [{ name: "web", port: 80 }] });
    const data = { list: JSON.stringify(list), entries: JSON.stringify(entries), text: "plain" };
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "settings" }, data });
    const secret = {
      list: JSON.stringify([secretText("one")]),
      entries: JSON.stringify([{ name: secretText("n"), port: 1 }]),
    };
    await team.secret("bucket", { ...secret, text: secretText("text") });
    return team;
  }

  const written: [what: string, path: string, key: string, as?: string][] = [
    ["elements of a set", "spec.set", "list", "json"],
    ["one element of a set", "spec.set[0]", "text"],
    ["elements of a map list", "spec.map", "entries", "json"],
    ["a key of a map list", "spec.map[0].name", "text"],
  ];
  for (const [what, path, key, as] of written) {
    it(`are refused as ${what} from a Secret, and accepted from a ConfigMap`, async () => {
      const team = await createNamespaceWithLists();
      const field = { path, from: { source: "bucket", key }, ...(as && { as }) };
      await team.bind("lists", bindingOf([field]));
      const { status } = await team.until("lists", "InvalidPath");
      assert.match(status.conditions[0].message, /metadata\.managedFields/);
      const from = { source: "settings", key };
      await team.rebind("lists", {
        sources: [{ configMap: { name: "settings" } }],
        targets: [{ apiVersion: apiVersionOf(shelf), kind: shelf.kind, name: "shelf", fields: [{ ...field, from }] }],
      });
      await team.until("lists", "Synced");
      const { set, map } = await specOf(team);
      const now = {
        "spec.set": set.slice(-2),
        "spec.set[0]": set[0],
        "spec.map": map.slice(-1),
        "spec.map[0].name": map[0].name,
      };
      const wanted = { "spec.set": list, "spec.set[0]": "plain", "spec.map": entries, "spec.map[0].name": "plain" };
      assert.deepEqual(now[path as keyof typeof now], wanted[path as keyof typeof wanted]);
      await team.unbind("lists");
      await eventually(async () => assert.deepEqual(await heldBy(team, team.manager("lists")), {}));
    });
  }
});

describe("a created object", () => {
  it("has the values in the elements of its manifest, and in appended elements", async () => {
    const { team, a, b } = await createNamespaceWith({});
    await team.grant([{ apiGroups: [shelf.group], resources: [shelf.plural], verbs: ["create", "delete"] }], {
      role: "maker",
    });
    const fields = [
      ...fieldsFrom({ "spec.atomic[name=db].token": "a", "spec.map[0].token": "b" }),
      ...fieldsFrom({ "spec.atomic[name=new].token": "b" }, { onMissingElement: "Append" }),
    ];
    const spec = { atomic: [{ name: "web" }, { name: "db" }], map: [{ name: "x", port: 1 }] };
    await team.bind("lists", bindingOf(fields, { name: "made", create: { manifest: { spec } } }));
    await team.until("lists", "Synced");
    const path = objectPath(shelf, team.namespace, "made");
    const wanted = (first: string) => ({
      atomic: [{ name: "web" }, { name: "db", token: first }, { name: "new", token: b }],
      map: [{ name: "x", port: 1, token: b }],
    });
    assert.deepEqual((await team.api.get(path)).spec, wanted(a));
    const rotated = secretText("rotated");
    await team.secret("bucket", { a: rotated });
    await eventually(async () => assert.deepEqual((await team.api.get(path)).spec, wanted(rotated)));
    await team.rebind(
      "lists",
      bindingOf(fieldsFrom({ "spec.atomic[name=gone].token": "a" }), { name: "made", create: { manifest: { spec } } }),
    );
    const { status } = await team.until("lists", "InvalidBinding");
    assert.match(status.conditions[0].message, /element spec\.atomic\[name=gone\]/);
  });
});

describe("an invalid path into a list", () => {
  const cases: [why: string, path: string, reason: string, advice: RegExp][] = [
    ["without the element", "spec.map.token", "TypeMismatch", /spec\.map\[name=\.\.\.,port=\.\.\.\]/],
    [
      "without the element, where there is no schema",
      "spec.free.list.token",
      "TypeMismatch",
      /spec\.free\.list .*list/,
    ],
    ["by a field that elements don't have", "spec.atomic[nmae=web].token", "UnknownField", /nmae.* name\b/],
    ["that fits two elements", "spec.atomic[name=two].token", "ElementNotUnique", / 2 elements/],
    ["past its end", "spec.atomic[9].token", "ElementNotFound", / 3 elements/],
    ["through a text", "spec.free.text[0].token", "TypeMismatch", /spec\.free\.text/],
  ];
  for (const [why, path, reason, advice] of cases) {
    it(`${why} has a reason and a message with the fix`, async () => {
      const { team } = await createNamespaceWith({
        atomic: [{ name: "web" }, { name: "two" }, { name: "two" }],
        free: { list: [{ token: "x" }], text: "x" },
      });
      await team.bind("lists", bindingOf(fieldsFrom({ [path]: "a" })));
      const { status } = await team.until("lists", reason);
      assert.match(status.conditions[0].message, advice);
    });
  }

  it("is refused if it is another way to the same place", async () => {
    const { team } = await createNamespaceWith({ atomic: [{ name: "web" }] });
    await team.bind(
      "lists",
      bindingOf(fieldsFrom({ "spec.atomic[0].token": "a", "spec.atomic[name=web].token": "b" })),
    );
    await team.until("lists", "InvalidBinding");
  });
});
