/**
 * The layers of src/, and the check that imports go only downwards. Run by `npm run lint`. A file imports files of its own layer
 * and of lower layers. Layers in one line do not import each other. docs/architecture.md describes each layer.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative, sep } from "node:path";

/** From the top to the bottom. `main` is the entry point. */
export const LAYERS: readonly (readonly string[])[] = [
  ["main"],
  ["cli"],
  ["manager"],
  ["rbac", "init", "validate", "diff", "migrate"],
  ["render"],
  ["actions"],
  ["controllers", "explain"],
  ["pipeline"],
  ["rollout"],
  ["targets"],
  ["sources"],
  ["vault"],
  ["apply"],
  ["cache"],
  ["notifications"],
  ["observability"],
  ["kube"],
  ["composition"],
  ["transform", "workloads", "workqueue"],
  ["api"],
  ["apimachinery"],
];

/** Packages that only some layers may import. */
const PACKAGES: readonly { layers: readonly string[]; packages: RegExp }[] = [
  { layers: ["kube"], packages: /^@kubernetes\/client-node(\/|$)/ },
  { layers: ["kube", "vault", "notifications"], packages: /^undici(\/|$)/ },
];

const root = join(import.meta.dirname, "..");

/** The modules that a file imports, with types and dynamic imports. */
function importsOf(text: string): string[] {
  return [...text.matchAll(/\b(?:from|import)\s*\(?\s*["']([^"']+)["']/g)].map(([, module = ""]) => module);
}

const layerOf = (path: string): string => path.replace(/\.ts$/, "").split("/")[0] ?? "";
const depthOf = (layer: string): number => LAYERS.findIndex((each) => each.includes(layer));

/** The forbidden imports of the file at `path`, relative to src/, one line for each. */
export function violations(path: string, text: string): string[] {
  const layer = layerOf(path);
  if (depthOf(layer) < 0) return [`src/${path}: ${layer} is no layer; add it to LAYERS in lint/layers.ts`];
  return importsOf(text).flatMap((module): string[] => {
    const rule = PACKAGES.find(({ packages }) => packages.test(module));
    if (rule !== undefined && !rule.layers.includes(layer))
      return [`src/${path}: only ${rule.layers.map((each) => `${each}/`).join(" and ")} may import ${module}`];
    if (!module.startsWith(".")) return [];
    const imported = posix.join(posix.dirname(path), module);
    const other = layerOf(imported);
    if (other === layer || depthOf(other) > depthOf(layer)) return [];
    return [`src/${path} imports ${imported}: ${other}/ is not below ${layer}/`];
  });
}

/** The files of all layers, sorted by path. */
export function allViolations(src = join(root, "src")): string[] {
  return readdirSync(src, { recursive: true, encoding: "utf8" })
    .map((path) => path.split(sep).join("/"))
    .filter((path) => path.endsWith(".ts"))
    .sort()
    .flatMap((path) => violations(path, readFileSync(join(src, path), "utf8")));
}

if (import.meta.main) {
  const found = allViolations();
  for (const each of found) console.error(each);
  if (found.length > 0) {
    console.error(`${found.length} imports go upwards; see LAYERS in ${relative(dirname(root), import.meta.filename)}`);
    process.exitCode = 1;
  }
}
