/** Checks the YAML of the pages: on an API server, by the loader of the configuration, or by kustomize. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { mkdir, mkdtemp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { installationOf } from "../../src/cli/config-file.ts";
import { validate } from "../../src/validate/validate.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { applyObjects, objectsOf, pathOf } from "../controller/manifests.ts";
import { chart, helm, KUBERNETES } from "../helm/helm.ts";
import { type Block, placeOf, withFragment } from "./doc-blocks.ts";
import { root } from "./pages.ts";

/** Kinds that no control plane of the tests serves: their objects are only parsed. */
const OTHER_KINDS = [
  "AppProject",
  "Application",
  "Kustomization",
  "HelmRelease",
  "PrometheusRule",
  "ServiceMonitor",
  "ScrapeConfig",
  "Policy",
];
/** Files of other programs: fragments of them are only parsed. */
const OTHER_FILES = ["prometheus", "vault-values"];
const KUSTOMIZATION = "kustomize.config.k8s.io/v1beta1";

const binding = {
  apiVersion: "inlay.dev/v1alpha1",
  kind: "SecretBinding",
  metadata: { name: "example" },
  spec: {
    sources: [{ secret: { name: "bucket" } }],
    targets: [
      {
        apiVersion: "goharbor.io/v1beta1",
        kind: "HarborCluster",
        name: "harbor",
        fields: [{ path: "spec.storage.spec.s3.accesskey", from: { source: "bucket", key: "accessKeyID" } }],
      },
    ],
  },
};
/** The objects that fragments are set into. */
const MINIMAL: Readonly<Record<string, object>> = {
  SecretBinding: binding,
  SecretGrant: {
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretGrant",
    metadata: { name: "example" },
    spec: { from: [{ namespace: "registry" }], to: [{ kind: "Secret", name: "bucket" }] },
  },
  VaultConnection: {
    apiVersion: "inlay.dev/v1alpha1",
    kind: "VaultConnection",
    metadata: { name: "vault" },
    spec: { address: "https://vault.vault.svc:8200", auth: { kubernetes: { role: "inlay" } }, paths: ["kv/*"] },
  },
  BindingComposition: {
    apiVersion: "inlay.dev/v1alpha1",
    kind: "BindingComposition",
    metadata: { name: "example" },
    spec: {
      for: { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster" },
      bindings: [{ name: "s3", base: { spec: binding.spec }, patches: [] }],
    },
  },
  Deployment: {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "example" },
    spec: {
      selector: { matchLabels: { app: "example" } },
      template: { metadata: { labels: { app: "example" } }, spec: { containers: [{ name: "app", image: "app" }] } },
    },
  },
};

export class YamlCheck {
  readonly #api = new Api(controlPlane());
  readonly #crds = new Map<string, AnyObject>();
  readonly #namespace: string;

  /** All objects are checked in the one namespace, whatever theirs is. */
  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  /** Installs the CRDs of samples and tests for the kinds that the blocks have. */
  async installKinds(blocks: readonly Block[]): Promise<void> {
    const files = globSync(
      ["test/demand/crds/*.yaml", "{samples,compositions}/**/crd/*.yaml", "compositions/**/*crd*.yaml"],
      { cwd: root },
    );
    const texts = await Promise.all(files.map((file) => readFile(join(root, file), "utf8")));
    for (const crd of texts.flatMap(objectsOf)) {
      if (crd.kind === "CustomResourceDefinition") this.#crds.set(`${crd.spec.group} ${crd.spec.names.kind}`, crd);
    }
    const kinds = blocks
      .flatMap(({ text }) => objectsIn(text))
      .map(({ apiVersion = "", kind }) => `${apiVersion.split("/")[0]} ${kind}`);
    const needed = [...this.#crds].filter(([kind]) => kinds.includes(kind)).map(([, crd]) => crd);
    await Promise.all(needed.map((crd) => applyObjects(this.#api, [crd])));
  }

  async check(block: Block): Promise<void> {
    const place = placeOf(block);
    if (place === undefined) await Promise.all(objectsIn(block.text).map((object) => this.#checkObject(object, block)));
    else if (place === "configuration") this.#checkConfiguration(block);
    else if (place === "values") await checkValues(block.text);
    else if (place === "kustomization") await this.#checkKustomization(block.text);
    else if (!OTHER_FILES.includes(place)) await this.#checkFragment(block, place);
  }

  async #checkObject(object: AnyObject, { at, text }: Block): Promise<void> {
    const { apiVersion, kind } = object;
    assert.ok(apiVersion && kind, `${at}: has no apiVersion and kind; a fragment needs in=… behind \`\`\`yaml`);
    if (apiVersion === KUSTOMIZATION) return this.#checkKustomization(text);
    if (apiVersion.startsWith("config.inlay.dev/")) {
      installationOf(text, "inlay-system");
      return;
    }
    if (!OTHER_KINDS.includes(kind)) await this.#dryRun(object);
    if (apiVersion.startsWith("inlay.dev/")) await this.#validate(object, at);
  }

  /** Also checks what the API server does not know, such as templates and the fields of targets. */
  async #validate(object: AnyObject, at: string): Promise<void> {
    const crds = [...this.#crds.values()].map((crd, n) => ({ name: `${n}`, text: JSON.stringify(crd) }));
    const files = [{ name: at, text: JSON.stringify(object) }];
    const { errors } = await validate({ files, crds, namespace: this.#namespace });
    assert.deepEqual(
      errors.filter(({ severity }) => severity === "error"),
      [],
    );
  }

  /** Server-side apply refuses fields that the schema lacks. */
  async #dryRun(object: AnyObject): Promise<void> {
    const path = await pathOf(this.#api, { ...object, metadata: { namespace: this.#namespace, ...object.metadata } });
    const own = path.replace(/\/namespaces\/[^/]+\//, `/namespaces/${this.#namespace}/`);
    const { namespace: _, ...metadata } = object.metadata;
    await this.#api.dryRun.apply(own, { ...object, metadata }, "docs", true);
  }

  #checkConfiguration({ text }: Block): void {
    const head = text.includes("apiVersion:")
      ? ""
      : "apiVersion: config.inlay.dev/v1alpha1\nkind: ControllerConfiguration\n";
    installationOf(head + text, "inlay-system");
  }

  /** In a folder beside `deploy`, as the pages of installation have it. */
  async #checkKustomization(text: string): Promise<void> {
    const folder = await mkdtemp(join(controlPlane().folder, "kustomization-"));
    for (const each of ["apis", "deploy"]) await symlink(join(root, each), join(folder, each));
    await mkdir(join(folder, "overlay"));
    const base = /^resources:/m.test(text) ? "" : "resources: [../deploy]\n";
    await writeFile(join(folder, "overlay", "kustomization.yaml"), base + text);
    await controlPlane().kubectl("kustomize", join(folder, "overlay"));
  }

  async #checkFragment({ at, text }: Block, place: string): Promise<void> {
    const [, kind = "", path = ""] = /^([A-Za-z]+)\.(.+)$/.exec(place) ?? [];
    const minimal = MINIMAL[kind];
    assert.ok(minimal, `${at}: in=${place}: the kinds with fragments are ${Object.keys(MINIMAL).join(", ")}`);
    for (const fragment of objectsIn(text)) await this.#dryRun(withFragment(minimal, path, fragment) as AnyObject);
  }
}

/** The documents of a text. Throws where it is no YAML. */
function objectsIn(yaml: string): AnyObject[] {
  const documents = parseAllDocuments(yaml, { prettyErrors: true });
  for (const { errors } of documents) assert.deepEqual(errors, []);
  return documents.map((document) => document.toJS()).filter((each) => each !== null);
}

/** Helm refuses values that the chart does not know. */
async function checkValues(text: string): Promise<void> {
  const folder = await mkdtemp(join(controlPlane().folder, "values-"));
  await writeFile(join(folder, "values.yaml"), text);
  await helm(["template", "inlay", chart, "--kube-version", KUBERNETES, "--values", join(folder, "values.yaml")]);
}
