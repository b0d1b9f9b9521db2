/** The compositions for Vault in compositions/: the bindings for each form of a claim's fields. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import type { CompositionSpec } from "../../../src/api/composition.ts";
import { VaultAddresses } from "../../../src/api/vault-addresses.ts";
import { parseDuration } from "../../../src/apimachinery/duration.ts";
import type { JsonObject } from "../../../src/apimachinery/objects.ts";
import type { ClaimKind } from "../../../src/composition/allowed-paths.ts";
import { claimOf, composed, specOf } from "./compositions.ts";

const folder = join(import.meta.dirname, "..", "..", "..", "compositions");
const kindOf = (group: string, kind: string): ClaimKind => ({ group, kind, namespaced: true });

/** The spec of the composition of a folder. */
async function shipped(name: string, change = (text: string) => text): Promise<CompositionSpec> {
  const { spec } = parse(change(await readFile(join(folder, name, "composition.yaml"), "utf8")));
  return { ...specOf(), ...spec };
}

describe("the composition for VaultStaticSecrets", () => {
  let composition: CompositionSpec;
  before(async () => {
    composition = await shipped("vault-static-secret");
  });

  /** The sources and targets of the binding for a claim. */
  function made(spec: JsonObject, transformation?: JsonObject) {
    const destination = { name: "app", create: true, overwrite: false, ...(transformation && { transformation }) };
    const fields = {
      metadata: { generation: 1 },
      spec: { mount: "kv", type: "kv-v2", path: "app", destination, ...spec },
    };
    const { sources, targets } = composed(
      composition,
      claimOf(fields),
      kindOf("secrets.hashicorp.com", "VaultStaticSecret"),
    ).spec as { sources: [{ vault: JsonObject }]; targets: [{ fields: [{ from: JsonObject }] }] };
    return { vault: sources[0].vault, from: targets[0].fields[0].from };
  }

  const intervals: Record<string, string> = {
    "0s": "1m",
    "0.0h": "1m",
    "0.5s": "1s",
    "0.01m": "1s",
    "0.0166m": "1s",
    "0.017m": "0.017m",
    "0.1m": "0.1m",
    "0.0002h": "1s",
    "0.00027h": "1s",
    "0.0003h": "0.0003h",
    "1s": "1s",
    "001h": "001h",
    "24h": "24h",
    "24.1h": "24h",
    "720h": "24h",
    "0100h": "24h",
    "1439m": "1439m",
    "1440m": "1440m",
    "1440.5m": "24h",
    "1441m": "24h",
    "1499m": "24h",
    "10000m": "24h",
    "86400s": "86400s",
    "86401s": "24h",
    "86500.5s": "24h",
    "99999s": "24h",
    "100000s": "24h",
  };
  for (const [refreshAfter, refresh] of Object.entries(intervals)) {
    it(`reads every ${refresh} for refreshAfter: ${refreshAfter}`, () => {
      assert.equal(made({ refreshAfter }).vault["refresh"], refresh);
      const ms = parseDuration(refresh);
      assert.ok(ms >= 1_000 && ms <= parseDuration("24h"));
    });
  }

  it("accepts slashes around mount and path, and drops a version that is 0 or of an engine without versions", () => {
    const data = (spec: JsonObject) => made(spec).vault["data"];
    assert.deepEqual(data({ mount: "kv/", path: "/team/app" }), { kv: 2, mount: "kv", path: "team/app" });
    assert.deepEqual(data({ mount: "/kv", path: "team/app/", version: 3 }), {
      kv: 2,
      mount: "kv",
      path: "team/app",
      version: 3,
    });
    assert.deepEqual(data({ version: 0 }), { kv: 2, mount: "kv", path: "app" });
    assert.deepEqual(data({ type: "kv-v1", version: 3 }), { kv: 1, mount: "kv", path: "app" });
  });

  it("treats an empty list of includes or excludes as missing", () => {
    assert.deepEqual(made({}, { includes: [], excludes: ["^a", "[]"] }).from, {
      source: "vault",
      exclude: ["^a", "[]"],
    });
    assert.deepEqual(made({}, { includes: ["^a"], excludes: [] }).from, { source: "vault", include: ["^a"] });
  });
});

it("the composition for VaultSyncStatuses accepts slashes around the engine and the path", async () => {
  const composition = await shipped("vault-sync-status");
  const spec = { deployName: "web", deployNamespace: "team", secretEngine: "kv/", secretPath: "/team/web" };
  const { sources } = composed(composition, claimOf({ spec }), kindOf("stable.example.com", "VaultSyncStatus"))
    .spec as { sources: [{ vault: JsonObject }] };
  assert.deepEqual(sources[0].vault["metadata"], { mount: "kv", path: "team/web" });
});

describe("the composition for Vault's service registration, changed as its page says", () => {
  const forms: [what: string, changes: [string, string][], podIP: string, address: string, listed: string][] = [
    ["for IPv4", [], "10.244.0.7", "https://10.244.0.7:8200", "10.244.0.0/16:8200"],
    ["for IPv6", [["%s", "[%s]"]], "fd00::7", "https://[fd00::7]:8200", "[fd00::/8]:8200"],
    ["without TLS", [["https", "http"]], "10.244.0.7", "http://10.244.0.7:8200", "http://10.244.0.0/16:8200"],
    [
      "for names of pods",
      [
        ["status.podIP", "metadata.name"],
        ["%s", "%s.vault-internal.vault.svc"],
      ],
      "10.244.0.7",
      "https://vault-0.vault-internal.vault.svc:8200",
      "*.vault-internal.vault.svc:8200",
    ],
  ];
  for (const [what, changes, podIP, address, listed] of forms) {
    it(`reads an address that the configuration can list, ${what}`, async () => {
      const change = (text: string) => changes.reduce((changed, [from, to]) => changed.replace(from, to), text);
      const composition = await shipped("vault-service-registration", (text) =>
        text.replace(/variables: .*\n.*\n.*fmt: "[^"]*"/, change),
      );
      const claim = claimOf(
        { status: { podIP } },
        { apiVersion: "v1", kind: "Pod", name: "vault-0", namespace: "vault" },
      );
      const { sources } = composed(composition, claim, kindOf("", "Pod")).spec as { sources: [{ vault: JsonObject }] };
      assert.deepEqual(sources[0].vault["health"], { address });
      assert.equal(new VaultAddresses([listed]).refusal(new URL(address)), undefined);
    });
  }
});
