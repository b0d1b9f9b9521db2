/**
 * Writes what is generated around the chart: the CRDs in it, which are copies of apis/, and deploy/manifests, deploy/namespaced and
 * deploy/policies, which are rendered from it, and docs/reference/chart.md. Run by `npm run manifests`. test/unit/chart.test.ts checks that the files are current.
 */
import { readFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chart, helm, KUBERNETES } from "../test/helm/helm.ts";
import { chartPage } from "./chart-page.ts";

const root = join(import.meta.dirname, "..");

type Scope = "Cluster" | "Namespace";
/** The text of each file, by its path in the repository. */
export type Files = Map<string, string>;

/** The files of deploy/manifests and deploy/namespaced name these namespaces. */
const NAMESPACES: Record<Scope, string> = { Cluster: "inlay-system", Namespace: "registry" };
const FOLDERS: Record<Scope, string> = { Cluster: "manifests", Namespace: "namespaced" };

const REQUIRED = { namespace: { create: true } };
const OPTIONAL = {
  config: {
    reloader: { namespaces: ["*"] },
    notifications: [{ name: "ops", type: "Slack", url: { secret: { name: "inlay-notifications", key: "slack" } } }],
  },
  reloader: { bind: false },
  compositions: { enabled: true, namespaces: [] },
  accessFinalizers: { enabled: true },
  clusterWideWatches: { workloads: true, secrets: true },
  clusterAccess: true,
  policies: { authorAnnotation: true, reserveAccounts: true },
};

/** Everything that is generated. */
export async function generatedFiles(): Promise<Files> {
  const crds = (await readdir(join(root, "apis"))).filter((name) => name.endsWith(".yaml"));
  const copies = crds.map(
    async (name) => [`deploy/chart/files/crds/${name}`, await readFile(join(root, "apis", name), "utf8")] as const,
  );
  const [cluster, namespace] = await Promise.all([rendered("Cluster"), rendered("Namespace")]);
  const page = chartPage(await readFile(join(chart, "values.yaml"), "utf8"));
  return new Map([...(await Promise.all(copies)), ...cluster, ...namespace, ["docs/reference/chart.md", page]]);
}

async function rendered(scope: Scope): Promise<Files> {
  const isOptional = (source: string) => source.includes("/optional/");
  const [required, optional] = await Promise.all([
    templates({ scope, ...REQUIRED }, NAMESPACES[scope]),
    templates({ scope, ...OPTIONAL }, NAMESPACES[scope]),
  ]);
  const sources = [
    ...[...required].filter(([source]) => !isOptional(source)),
    ...[...optional].filter(([source]) => isOptional(source)),
  ];
  return new Map(
    sources
      .filter(([source]) => /^(manifests|namespaced|policies|shared)\//.test(source))
      .map(([source, objects]) => {
        const path = source.replace("shared/", `${FOLDERS[scope]}/`);
        // Helm does not install them.
        const text = objects.join("---\n").replace(/^ +helm\.sh\/resource-policy: keep\n/gm, "");
        // A page joins the files of deploy/namespaced for one kubectl apply.
        return [`deploy/${path}`, scope === "Namespace" ? `---\n${text}` : text] as const;
      }),
  );
}

/** The objects that Helm renders, by the path of their template, in the order of the template. */
async function templates(values: object, namespace: string): Promise<Map<string, string[]>> {
  const folder = await mkdtemp(join(tmpdir(), "inlay-chart-"));
  try {
    const file = join(folder, "values.json");
    await writeFile(file, JSON.stringify(values));
    const args = ["template", "inlay", chart, "--namespace", namespace, "--kube-version", KUBERNETES, "--values", file];
    const { stdout } = await helm(args);
    const objects = stdout.split("---\n# Source: inlay/templates/").slice(1);
    const bySource = Map.groupBy(objects, (text) => text.slice(0, text.indexOf("\n")));
    return new Map([...bySource].map(([source, all]) => [source, inOrder(source, all)]));
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Helm sorts objects by kind. A template has them in the order in which they are best read. */
function inOrder(source: string, objects: string[]): string[] {
  const template = readFileSync(join(chart, "templates", source), "utf8");
  const placeOf = (object: string) => {
    const [head = ""] = /^kind: .*\nmetadata:\n {2}name: .*$/m.exec(object) ?? [];
    return template.indexOf(head);
  };
  const texts = objects.map((object) => `${object.slice(source.length).trim()}\n`);
  return texts.toSorted((one, other) => placeOf(one) - placeOf(other));
}

if (import.meta.main) {
  for (const [path, text] of await generatedFiles()) await writeFile(join(root, path), text);
}
