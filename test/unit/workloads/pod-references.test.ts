/** What a pod spec refers to, wherever it names it. Order and repetition change nothing. */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  type PodPlace,
  type PodReference,
  type PodSource,
  podReferences,
  referencesTo,
} from "../../../src/workloads/pod-references.ts";

const containers = ["containers", "initContainers", "ephemeralContainers"];
const inContainer = (container: object) => ({ containers: [{ name: "web", ...container }] });
const inVolume = (volume: object) => ({ volumes: [{ name: "files", ...volume }] });
const secret = (by: PodPlace, ...keys: string[]): PodReference[] => [
  { kind: "Secret", name: "bucket", ...(keys.length > 0 && { keys }), by },
];
const configMap = (by: PodPlace, ...keys: string[]): PodReference[] => [
  { kind: "ConfigMap", name: "bucket", ...(keys.length > 0 && { keys }), by },
];

describe("the references of a pod's spec", () => {
  const cases: Record<string, [podSpec: object, references: PodReference[]]> = {
    "the key of a variable": [
      inContainer({ env: [{ name: "A", valueFrom: { secretKeyRef: { name: "bucket", key: "a" } } }] }),
      secret("env", "a"),
    ],
    "the key of a variable, of a ConfigMap": [
      inContainer({ env: [{ name: "A", valueFrom: { configMapKeyRef: { name: "bucket", key: "a" } } }] }),
      configMap("env", "a"),
    ],
    "an optional reference as optional": [
      inContainer({ env: [{ name: "A", valueFrom: { secretKeyRef: { name: "bucket", key: "a", optional: true } } }] }),
      secret("env", "a").map((each) => ({ ...each, optional: true })),
    ],
    "an object as required if one of several references requires it": [
      inContainer({ envFrom: [{ secretRef: { name: "bucket", optional: true } }, { secretRef: { name: "bucket" } }] }),
      secret("envFrom"),
    ],
    "no object for a variable with a value of its own": [inContainer({ env: [{ name: "A", value: "bucket" }] }), []],
    "all keys as variables, with a prefix": [
      inContainer({ envFrom: [{ prefix: "S3_", secretRef: { name: "bucket" } }] }),
      secret("envFrom"),
    ],
    "all keys of a ConfigMap as variables": [
      inContainer({ envFrom: [{ configMapRef: { name: "bucket" } }] }),
      configMap("envFrom"),
    ],
    "all keys as files": [inVolume({ secret: { secretName: "bucket" } }), secret("volume")],
    "all keys as files, where no items are listed": [
      inVolume({ secret: { secretName: "bucket", items: [] } }),
      secret("volume"),
    ],
    "some keys as files": [
      inVolume({
        secret: {
          secretName: "bucket",
          items: [
            { key: "b", path: "x" },
            { key: "a", path: "y" },
          ],
        },
      }),
      secret("volume", "a", "b"),
    ],
    "keys of a ConfigMap as files": [
      inVolume({ configMap: { name: "bucket", items: [{ key: "a", path: "x" }] } }),
      configMap("volume", "a"),
    ],
    "files projected into one folder": [
      inVolume({
        projected: {
          sources: [
            { secret: { name: "bucket", items: [{ key: "a", path: "x" }] } },
            { configMap: { name: "bucket" } },
            { serviceAccountToken: { path: "token" } },
          ],
        },
      }),
      [...configMap("projected"), ...secret("projected", "a")],
    ],
    "the class of a CSI volume, and the Secret for mounting it": [
      inVolume({
        csi: {
          driver: "secrets-store.csi.k8s.io",
          volumeAttributes: { secretProviderClass: "vault" },
          nodePublishSecretRef: { name: "bucket" },
        },
      }),
      [...secret("csi"), { kind: "SecretProviderClass", name: "vault", by: "csi" }],
    ],
    "the Secrets for pulling images": [{ imagePullSecrets: [{ name: "bucket" }, {}] }, secret("imagePullSecret")],
    "the Secret of an Azure file": [
      inVolume({ azureFile: { secretName: "bucket", shareName: "x" } }),
      secret("volume"),
    ],
  };
  const items = [
    { key: "a", path: "conf/x" },
    { key: "b", path: "./y" },
  ];
  const mounting = (volume: object, ...mounts: object[]) => ({
    containers: [{ name: "web", volumeMounts: mounts.map((each) => ({ name: "files", mountPath: "/x", ...each })) }],
    ...inVolume(volume),
  });
  const whole = { secret: { secretName: "bucket" } };
  const bySubPath: Record<string, [podSpec: object, references: PodReference[]]> = {
    "that it mounts as a whole": [mounting(whole, {}), secret("volume")],
    "of which it mounts a file": [
      mounting(whole, { subPath: "./a" }),
      [...secret("subPath", "a"), ...secret("volume")],
    ],
    "that it mounts as a whole and a file of it": [
      mounting(whole, {}, { subPath: "a" }, { subPath: "" }),
      [...secret("subPath", "a"), ...secret("volume")],
    ],
    "of which it mounts the folder itself": [
      mounting(whole, { subPath: "." }, { subPath: "a" }),
      [...secret("subPath"), ...secret("volume")],
    ],
    "of which it mounts a folder of the kubelet": [
      mounting(whole, { subPath: "..data/a" }),
      [...secret("subPath"), ...secret("volume")],
    ],
    "of which it mounts a file with a variable in the name": [
      mounting({ secret: { secretName: "bucket", items } }, { subPathExpr: "$(POD)" }),
      [...secret("subPath", "a", "b"), ...secret("volume", "a", "b")],
    ],
    "of which it mounts a file of several items": [
      mounting({ configMap: { name: "bucket", items } }, { subPath: "y" }),
      [...configMap("subPath", "b"), ...configMap("volume", "a", "b")],
    ],
    "of which it mounts a file that no item has": [
      mounting({ configMap: { name: "bucket", items } }, { subPath: "z" }),
      configMap("volume", "a", "b"),
    ],
    "that are projected, of which it mounts a file": [
      mounting({ projected: { sources: [{ secret: { name: "bucket", items } }] } }, { subPath: "conf/x" }),
      [...secret("projected", "a", "b"), ...secret("subPath", "a")],
    ],
    "of a class, of which it mounts a file": [
      mounting({ csi: { volumeAttributes: { secretProviderClass: "vault" } } }, { subPath: "x" }),
      (["csi", "subPath"] as const).map((by) => ({ kind: "SecretProviderClass", name: "vault", by })),
    ],
    "if another volume has a file mounted": [mounting(whole, { name: "other", subPath: "a" }), secret("volume")],
  };
  for (const [what, [podSpec, references]] of Object.entries(bySubPath)) {
    it(`have the files of a volume ${what}`, () => assert.deepEqual(podReferences(podSpec), references));
  }

  it("have the files that any container mounts", () => {
    for (const field of containers) {
      const volumeMounts = [{ name: "files", mountPath: "/x", subPath: "a" }];
      assert.deepEqual(podReferences({ [field]: [{ volumeMounts }], ...inVolume(whole) }), [
        ...secret("subPath", "a"),
        ...secret("volume"),
      ]);
    }
  });

  it("have the files beside a volume in addition to the most references", () => {
    assert.deepEqual(podReferences(mounting(whole, { subPath: "a" }), 1), [
      ...secret("subPath", "a"),
      ...secret("volume"),
    ]);
  });

  for (const [what, [podSpec, references]] of Object.entries(cases)) {
    it(`have ${what}`, () => assert.deepEqual(podReferences(podSpec), references));
  }

  for (const type of ["cephfs", "cinder", "rbd", "iscsi", "flexVolume", "scaleIO", "storageos"]) {
    it(`have the Secret of a volume of the type ${type}`, () => {
      assert.deepEqual(podReferences(inVolume({ [type]: { secretRef: { name: "bucket" } } })), secret("volume"));
    });
  }

  for (const field of containers) {
    it(`have the objects that ${field} name`, () => {
      const container = { name: "web", envFrom: [{ secretRef: { name: "bucket" } }] };
      assert.deepEqual(podReferences({ [field]: [container] }), secret("envFrom"));
    });
  }

  it("are one for each object and way, with the keys of all places of that way", () => {
    const env = (key: string) => ({ name: key, valueFrom: { secretKeyRef: { name: "bucket", key } } });
    const podSpec = {
      initContainers: [{ name: "a", env: [env("b"), env("a")] }],
      containers: [{ name: "b", env: [env("b")] }],
      volumes: [{ name: "files", secret: { secretName: "bucket", items: [{ key: "c", path: "x" }] } }],
    };
    assert.deepEqual(podReferences(podSpec), [...secret("env", "a", "b"), ...secret("volume", "c")]);
    const whole = { ...podSpec, imagePullSecrets: [{ name: "bucket" }] };
    assert.deepEqual(podReferences(whole), [
      ...secret("env", "a", "b"),
      ...secret("imagePullSecret"),
      ...secret("volume", "c"),
    ]);
  });

  const name = fc.constantFrom("bucket", "other", "third");
  const key = fc.constantFrom("a", "b", "c");
  /** One place in a pod spec, and what is read there. */
  const place: fc.Arbitrary<{
    field: string;
    part: object;
    kind: PodSource;
    name: string;
    key?: string;
    by: PodPlace;
  }> = fc.oneof(
    fc.record({ name, key, field: fc.constantFrom(...containers) }).map((each) => ({
      ...each,
      part: { env: [{ valueFrom: { secretKeyRef: { name: each.name, key: each.key } } }] },
      kind: "Secret" as const,
      by: "env" as const,
    })),
    fc.record({ name, field: fc.constantFrom(...containers) }).map((each) => ({
      ...each,
      part: { envFrom: [{ configMapRef: { name: each.name } }] },
      kind: "ConfigMap" as const,
      by: "envFrom" as const,
    })),
    fc.record({ name, key }).map((each) => ({
      ...each,
      field: "volumes",
      part: { projected: { sources: [{ configMap: { name: each.name, items: [{ key: each.key }] } }] } },
      kind: "ConfigMap" as const,
      by: "projected" as const,
    })),
    name.map((each) => ({
      name: each,
      field: "volumes",
      part: { secret: { secretName: each } },
      kind: "Secret" as const,
      by: "volume" as const,
    })),
  );

  it("are those of all places together, in any order", () => {
    fc.assert(
      fc.property(fc.array(place, { maxLength: 12 }), (places) => {
        const podSpec: Record<string, object[]> = {};
        for (const { field, part } of places) podSpec[field] = [...(podSpec[field] ?? []), part];
        const references = podReferences(podSpec);
        const idOf = ({ kind, name: of, by }: Pick<PodReference, "kind" | "name" | "by">) => `${kind} ${of} ${by}`;
        assert.deepEqual(references.map(idOf), [...new Set(places.map(idOf))].toSorted());
        for (const { keys, ...reference } of references) {
          const theirs = places.filter((each) => idOf(each) === idOf(reference));
          const isWhole = theirs.some((each) => each.key === undefined);
          assert.deepEqual(keys, isWhole ? undefined : [...new Set(theirs.map((each) => each.key))].toSorted());
        }
      }),
    );
  });

  it("are at most as many as wanted, and their keys too", () => {
    const env = Array.from({ length: 20_000 }, (_, n) => ({
      valueFrom: { secretKeyRef: { name: `s${n % 3}`, key: `k${Math.floor(n / 3)}` } },
    }));
    const envFrom = Array.from({ length: 20_000 }, (_, n) => ({ secretRef: { name: `s${n}` } }));
    assert.equal(podReferences({ containers: [{ envFrom }] }, 100).length, 100);
    assert.equal(
      podReferences({ containers: [{ envFrom: [...envFrom.slice(0, 99), ...envFrom.slice(0, 99)] }] }, 100).length,
      99,
    );
    // More than 100 keys in all: the references become references to all keys.
    assert.deepEqual(
      podReferences({ containers: [{ env }] }, 100),
      ["s0", "s1", "s2"].map((name) => ({ kind: "Secret", name, by: "env" })),
    );
    const few = podReferences({ containers: [{ env: env.slice(0, 90) }] }, 100);
    assert.deepEqual(
      few.map(({ keys }) => keys?.length),
      [30, 30, 30],
    );
  });

  it("to one object are found among those to objects with similar names", () => {
    const names = ["a", "a/b", "b", "a", "a.b"];
    const references = podReferences({
      containers: [{ envFrom: names.map((name) => ({ secretRef: { name } })) }],
      volumes: [{ secret: { secretName: "a" } }, { configMap: { name: "a" } }],
    });
    const to = (name: string) => referencesTo(references, { kind: "Secret", name }).map(({ by }) => by);
    assert.deepEqual(to("a"), ["envFrom", "volume"]);
    assert.deepEqual([to("a/b"), to("a.b"), to("c")], [["envFrom"], ["envFrom"], []]);
  });

  it("of a malformed template are found without a failure, and none has an empty name", () => {
    const field = fc.constantFrom("containers", "env", "valueFrom", "secretKeyRef", "name", "key", "volumes", "secret");
    const anything = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        fc.constantFrom("", "a", 1, null, true),
        fc.dictionary(field, tie("value")),
        fc.array(tie("value"), { maxLength: 3 }),
      ),
    })).value;
    fc.assert(
      fc.property(anything, (podSpec) => podReferences(podSpec).every(({ name: of }) => of !== "" && of.length > 0)),
    );
  });
});
