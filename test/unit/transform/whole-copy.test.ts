/** What a copy of a whole Secret takes from its source besides the data. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import type { Target } from "../../../src/api/binding.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import type { LiveSource } from "../../../src/transform/live-source.ts";
import { copiedMetadata, FOREIGN_KEYS, isForeign, withInherited } from "../../../src/transform/whole-copy.ts";
import { secret } from "./sources.ts";

interface Metadata {
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

const from = (type: string | undefined, { labels = {}, annotations = {} }: Metadata = {}): LiveSource => ({
  ...(secret({ a: "1" }) as Extract<LiveSource, { kind: "data" }>),
  ...(type !== undefined && { type }),
  labels: new SecretValue(labels),
  annotations: new SecretValue(annotations),
});

const copy = (create: object | undefined, field: object = {}, ...others: object[]) =>
  ({
    apiVersion: "v1",
    kind: "Secret",
    name: "copy",
    ...(create && { create: { manifest: {}, ...create } }),
    fields: [{ path: "data", from: { source: "s", ...field } }, ...others],
  }) as Target;

function taken(target: Target, source: LiveSource | Problem): unknown[] {
  const { fields, warnings = [] } = withInherited({ fields: [], omitted: [] }, target, new Map([["s", source]]));
  return [...fields.map(({ path, value }) => `${path}=${value.reveal()}`), ...warnings.map(({ reason }) => reason)];
}

describe("a copy of a whole Secret", () => {
  it("has the type of its source, unless the binding sets it or does not create the whole copy", () => {
    const tls = from("kubernetes.io/tls");
    assert.deepEqual(taken(copy({}), tls), ["type=kubernetes.io/tls"]);
    const others: [Target, LiveSource | Problem][] = [
      [copy(undefined), tls],
      [copy({ manifest: { type: "Opaque" } }), tls],
      [copy({}, {}, { path: "type", template: "Opaque" }), tls],
      [copy({}, { include: ["^tls"] }), tls],
      [copy({}, { key: "a" }), tls],
      [copy({}, { source: undefined, sources: ["s"] }), tls],
      [{ ...copy({}), kind: "ConfigMap" }, tls],
      [copy({}), from("Opaque")],
      [copy({}), from(undefined)],
      [copy({}), new Problem("Forbidden", "may not read it")],
    ];
    for (const [target, source] of others) assert.deepEqual(taken(target, source), []);
    assert.deepEqual(taken(copy({}), from("kubernetes.io/service-account-token")), ["InvalidValue"]);
  });

  it("has the labels and annotations that match, but none of the manifest, of a field or of a tool", () => {
    const labels = { a: "1", b: "2", "x.io/c": "3", "app.kubernetes.io/instance": "i", "app.kubernetes.io/name": "n" };
    const source = from(undefined, { labels, annotations: { "team/a": "x", other: "y" } });
    const create = {
      manifest: { metadata: { labels: { a: "own" } } },
      copy: { labels: ["*"], annotations: ["team/*"] },
    };
    const written = { path: 'metadata.labels["x.io/c"]', template: "z" };
    assert.deepEqual(taken(copy(create, {}, written), source), [
      "metadata.labels.b=2",
      'metadata.labels["app.kubernetes.io/name"]=n',
      'metadata.annotations["team/a"]=x',
    ]);
    assert.deepEqual(copiedMetadata(copy(create)).map(String), ["metadata.labels", "metadata.annotations"]);
    assert.deepEqual(copiedMetadata(copy({})), []);
  });

  it("has at most 32 labels, and a message that says so", () => {
    const many = (count: number) =>
      from(undefined, { labels: Object.fromEntries(Array.from({ length: count }, (_, n) => [`l${n}`, ""])) });
    const target = copy({ copy: { labels: ["l*"] } });
    assert.equal(taken(target, many(32)).length, 32);
    assert.throws(() => taken(target, many(33)), {
      reason: "InvalidValue",
      message:
        "create.copy.labels matches 33 labels of Secret registry/bucket, and Inlay copies at most 32; write narrower patterns",
    });
  });
});

describe("the keys of labels and annotations that no copy gets", () => {
  it("include those by which tools find, own or make their objects", () => {
    const keys = [
      "inlay.dev/created-by",
      "kubectl.kubernetes.io/last-applied-configuration",
      "kubernetes.io/service-account.name",
      "applyset.kubernetes.io/part-of",
      "app.kubernetes.io/instance",
      "app.kubernetes.io/managed-by",
      "argocd.argoproj.io/secret-type",
      "kustomize.toolkit.fluxcd.io/name",
      "helm.toolkit.fluxcd.io/name",
      "meta.helm.sh/release-name",
      "kapp.k14s.io/app",
      "objectset.rio.cattle.io/hash",
      "reflector.v1.k8s.emberstack.com/reflection-auto-enabled",
      "replicator.v1.mittwald.de/replicate-to",
      "generate.kyverno.io/policy-name",
      "cert-manager.io/certificate-name",
      "controller.cert-manager.io/fao",
      "reconcile.external-secrets.io/managed",
    ];
    assert.deepEqual(
      keys.filter((key) => !isForeign(key)),
      [],
    );
    for (const key of ["app", "app.kubernetes.io/name", "team/owner", "reloader.stakater.com/match"])
      assert.ok(!isForeign(key), key);
  });

  it("are those of the documentation", async () => {
    const page = await readFile("docs/reference/writing.md", "utf8");
    const [, list = ""] = /decides what to do with a Secret:\n\n(.*)\n/.exec(page) ?? [];
    assert.deepEqual(
      list.match(/(?<=`)[^`,]+(?=`)/g)?.filter((key) => key.trim() !== ","),
      [...FOREIGN_KEYS],
    );
  });
});
