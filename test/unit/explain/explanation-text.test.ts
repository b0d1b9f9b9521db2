/** The text that `inlay explain` prints. */
import assert from "node:assert/strict";
import type { Explanation } from "../../../src/explain/explanation.ts";
import { explanationText } from "../../../src/explain/explanation-text.ts";
import { BINDING } from "./explained.ts";

const WIDTH = 120;
const NOW = Date.parse("2026-01-02T00:00:00Z");
const ours = "inlay/registry/harbor-s3";

const WORKLOAD = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  namespace: "registry",
  name: "core",
  step: "one",
  state: "Rolling" as const,
  restartTime: "2026-01-01T23:55:00Z",
  message: "1 of 3 replicas are updated",
};

const explanation: Explanation = {
  binding: BINDING,
  account: { name: "ServiceAccount registry/inlay", state: "Found" },
  sources: [
    {
      source: "bucket",
      kind: "Secret",
      namespace: "registry",
      name: "bucket",
      optional: false,
      state: "Found",
      resourceVersion: "4711",
      uses: [
        { key: "accessKeyID", present: true },
        { key: "host", present: false },
      ],
    },
    {
      source: "shared",
      kind: "Secret",
      namespace: "storage",
      name: "shared",
      optional: false,
      state: "Unreadable",
      message: "you may not get secrets/shared in namespace storage",
      uses: [{ key: "*" }],
      grants: { state: "Found", names: ["readers"], message: "if" },
    },
    {
      source: "gone",
      kind: "ConfigMap",
      namespace: "registry",
      name: "gone",
      optional: true,
      state: "NotFound",
      uses: [],
    },
  ],
  targets: [
    {
      apiVersion: "goharbor.io/v1beta1",
      kind: "HarborCluster",
      selects: false,
      creates: false,
      fields: [{ path: "spec.endpoint", from: ["bucket/host", "bucket/port"] }],
      objects: [
        {
          namespace: "registry",
          name: "harbor",
          state: "Found",
          status: { reason: "KeyNotFound", message: "spec.endpoint: Secret registry/bucket has no key host" },
          fields: [{ path: "spec.endpoint", held: false, managers: ["argocd", "kubectl"] }],
        },
      ],
      more: 0,
    },
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      selects: true,
      creates: false,
      when: "AfterRollout",
      fields: [{ path: "data.key", from: ["bucket/accessKeyID"] }],
      objects: [
        {
          namespace: "a",
          name: "one",
          state: "Found",
          status: { reason: "Synced", readablePaths: ["data.key"] },
          fields: [{ path: "data.key", held: true, managers: [ours] }],
        },
      ],
      more: 33,
    },
  ],
  notes: ["no object matches spec.targets[2]"],
  rollout: {
    suspended: false,
    restarts: ["step one: Deployment core"],
    revision: 3,
    trackedValues: ["bucket/accessKeyID"],
    lastStartTime: "2026-01-01T12:00:00Z",
    pending: {
      firstChangeTime: "2026-01-01T23:50:00Z",
      reason: "Rolling",
      message: "1 of 1 workloads is rolling out",
      workloads: [WORKLOAD],
    },
  },
  conditions: [
    {
      type: "Ready",
      status: "False",
      reason: "KeyNotFound",
      message: "Secret registry/bucket has no key host",
      lastTransitionTime: "2026-01-01T23:50:00Z",
    },
  ],
  events: [{ time: "2026-01-01T23:58:00Z", type: "Warning", reason: "KeyNotFound", message: "no key host" }],
  advice: { reason: "Forbidden", message: "it may not; allow it with:", command: `kubectl ${"x".repeat(200)}` },
};

describe("the text of an explanation", () => {
  it("prints the sections from the account to what to do, with the command on one line", () => {
    assert.deepEqual(explanationText(explanation, NOW, WIDTH), [
      "SecretBinding registry/harbor-s3: Ready False, KeyNotFound",
      "",
      "ACCOUNT",
      "  ServiceAccount registry/inlay  found",
      "",
      "SOURCES",
      "  SOURCE  OBJECT                   VERSION                                              USED",
      "  bucket  Secret registry/bucket   4711                                                 accessKeyID, host (missing)",
      "  shared  Secret storage/shared    you may not get secrets/shared in namespace storage  all of it (unknown)",
      "          granted by readers, if",
      "  gone    ConfigMap registry/gone  not found, optional                                  nothing",
      "",
      "TARGET HarborCluster registry/harbor (goharbor.io/v1beta1)",
      "  KeyNotFound: spec.endpoint: Secret registry/bucket has no key host",
      "  FIELD          FROM                      OWNED  MANAGERS",
      "  spec.endpoint  bucket/host, bucket/port  no     argocd, kubectl",
      "",
      "TARGET ConfigMap (v1, selected, after the rollout)",
      "  ConfigMap a/one: Synced",
      "  all users who may read it can read values of Secrets at data.key; if you intend this, set spec.acknowledge:",
      "  [ReadableCopies]",
      "  FIELD     FROM                OWNED  MANAGERS",
      `  data.key  bucket/accessKeyID  yes    ${ours}`,
      "  and 33 more, see status.targets",
      "",
      "NOTES",
      "  no object matches spec.targets[2]",
      "",
      "ROLLOUT",
      "  step one: Deployment core",
      "  baseline: revision 3, of bucket/accessKeyID; the last rollout began 12h ago",
      "  pending for 10m: Rolling: 1 of 1 workloads is rolling out",
      "  WORKLOAD                  STEP  STATE    FOR  WAITS FOR",
      "  Deployment registry/core  one   Rolling  5m   1 of 3 replicas are updated",
      "",
      "CONDITIONS",
      "  TYPE   STATUS  REASON       SINCE  MESSAGE",
      "  Ready  False   KeyNotFound  10m    Secret registry/bucket has no key host",
      "",
      "EVENTS",
      "  AGE  TYPE     REASON       MESSAGE",
      "  2m   Warning  KeyNotFound  no key host",
      "",
      "WHAT TO DO",
      "  Forbidden: it may not; allow it with:",
      `  kubectl ${"x".repeat(200)}`,
    ]);
  });

  it("prints what a source reads from Vault, and the state of its connection", () => {
    const source = {
      source: "s3",
      kind: "VaultConnection",
      namespace: "vault",
      name: "main",
      optional: false,
      uses: [{ key: "accessKeyID" }],
      grants: { state: "NotFound" as const, names: [] },
    };
    const linesOf = (more: Pick<Explanation["sources"][number], "state" | "store" | "resourceVersion">) => {
      const lines = explanationText({ ...explanation, sources: [{ ...source, ...more }] }, NOW, WIDTH);
      return lines.slice(lines.indexOf("SOURCES") + 2, lines.indexOf("", lines.indexOf("SOURCES")));
    };
    const reads = "data kv/registry/s3";
    const ready = { status: "False" as const, reason: "VaultSealed", message: "Vault is sealed; unseal it" };
    const found = { state: "Found" as const, resourceVersion: "7" };
    assert.deepEqual(linesOf({ ...found, store: { product: "Vault", reads, ready, version: "1.21.4" } }), [
      "  s3      VaultConnection vault/main                                          7        accessKeyID (unknown)",
      "          reads data kv/registry/s3",
      "          Ready False, VaultSealed, Vault 1.21.4: Vault is sealed; unseal it",
      "          no SecretGrant there permits this binding to use it",
    ]);
    const isReady = { status: "True" as const, reason: "Connected", message: "it answers" };
    assert.match(
      linesOf({ ...found, store: { product: "Vault", reads, ready: isReady } }).join("\n"),
      /Ready True, Connected\n/,
    );
    assert.deepEqual(linesOf({ state: "NotFound", store: { product: "Vault", reads } }), [
      "  s3      VaultConnection vault/main                           not found  accessKeyID (unknown)",
      "          reads data kv/registry/s3",
      "          no SecretGrant there permits this binding to use it",
    ]);
  });

  it("prints whether the binding creates or adopts a target", () => {
    const headings = ([undefined, "Equal", "Any"] as const).flatMap((adopts) => {
      const made = explanation.targets.map((target) => ({ ...target, creates: true, ...(adopts && { adopts }) }));
      return explanationText({ ...explanation, targets: made }, NOW, WIDTH).filter((line) =>
        line.startsWith("TARGET ConfigMap"),
      );
    });
    assert.deepEqual(headings, [
      "TARGET ConfigMap (v1, selected, created by this binding, after the rollout)",
      "TARGET ConfigMap (v1, selected, created or adopted (Equal) by this binding, after the rollout)",
      "TARGET ConfigMap (v1, selected, created or adopted (Any) by this binding, after the rollout)",
    ]);
  });

  it("prints some of many workloads and namespaces, failed and waiting workloads first", () => {
    const of = (state: "Done" | "Failed" | "Waiting", count: number) =>
      Array.from({ length: count }, (_, at) => ({ ...WORKLOAD, name: `${state}-${at}`, state }));
    const workloads = [...of("Done", 900), ...of("Waiting", 99), ...of("Failed", 1)];
    const unknownNamespaces = Array.from({ length: 30 }, (_, at) => `team-${at}`);
    const pending = { firstChangeTime: "", reason: "Forbidden", message: "it may not", workloads };
    const rollout = { suspended: false, restarts: [], trackedValues: [], unknownNamespaces, pending };
    const lines = explanationText({ ...explanation, rollout }, NOW, WIDTH).map((line) => line.trim());
    const names = lines.flatMap((line) => /^Deployment registry\/(\S+)/.exec(line)?.[1] ?? []);
    assert.deepEqual(
      names,
      [...of("Waiting", 19), ...of("Failed", 1)].map(({ name }) => name),
    );
    assert.ok(lines.includes("and 980 more, see status.rollout.pending.workloads"));
    const listed = unknownNamespaces.slice(0, 10).join(", ");
    const printed = lines.slice(lines.findIndex((line) => line.startsWith("the workloads in these"))).join(" ");
    assert.ok(printed.startsWith(`the workloads in these namespaces are unknown: ${listed} and 20 more `), printed);
  });

  it("says that the status is outdated", () => {
    const of = (observedGeneration?: number) => {
      const binding = { ...BINDING, generation: 3, ...(observedGeneration && { observedGeneration }) };
      return explanationText({ ...explanation, binding }, NOW, WIDTH)[0];
    };
    assert.match(of(2) ?? "", /Ready \w+, \w+ \(outdated: of generation 2, the spec has generation 3\)$/);
    assert.doesNotMatch(of(3) ?? "", /outdated/);
  });

  it("omits empty sections, and prints what can't be read", () => {
    const { rollout: _, notes: __, ...rest } = explanation;
    const advice = { reason: "Synced", message: "nothing, the binding is in sync" };
    const lines = explanationText(
      {
        ...rest,
        account: { name: "ServiceAccount registry/inlay", state: "Unreadable", message: "you may not get it" },
        binding: { ...rest.binding, suspended: true, deleting: true },
        sources: [],
        targets: [],
        conditions: [],
        events: [],
        eventsUnreadable: "you may not list events in namespace registry",
        advice,
      },
      NOW,
      WIDTH,
    );
    assert.deepEqual(lines, [
      "SecretBinding registry/harbor-s3: not reconciled yet, suspended, being deleted",
      "",
      "ACCOUNT",
      "  ServiceAccount registry/inlay  you may not get it",
      "",
      "EVENTS",
      "  you may not list events in namespace registry",
      "",
      "WHAT TO DO",
      "  nothing, the binding is in sync",
    ]);
  });
});
