/** Reads of the configuration file: the sections, and the errors for its mistakes. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { restartLimitOf } from "../../../src/api/installation.ts";
import { installationOf, loadInstallation, RELOADER_FIELDS } from "../../../src/cli/config-file.ts";

const HEAD = "apiVersion: config.inlay.dev/v1alpha1\nkind: ControllerConfiguration\n";
const of = (text: string) => installationOf(HEAD + text, "inlay-system");
const harbor = { group: "goharbor.io", kind: "HarborCluster" };
const none = { paths: [] };
const VAULT = new URL("https://vault.vault.svc:8200");
const root = join(import.meta.dirname, "..", "..", "..");

describe("the configuration file", () => {
  it("may be empty or missing", () => {
    for (const installation of [of(""), of("targets: {}"), loadInstallation(undefined, "inlay-system")]) {
      assert.equal(installation.refusal(harbor, "team", none), undefined);
      assert.ok(installation.closedNamespace("kube-system") && installation.closedNamespace("inlay-system"));
      assert.equal(installation.requires("ReadableCopies"), false);
      assert.deepEqual(installation.rollouts, { suspend: false });
      assert.deepEqual(restartLimitOf(installation.rollouts), { max: 5, window: "10m", windowMs: 600_000 });
      assert.equal(installation.reloader, undefined);
      assert.deepEqual(installation.notifications, []);
      assert.equal(installation.vaultAddresses.refusal(VAULT)?.reason, "ForbiddenAddress");
    }
  });

  it("sets the open namespaces, the denied and allowed targets, and the required acknowledgements", () => {
    const installation = of(`
allowSystemNamespaces: [kube-system]
targets:
  deny:
    - { apiGroups: [apps], message: not those }
  allow:
    - { namespaces: ["team-*"], paths: [spec] }
requireAcknowledgement: [ReadableCopies]
rollouts: { suspend: true, maxConcurrent: 50, maxConcurrentPerNamespace: 5, maxRestarts: 3, maxRestartsWindow: 1h }
reloader: { namespaces: ["team-*", shop] }
vault: { addresses: ["vault.vault.svc:8200"] }
`);
    assert.equal(installation.closedNamespace("kube-system"), undefined);
    const deployment = { group: "apps", kind: "Deployment" };
    assert.match(installation.refusal(deployment, "team-a", none)?.message ?? "", /not those/);
    assert.equal(installation.refusal(harbor, "team-a", none), undefined);
    assert.equal(installation.refusal(harbor, "other", none)?.reason, "ForbiddenNamespace");
    assert.ok(installation.requires("ReadableCopies"));
    const limits = { maxConcurrent: 50, maxConcurrentPerNamespace: 5, maxRestarts: 3, maxRestartsWindow: "1h" };
    assert.deepEqual(installation.rollouts, { suspend: true, ...limits });
    assert.deepEqual(restartLimitOf(installation.rollouts), { max: 3, window: "1h", windowMs: 3_600_000 });
    assert.deepEqual(installation.reloader, {
      namespaces: ["team-*", "shop"],
      debounce: "500ms",
      autoReloadAll: false,
      jobs: false,
    });
    assert.equal(installation.vaultAddresses.refusal(VAULT), undefined);
  });

  it("limits no restarts with maxRestarts: Unlimited", () =>
    assert.equal(restartLimitOf(of("rollouts: { maxRestarts: Unlimited }").rollouts), undefined));

  const mistakes: [text: string, says: RegExp][] = [
    ["target: {}", /^target: .*targets/],
    ["targets: { denied: [] }", /^targets\.denied: .*deny, allow$/],
    ["targets: { deny: [{ kind: [Pod] }] }", /^targets\.deny\[0\]\.kind: .*kinds/],
    ["targets: { allow: [{ message: x, kinds: [Pod] }] }", /^targets\.allow\[0\]\.message: /],
    ["targets: { deny: [{}] }", /^targets\.deny\[0\]: .*apiGroups, kinds, namespaces, paths$/],
    ["targets: { deny: [{ message: x }] }", /^targets\.deny\[0\]: .*apiGroups, /],
    ["targets: { deny: [{ kinds: [] }] }", /^targets\.deny\[0\]\.kinds: .*empty/],
    ["targets: { deny: [{ kinds: Pod }] }", /^targets\.deny\[0\]\.kinds: must be a list$/],
    ["targets: { deny: [{ kinds: [1] }] }", /^targets\.deny\[0\]\.kinds\[0\]: .*string/],
    ["targets: { deny: [{ paths: ['spec..a'] }] }", /^targets\.deny\[0\]\.paths\[0\]: path spec\.\.a, column 6: /],
    ["targets: { deny: [{ kinds: [Pod], message: 7 }] }", /^targets\.deny\[0\]\.message: .*string/],
    ["targets: { deny: {} }", /^targets\.deny: must be a list$/],
    ["targets: { allow: [] }", /^targets\.allow: .*empty/],
    ["targets: { allow: }", /^targets\.allow: must be a list$/],
    ["targets:", /^targets: must be an object$/],
    ["targets: [deny]", /^targets: must be an object$/],
    ["allowSystemNamespaces: kube-system", /^allowSystemNamespaces: must be a list$/],
    ["allowSystemNamespaces: [default]", /^allowSystemNamespaces: default is not a closed namespace/],
    ["requireAcknowledgement: true", /^requireAcknowledgement: must be a list$/],
    ["requireAcknowledgement: [Readable]", /^requireAcknowledgement\[0\]: must be ReadableCopies$/],
    ["vault: { address: x }", /^vault\.address: .*addresses/],
    ["vault: { addresses: x }", /^vault\.addresses: must be a list$/],
    ["vault: { addresses: [vault, 7] }", /^vault\.addresses\[1\]: .*string/],
    ["vault: { addresses: [vault, 'https://vault/v1'] }", /^vault\.addresses\[1\]: /],
    ["rollouts:", /^rollouts: must be an object$/],
    ["rollouts: { suspended: true }", /^rollouts\.suspended: .*suspend\b/],
    ["rollouts: { suspend: yes please }", /^rollouts\.suspend: must be true or false$/],
    ["rollouts: { suspend: }", /^rollouts\.suspend: must be true or false$/],
    ...["0", "-1", "1.5", "five", "", "9007199254740993"].map((limit): [string, RegExp] => [
      `rollouts: { maxConcurrent: ${limit} }`,
      /^rollouts\.maxConcurrent: .*whole number/,
    ]),
    ["rollouts: { maxConcurrentPerNamespace: 0 }", /^rollouts\.maxConcurrentPerNamespace: .*whole number/],
    ...["0", "101", "1.5", "unlimited", ""].map((limit): [string, RegExp] => [
      `rollouts: { maxRestarts: ${limit} }`,
      /^rollouts\.maxRestarts: .*from 1 to 100, or Unlimited$/,
    ]),
    ...["10", "999ms", "25h", "ten minutes", ""].map((window): [string, RegExp] => [
      `rollouts: { maxRestartsWindow: ${window} }`,
      /^rollouts\.maxRestartsWindow: .*a duration from 1s to 24h, such as 10m$/,
    ]),
    ["allowSystemNamespaces: []\nallowSystemNamespaces: []", /unique/],
    ["allowSystemNamespaces: [", /line 3/],
  ];
  for (const [text, says] of mistakes) {
    it(`rejects ${text.replace("\n", ", ")}`, () => assert.throws(() => of(text), { message: says }));
  }

  it("rejects what is no YAML in one line, without quoting the file", () => {
    const secret = "https://hooks.example.com/T0/s3cr3t";
    assert.throws(
      () => installationOf(`notifications: [{url: ${secret}`, "x"),
      ({ message }: Error) =>
        /^not valid YAML: .* at line 1, .*; correct it$/.test(message) && !message.includes("s3cr3t"),
    );
  });

  it("rejects another kind or apiVersion", () => {
    assert.throws(() => installationOf("", "x"), /the file is empty; write at least apiVersion: config\.inlay\.dev/);
    for (const text of ["[]", "text"]) assert.throws(() => installationOf(text, "x"), /must be an object/);
    assert.throws(() => installationOf("kind: ControllerConfiguration", "x"), /apiVersion: must be config\.inlay\.dev/);
    assert.throws(() => installationOf("apiVersion: config.inlay.dev/v1alpha1\nkind: Pod", "x"), /kind: must be Contr/);
  });

  it("is named in the error when it can't be read", () => {
    assert.throws(
      () => loadInstallation("/nowhere/config.yaml", "x"),
      /the configuration \/nowhere\/config\.yaml: there is no such file; correct the path/,
    );
  });

  it("has in deploy/manifests the default values, and in the documentation every field", async () => {
    const shipped = await readFile(join(root, "deploy", "manifests", "35-config.yaml"), "utf8");
    const [configMap] = parseAllDocuments(shipped).map((each) => each.toJS());
    installationOf(configMap.data["config.yaml"], "inlay-system");
    const page = await readFile(join(root, "docs", "reference", "configuration.md"), "utf8");
    const [, example = ""] = /```yaml in=configuration\n(apiVersion: config\.inlay\.dev.*?)```/s.exec(page) ?? [];
    const installation = installationOf(example, "inlay-system");
    assert.ok(installation.requires("ReadableCopies"));
    const rollouts = ["suspend", "maxConcurrent", "maxConcurrentPerNamespace", "maxRestarts", "maxRestartsWindow"];
    assert.deepEqual(Object.keys(installation.rollouts), rollouts);
    const { template = "", ...receiver } = installation.notifications[0] ?? assert.fail();
    assert.deepEqual(receiver, {
      name: "ops",
      type: "Slack",
      url: { secret: "inlay-notifications", key: "slack" },
      insecure: false,
      events: ["Restarted", "RestartFailed"],
      namespaces: ["*"],
    });
    assert.match(template, /\{\{message\}\}/);
    assert.deepEqual(Object.keys(installation.reloader ?? {}).sort(), [...RELOADER_FIELDS].sort());
    for (const field of [
      "addresses",
      "autoReloadAll",
      "allowSystemNamespaces",
      "deny",
      "allow",
      "apiGroups",
      "kinds",
      "namespaces",
      "paths",
      "message",
    ]) {
      assert.match(example, new RegExp(`\\b${field}:`));
    }
  });
});
