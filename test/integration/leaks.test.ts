/**
 * No value of a Secret is in any output of Inlay or the cluster, whatever fails. test/setup.ts searches for values after
 * every test and every file. Here, random values meet every kind of failure.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fc from "fast-check";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite } from "../controller/kinds.ts";
import { foundIn, registerSecretBytes, secretText } from "../controller/leak-detector.ts";
import { sharedController } from "../controller/shared.ts";
import {
  createNamespace,
  harborTarget,
  type Rule,
  type TestNamespace,
  usualRules,
} from "../controller/test-namespace.ts";

/** A kind that refuses all writes, and whose API server returns the value in its answer. */
const wall: Kind = {
  group: "no-leaks.example.com",
  kind: "Wall",
  plural: "walls",
  scope: "Namespaced",
  spec: {
    type: "object",
    properties: {
      number: { type: "integer" },
      pattern: { type: "string", pattern: "^never$" },
      choice: { type: "string", enum: ["never"] },
      rule: {
        type: "string",
        maxLength: 10_000,
        "x-kubernetes-validations": [{ rule: "self == 'never'", messageExpression: "'it is ' + self" }],
      },
      list: { type: "array", items: { type: "string" } },
    },
  },
};

const from = { from: { source: "bucket", key: "value" } };
const onWall = (path: string, more: object = from) => ({
  apiVersion: apiVersionOf(wall),
  kind: wall.kind,
  name: "wall",
  fields: [{ path, ...more }],
});
const onHarbor = (...fields: object[]) => harborTarget({}, { fields });
const ACCESS_KEY = "spec.storage.spec.s3.accesskey";

/** Failures. Inlay recognizes some of them, and others only the API server, which quotes the request. */
const failures: Record<string, object> = {
  "a template that is not well-formed": onHarbor({ path: ACCESS_KEY, template: "{{bucket.value" }),
  "a template with a helper": onHarbor({ path: ACCESS_KEY, template: "{{shout bucket.value}}" }),
  "a template of a missing key": onHarbor({ path: ACCESS_KEY, template: "{{bucket.value}}{{bucket.nope}}" }),
  "a template of bytes": onHarbor({ path: ACCESS_KEY, template: "{{bucket.value}}{{bucket.binary}}" }),
  "bytes for text": onHarbor({ path: ACCESS_KEY, from: { source: "bucket", key: "binary" } }),
  "text for a number": onWall("spec.number"),
  "text for a list": onWall("spec.list"),
  "an unknown field": onWall("spec.unknown"),
  "a forbidden path": onWall("status.value"),
  "a pattern": onWall("spec.pattern"),
  "an enum": onWall("spec.choice"),
  "a CEL rule": onWall("spec.rule"),
  "a CEL rule for a template": onWall("spec.rule", { template: "https://{{bucket.value}}@host" }),
  "an invalid label": onWall('metadata.labels["no-leaks.example.com/value"]', {
    template: "? {{bucket.value}} ?",
  }),
  "a conflict": onHarbor({ path: "spec.storage.spec.s3.regionendpoint", ...from }),
  "no target": harborTarget({}, { name: "nowhere", fields: [{ path: ACCESS_KEY, ...from }] }),
  nothing: onHarbor({ path: ACCESS_KEY, ...from }),
};

/** Permissions that lack something, or not. */
const grants: Record<string, Rule[]> = {
  all: [...usualRules, mayWrite(wall)],
  "none to write": [...usualRules, mayWrite(wall)].map((rule) => ({ ...rule, verbs: ["get", "list", "watch"] })),
  "none to read": [{ apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"] }, mayWrite(wall)],
};

describe("leaks:", () => {
  before("random values meet random failures", async () => {
    const api = new Api(controlPlane());
    await installKind(api, wall);
    const { data = {} } = await api.get("/api/v1/namespaces/inlay-system/secrets/inlay-digest-key");
    const { primary: _, ...keys } = data;
    for (const key of Object.values(keys)) registerSecretBytes(Buffer.from(key as string, "base64"));
    const scenario = fc.record({
      failure: fc.constantFrom(...Object.keys(failures)),
      rights: fc.oneof(
        { weight: 4, arbitrary: fc.constant("all") },
        { weight: 1, arbitrary: fc.constantFrom(...Object.keys(grants)) },
      ),
      around: fc.tuple(fc.string({ unit: "grapheme", maxLength: 20 }), fc.string({ unit: "binary", maxLength: 20 })),
    });
    const random = fc.sample(scenario, 24);
    // Each failure once more, with all permissions.
    const each = Object.keys(failures).map((failure) => ({
      failure,
      rights: "all",
      around: ['"\\', "%\n{{x}}"] as const,
    }));
    await Promise.all(
      [...each, ...random].map((one) =>
        fail(one).catch((error: Error) => {
          throw new Error(JSON.stringify(one), { cause: error });
        }),
      ),
    );
  });

  async function fail(scenario: { failure: string; rights: string; around: readonly [string, string] }): Promise<void> {
    const { failure, rights, around } = scenario;
    const team = await createNamespace({ rules: grants[rights] as Rule[] });
    const value = () => `${around[0]}${secretText("fuzz")}${around[1]}`;
    const change = () =>
      team.secret("bucket", { value: value(), binary: Buffer.concat([Buffer.from(value()), Buffer.of(0xff)]) });
    await change();
    await team.harbor("harbor", { regionendpoint: secretText("theirs") });
    await createObject(team.api, wall, "wall", {}, team.namespace);
    await team.bind("fuzz", { sources: [{ secret: { name: "bucket" } }], targets: [failures[failure] as object] });
    const condition = () => eventually(() => saysSomething(team), 30_000);
    await condition();
    await change();
    await team.rebind("fuzz", { defaults: { onRelease: "Remove" } });
    await condition();
  }

  async function saysSomething(team: TestNamespace): Promise<void> {
    const { metadata, status } = await team.binding("fuzz");
    assert.equal(status?.observedGeneration, metadata.generation);
    assert.ok(status.conditions[0].reason);
  }

  const clean = (text: string) => {
    assert.notEqual(text, "");
    assert.deepEqual(foundIn(text), []);
  };

  it("the leak detector finds a value in every encoding", () => {
    const value = secretText("planted");
    const [label, random] = value.split("-") as [string, string];
    const spelled: Record<string, string> = {
      plain: value,
      "a part": random,
      json: JSON.stringify({ text: JSON.stringify({ value: `"${value}\n` }) }),
      url: `https://host/?x=${encodeURIComponent(`/${value}?`)}`,
      hex: Buffer.from(value).toString("hex"),
      sha256: digest(value, "hex"),
      "sha256 in base64": digest(value, "base64"),
    };
    for (const before of ["", "a", "ab", `${label}é`]) {
      for (const encoding of ["base64", "base64url"] as const) {
        spelled[`${encoding} after ${before}`] = Buffer.from(`${before}${random}, and more`).toString(encoding);
      }
    }
    for (const [name, text] of Object.entries(spelled)) {
      assert.deepEqual(foundIn(`something ${text} else`), [random], name);
    }
    assert.deepEqual(foundIn(`something ${label} ${random.slice(1)} else`), []);
  });

  it("the leak detector finds the bytes of a key in every encoding", () => {
    const key = Buffer.from("00f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1e", "hex");
    registerSecretBytes(key);
    const before = Buffer.concat([Buffer.of(1), key]);
    const texts = [key, before].flatMap((bytes) => [
      bytes.toString("hex"),
      bytes.toString("base64"),
      bytes.toString("base64url"),
      JSON.stringify(bytes),
    ]);
    for (const text of texts) assert.deepEqual(foundIn(`something ${text} else`), [key.toString("hex")], text);
  });

  it("no value is in the log of the controller", () => {
    const { output } = sharedController(controlPlane());
    for (const reason of ["Rejected", "TypeMismatch", "InvalidTemplate", "Conflict", "Forbidden"]) {
      assert.ok(output.includes(reason), reason);
    }
    clean(output);
  });

  it("no value is in events, with either API version", async () => {
    for (const path of ["/api/v1/events", "/apis/events.k8s.io/v1/events"]) {
      await eventually(async () => {
        const { items } = await new Api(controlPlane()).get(path);
        assert.ok(items.some(({ reason }: AnyObject) => reason === "Rejected"));
        clean(JSON.stringify(items));
      });
    }
  });

  it("no value is in what kubectl shows of SecretBindings: spec, status, managedFields and all", async () => {
    for (const args of [
      ["get", "secretbindings", "--all-namespaces", "--output=wide"],
      ["get", "secretbindings", "--all-namespaces", "--output=json", "--show-managed-fields"],
      ["describe", "secretbindings", "--all-namespaces"],
    ]) {
      clean((await controlPlane().kubectl(...args)).stdout);
    }
  });

  it("no value is in the managedFields of targets", async () => {
    const api = new Api(controlPlane());
    for (const path of ["/apis/goharbor.io/v1beta1/harborclusters", `/apis/${apiVersionOf(wall)}/walls`]) {
      const { items } = await api.get(path);
      clean(JSON.stringify(items.map(({ metadata }: AnyObject) => metadata.managedFields)));
    }
  });
});

const digest = (value: string, encoding: "hex" | "base64") => createHash("sha256").update(value).digest(encoding);
