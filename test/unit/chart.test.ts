/** The Helm chart: what it renders, which values it refuses, and the files that are generated from it. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { generatedFiles } from "../../deploy/render.ts";
import { installationOf } from "../../src/cli/config-file.ts";
import type { AnyObject } from "../controller/api.ts";
import { objectsOf } from "../controller/manifests.ts";
import { chart, HelmError, helm, KUBERNETES } from "../helm/helm.ts";

const root = join(import.meta.dirname, "..", "..");
const text = (path: string) => readFileSync(join(root, path), "utf8");

describe("the Helm chart", function () {
  this.timeout("1m");
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "inlay-chart-"));
  });
  after(() => rm(folder, { recursive: true }));

  async function render(values: object, namespace = "inlay-system"): Promise<AnyObject[]> {
    const file = join(folder, "values.json");
    await writeFile(file, JSON.stringify(values));
    const args = ["template", "inlay", chart, "-n", namespace, "--kube-version", KUBERNETES, "--values", file];
    return objectsOf((await helm(args)).stdout);
  }
  const names = (objects: AnyObject[], kind: string) =>
    objects.filter((each) => each.kind === kind).map(({ metadata }) => metadata.name);
  const find = (objects: AnyObject[], kind: string, name: string) =>
    objects.find((each) => each.kind === kind && each.metadata.name === name) ?? assert.fail(`no ${kind} ${name}`);
  const container = (objects: AnyObject[]) =>
    find(objects, "Deployment", "inlay-controller").spec.template.spec.containers[0];
  const configIn = (objects: AnyObject[]) => find(objects, "ConfigMap", "inlay-controller").data["config.yaml"];

  it("is the source of deploy/manifests, deploy/namespaced, deploy/policies and its reference: run npm run manifests", async () => {
    const files = await generatedFiles();
    for (const [path, expected] of files) assert.equal(text(path), expected, path);
    const folders = ["manifests", "namespaced", "policies", "chart/files/crds"];
    const all = folders.flatMap((each) => globSync(`deploy/${each}/**/*.yaml`, { cwd: root }));
    assert.deepEqual(
      all.filter((path) => !files.has(path)),
      [],
    );
  });

  it("has the version of Inlay, and passes helm lint", async () => {
    const { version } = JSON.parse(text("package.json"));
    const { version: ofChart, appVersion } = parse(text("deploy/chart/Chart.yaml"));
    assert.deepEqual([ofChart, appVersion], [version, version]);
    const { stdout } = await helm(["lint", "--strict", "--kube-version", KUBERNETES, chart]);
    assert.match(stdout, /1 chart\(s\) linted, 0 chart\(s\) failed/);
  });

  describe("refuses, in one line that names the value,", () => {
    const wrong: [title: string, values: object, says: string][] = [
      ["an unknown value", { replica: 1 }, "at '': additional properties 'replica' not allowed"],
      [
        "an unknown value in a group",
        { image: { name: "x" } },
        "at '/image': additional properties 'name' not allowed",
      ],
      ["an unknown scope", { scope: "All" }, "at '/scope': value must be one of 'Cluster', 'Namespace', 'None'"],
      ["a text for a number", { replicas: "two" }, "at '/replicas': got string, want integer"],
      ["a digest that is none", { image: { digest: "latest" } }, "at '/image/digest': 'latest' does not match pattern"],
      [
        "an unknown section of the configuration",
        { config: { vaults: {} } },
        "at '/config': additional properties 'vaults'",
      ],
      [
        "a limit of 0",
        { config: { rollouts: { maxConcurrent: 0 } } },
        "at '/config/rollouts/maxConcurrent': minimum: got 0",
      ],
      [
        "a rule without a condition",
        { config: { targets: { deny: [{}] } } },
        "at '/config/targets/deny/0': minProperties: got 0",
      ],
      [
        "an audience with a quote",
        { policies: { tokenAudiences: ["a'b"] } },
        "at '/policies/tokenAudiences/0': 'a\\'b' does not match",
      ],
      ["a port that is none", { debugPort: 65536 }, "at '/debugPort': maximum: got 65,536, want 65,535"],
      [
        "an argument without dashes",
        { extraArgs: ["controller"] },
        "at '/extraArgs/0': 'controller' does not match pattern",
      ],
    ];
    for (const [title, values, says] of wrong)
      it(title, async () => {
        const error = await render(values).then(
          () => assert.fail("Helm accepts it"),
          (failure: Error) => failure,
        );
        assert.ok(error instanceof HelmError);
        const lines = error.message.trim().split("\n");
        const places = lines.filter((line) => line.startsWith("- at "));
        assert.equal(places.length, 1, error.message);
        assert.ok(places[0]?.includes(says), error.message);
        assert.equal(lines.length, 3, error.message);
      });
  });

  it("refuses the ports of health and metrics for /debug", async () => {
    for (const debugPort of [8081, 8443])
      await assert.rejects(render({ debugPort }), /debugPort: 8081 and 8443 are the ports of .*; set another port\n/);
  });

  it("accepts the configuration with every field, as docs/reference/configuration.md shows it, and passes it on", async () => {
    const [, example = ""] = /```yaml in=configuration\n(.*?)```/s.exec(text("docs/reference/configuration.md")) ?? [];
    const { apiVersion: _, kind: __, ...config } = parse(example);
    assert.ok(Object.keys(config).length >= 7);
    const objects = await render({ config });
    const written = configIn(objects);
    assert.deepEqual(parse(written), parse(example));
    installationOf(written, "inlay-system");
  });

  it("restarts the controller for a new configuration, except for limits of rollouts", async () => {
    const annotations = async (config: object) =>
      find(await render({ config }), "Deployment", "inlay-controller").spec.template.metadata.annotations;
    assert.equal(await annotations({}), undefined);
    assert.equal(await annotations({ rollouts: { suspend: true } }), undefined);
    const [one, other] = [
      await annotations({ vault: { addresses: ["a"] } }),
      await annotations({ vault: { addresses: ["b"] } }),
    ];
    assert.notEqual(one["inlay.dev/configuration"], other["inlay.dev/configuration"]);
  });

  it("uses the namespace of the release everywhere, also in CEL expressions and in the default of a CRD", async () => {
    const objects = await render({ compositions: { enabled: true } }, "my-namespace");
    assert.doesNotMatch(JSON.stringify(objects), /inlay-system/);
    const variables = find(objects, "ValidatingAdmissionPolicy", "inlay-account-tokens").spec.variables;
    assert.equal(variables[0].expression, "'my-namespace'");
    assert.match(text("apis/bindingcompositions.yaml"), /default: inlay-system/);
    const crd = find(objects, "CustomResourceDefinition", "bindingcompositions.inlay.dev");
    assert.match(JSON.stringify(crd), /"default":"my-namespace"/);
  });

  it("has Helm, Flux and Argo CD keep the CRDs, the namespace and the digest key, if you do not switch this off", async () => {
    const KEEP = {
      "helm.sh/resource-policy": "keep",
      "kustomize.toolkit.fluxcd.io/prune": "disabled",
      "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    };
    const annotated = (objects: AnyObject[]) =>
      objects.filter(({ metadata }) => Object.keys(KEEP).some((key) => metadata.annotations?.[key] !== undefined));
    const crds = globSync("apis/*.yaml", { cwd: root }).flatMap((path) => objectsOf(text(path)));
    const expected = ["inlay-digest-key", "inlay-system", ...crds.map(({ metadata }) => metadata.name)];
    const kept = annotated(await render({ namespace: { create: true } }));
    assert.deepEqual(kept.map(({ metadata }) => metadata.name).sort(), expected.sort());
    for (const { metadata } of kept) assert.deepEqual(metadata.annotations, KEEP, metadata.name);
    const none = { namespace: { create: true }, crds: { keep: false }, digestKey: { keep: false } };
    assert.deepEqual(annotated(await render(none)), []);
    assert.deepEqual(names(await render({ crds: { install: false } }), "CustomResourceDefinition"), []);
    const { "helm.sh/resource-policy": _, ...byOthers } = KEEP;
    const files = globSync(["apis/*.yaml", "deploy/manifests/*.yaml", "deploy/namespaced/*.yaml"], { cwd: root });
    const shipped = annotated(files.flatMap((path) => objectsOf(text(path))));
    assert.deepEqual(new Set(shipped.map(({ metadata }) => metadata.name)), new Set(expected));
    for (const { metadata } of shipped) assert.deepEqual(metadata.annotations, byOthers, metadata.name);
  });

  it("has only namespaced objects with scope Namespace, unless a cluster admin wants more", async () => {
    const isForCluster = ({ kind, metadata }: AnyObject) => metadata.namespace === undefined && kind !== "Namespace";
    const values = { scope: "Namespace", config: { reloader: { namespaces: ["team-a"], jobs: true } } };
    const objects = await render(values, "team-a");
    assert.deepEqual(objects.filter(isForCluster), []);
    assert.ok(container(objects).args.includes("--watch-namespace=team-a"));
    assert.ok(names(objects, "RoleBinding").includes("inlay-reloader-jobs"));
    const more = (await render({ ...values, clusterAccess: true }, "team-a")).filter(isForCluster);
    assert.deepEqual(more.map(({ metadata }) => metadata.name).sort(), [
      "inlay-metrics-team-a",
      "inlay-sees-policies-team-a",
      "inlay-sees-policies-team-a",
    ]);
  });

  it("has no controller with scope None, but what releases with scope Namespace need", async () => {
    const objects = await render({ scope: "None" });
    const kinds = [
      "ClusterRole",
      "CustomResourceDefinition",
      "ValidatingAdmissionPolicy",
      "ValidatingAdmissionPolicyBinding",
    ];
    assert.deepEqual([...new Set(objects.map(({ kind }) => kind))].sort(), kinds);
  });

  it("binds the account for Reloader's annotations only in the namespaces of the configuration", async () => {
    const bindings = async (namespaces: string[], more = {}) =>
      (await render({ config: { reloader: { namespaces, ...more } } }))
        .filter(({ roleRef }) => roleRef?.kind === "ClusterRole" && /^inlay-reloader/.test(roleRef.name))
        .map(({ kind, metadata, roleRef, subjects }) => {
          assert.deepEqual(subjects, [{ kind: "ServiceAccount", name: "inlay-reloader", namespace: "inlay-system" }]);
          return `${kind} ${metadata.namespace ?? ""} ${roleRef.name}`;
        });
    assert.deepEqual(await bindings(["shop", "blog"]), [
      "RoleBinding shop inlay-reloader",
      "RoleBinding blog inlay-reloader",
    ]);
    assert.deepEqual(await bindings(["shop", "team-*"]), ["ClusterRoleBinding  inlay-reloader"]);
    assert.deepEqual(await bindings(["shop"], { jobs: true, runCronJobs: true }), [
      "RoleBinding shop inlay-reloader",
      "RoleBinding shop inlay-reloader-jobs",
      "RoleBinding shop inlay-reloader-cronjobs",
    ]);
    const none = await render({ config: { reloader: { namespaces: ["*"] } }, reloader: { bind: false } });
    assert.ok(!names(none, "ClusterRoleBinding").includes("inlay-reloader"));
    assert.ok(names(none, "ClusterRole").includes("inlay-reloader"));
  });

  it("allows the controller to read exactly the Secrets of its notifications", async () => {
    const receiver = (name: string, secret: string) => ({
      name,
      type: "Slack",
      url: { secret: { name: secret, key: "url" } },
    });
    const objects = await render({
      config: { notifications: [receiver("a", "two"), receiver("b", "one"), receiver("c", "two")] },
    });
    assert.deepEqual(find(objects, "Role", "inlay-notifications").rules[0].resourceNames, ["one", "two"]);
  });

  it("passes settings of the pods on", async () => {
    const digest = `sha256:${"0".repeat(64)}`;
    const objects = await render({
      image: {
        repository: "example.com/inlay",
        tag: "9",
        digest,
        pullPolicy: "Always",
        pullSecrets: [{ name: "pull" }],
      },
      replicas: 3,
      podLabels: { team: "a" },
      podAnnotations: { note: "b" },
      nodeSelector: { disk: "fast" },
      tolerations: [{ operator: "Exists" }],
      affinity: { podAffinity: {} },
      priorityClassName: "high",
      topologySpreadConstraints: [],
      resources: { limits: { memory: "2Gi" } },
      log: { level: "debug", format: "text" },
      debugPort: 6060,
      extraArgs: ["--concurrency=64", "--pod-name=a, b: #"],
      extraEnv: [{ name: "HTTPS_PROXY", value: "http://proxy" }],
    });
    const { replicas, template } = find(objects, "Deployment", "inlay-controller").spec;
    const { image, imagePullPolicy, args, env, resources } = container(objects);
    assert.deepEqual(
      [replicas, image, imagePullPolicy, env, resources.limits.memory],
      [3, `example.com/inlay@${digest}`, "Always", [{ name: "HTTPS_PROXY", value: "http://proxy" }], "2Gi"],
    );
    assert.deepEqual(args.slice(-5), [
      "--log-level=debug",
      "--log-format=text",
      "--debug-port=6060",
      "--concurrency=64",
      "--pod-name=a, b: #",
    ]);
    assert.deepEqual(template.metadata, {
      labels: { "app.kubernetes.io/name": "inlay", team: "a" },
      annotations: { note: "b" },
    });
    const { spec } = template;
    assert.deepEqual(
      [
        spec.nodeSelector,
        spec.tolerations,
        spec.affinity,
        spec.priorityClassName,
        spec.topologySpreadConstraints,
        spec.imagePullSecrets,
      ],
      [{ disk: "fast" }, [{ operator: "Exists" }], { podAffinity: {} }, "high", undefined, [{ name: "pull" }]],
    );
    assert.equal(container(await render({ image: { tag: "9" } })).image, "inlay:9");
  });

  it("has optional parts, each behind its value", async () => {
    const count = async (values: object) =>
      (await render(values)).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    const byDefault = await count({});
    const added = async (values: object) => (await count(values)).filter((each) => !byDefault.includes(each));
    const removed = async (values: object) => {
      const present = await count(values);
      return byDefault.filter((each) => !present.includes(each));
    };
    assert.deepEqual(await added({ serviceMonitor: { enabled: true } }), ["ServiceMonitor inlay"]);
    assert.deepEqual(await added({ clusterWideWatches: { secrets: true } }), ["ClusterRole inlay-watches-secrets"]);
    assert.deepEqual(await added({ clusterWideWatches: { workloads: true } }), ["ClusterRole inlay-watches-workloads"]);
    assert.deepEqual(await added({ accessFinalizers: { enabled: true } }), [
      "ClusterRole inlay-access",
      "ValidatingAdmissionPolicy inlay-access",
      "ValidatingAdmissionPolicyBinding inlay-access",
    ]);
    assert.deepEqual(await added({ namespace: { create: true } }), ["Namespace inlay-system"]);
    assert.equal((await added({ policies: { authorAnnotation: true } })).length, 4);
    assert.equal((await added({ policies: { reserveAccounts: true } })).length, 2);
    assert.ok((await added({ compositions: { enabled: true } })).includes("ClusterRoleBinding inlay-compositions"));
    assert.deepEqual(await removed({ podDisruptionBudget: { enabled: false } }), [
      "PodDisruptionBudget inlay-controller",
    ]);
    assert.deepEqual((await removed({ networkPolicy: { enabled: false } })).sort(), [
      "NetworkPolicy inlay-controller",
      "NetworkPolicy inlay-test",
    ]);
    const userRoles = await removed({ userRoles: false });
    assert.equal(userRoles.length, 6);
    assert.ok(!userRoles.includes("ClusterRole inlay-metrics-reader"), "which Prometheus needs, not a user");
    assert.equal((await removed({ policies: { install: false } })).length, 20);
  });

  it("contains the alerts of its files in a PrometheusRule", async () => {
    const values = { prometheusRule: { enabled: true, labels: { release: "a" } } };
    const alerts = "deploy/chart/files/alerts.yaml";
    const { metadata, spec } = find(await render(values), "PrometheusRule", "inlay");
    assert.equal(metadata.labels.release, "a");
    assert.deepEqual(spec, parse(text(alerts)));
    const runbookUrl = "https://git.example.com/inlay/blob/v1/docs/runbooks.md";
    const linked = find(await render({ prometheusRule: { enabled: true, runbookUrl } }), "PrometheusRule", "inlay");
    const links = JSON.stringify(spec).replaceAll('"runbook_url":"docs/runbooks.md', `"runbook_url":"${runbookUrl}`);
    assert.deepEqual(linked.spec, JSON.parse(links));
    assert.equal(links.split(runbookUrl).length, links.split('"alert":').length);
  });

  it("lets Prometheus scrape each replica once, over HTTPS as its account", async () => {
    const serviceMonitor = { enabled: true, labels: { release: "a" }, interval: "30s" };
    const objects = await render({ serviceMonitor });
    const { metadata, spec } = find(objects, "ServiceMonitor", "inlay");
    assert.equal(metadata.labels.release, "a");
    const [endpoint] = spec.endpoints;
    assert.deepEqual([endpoint.port, endpoint.scheme, endpoint.interval], ["metrics", "https", "30s"]);
    const selected = objects.filter(
      ({ kind, metadata: { labels } }) =>
        kind === "Service" && labels["app.kubernetes.io/name"] === spec.selector.matchLabels["app.kubernetes.io/name"],
    );
    const [{ regex }] = endpoint.relabelings;
    assert.deepEqual(
      selected.map(({ metadata: { name } }) => name).filter((name) => new RegExp(`^(${regex})$`).test(name)),
      ["inlay-metrics"],
    );
    assert.ok(names(objects, "ClusterRole").includes("inlay-metrics-reader"));
  });

  it("contains the dashboard of its files in a ConfigMap for Grafana", async () => {
    const values = { dashboard: { enabled: true } };
    const file = "deploy/chart/files/dashboard.json";
    const { metadata, data } = find(await render(values), "ConfigMap", "inlay-dashboard");
    assert.equal(metadata.labels.grafana_dashboard, "1");
    assert.deepEqual(JSON.parse(data["inlay.json"]), JSON.parse(text(file)));
  });

  it("keeps Flux from replacing variables in it, by an annotation on what contains ${", async () => {
    const enabled = { enabled: true };
    const objects = await render({ dashboard: enabled, prometheusRule: enabled, serviceMonitor: enabled });
    const shipped = globSync("deploy/{manifests,namespaced,policies}/**/*.yaml", { cwd: root });
    const isAnnotated = ({ metadata }: AnyObject) =>
      metadata.annotations?.["kustomize.toolkit.fluxcd.io/substitute"] === "disabled";
    const containing = [...objects, ...shipped.flatMap((path) => objectsOf(text(path)))].filter((object) =>
      JSON.stringify(object).includes("${"),
    );
    assert.ok(names(containing, "ConfigMap").includes("inlay-dashboard"));
    for (const object of containing) assert.ok(isAnnotated(object), `${object.kind} ${object.metadata.name}`);
  });
});
