/** Finds the code blocks of the pages, and checks all but commands, which test/e2e/docs.ts runs. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./pages.ts";

/** Of a kind of block that no test can check, only the words on the page help: no other language is allowed. */
export const LANGUAGES = ["sh", "console", "text", "yaml", "json", "mermaid", "ts", "hcl"];

export interface Block {
  /** The page with the line, such as `docs/design.md:24`. */
  at: string;
  language: string;
  /** The rest of the first line, such as `in=configuration`. */
  info: string;
  text: string;
}

/** The pages of documentation whose blocks are checked: samples and compositions have tests of their own. */
export const pages = globSync(["*.md", "docs/**/*.md", "deploy/**/*.md"], { cwd: root }).sort();

export const textOf = (page: string): string => readFileSync(join(root, page), "utf8");

export function blocksOf(page: string, markdown = textOf(page)): Block[] {
  const fences = markdown.matchAll(/^( *)```([^\s`]*) *([^\n`]*)\n(.*?)^ *```$/gms);
  return [...fences].map(({ index, 1: indent = "", 2: language = "", 3: info = "", 4: text = "" }) => ({
    at: `${page}:${markdown.slice(0, index).split("\n").length}`,
    language,
    info: info.trim(),
    text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  }));
}

/** Commands of tools that no test has, of programs that do not end, and of those that need the kubelet of a real node. */
const CONSOLE = [
  /^(docker|podman|kind|k3d|minikube|argocd|flux|vault|bao|helm|git|npm|cosign|gh)\b/,
  /^npx inlay controller\b/,
  /^kubectl (edit|port-forward|proxy|logs|exec|attach|debug)\b/,
  /^kubectl get .*( -w| --watch)\b/,
  /^(export )?\w+=/,
];

/** The commands of a console block that a test could run, in an sh block. With prompts, the lines without one are output. */
export function runnableIn({ text }: Block): string[] {
  const lines = text
    .replaceAll("\\\n", " ")
    .split("\n")
    .filter((line) => line.trim() !== "");
  const prompted = lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
  const commands = (prompted.length > 0 ? prompted : lines).filter((line) => !/^\s|^#|^EOF$/.test(line));
  return commands.filter((command) => !CONSOLE.some((pattern) => pattern.test(command)));
}

/** What is in a fragment's place after `in=`. */
export function placeOf({ at, info }: Block): string | undefined {
  if (info === "") return undefined;
  const place = /^in=(\S+)$/.exec(info)?.[1];
  assert.ok(
    place,
    `${at}: "${info}" says not where the fragment belongs: write in=KIND.path, in=configuration, in=values or in=kustomization`,
  );
  return place;
}

/** Sets a fragment at a path of an object, such as `spec.targets[0]`: the fields of a map replace those of the same name. */
export function withFragment<T extends object>(object: T, path: string, fragment: unknown): T {
  const result = structuredClone(object);
  const keys = [...path.matchAll(/[^.[\]]+/g)].map(([key]) => key);
  let place = result as Record<string, unknown>;
  for (const key of keys.slice(0, -1)) {
    place[key] ??= {};
    place = place[key] as Record<string, unknown>;
  }
  const last = keys.at(-1) ?? assert.fail("a fragment has a path");
  const before = place[last];
  const areMaps = isMap(before) && isMap(fragment);
  place[last] = areMaps ? { ...before, ...fragment } : fragment;
  return result;
}

const isMap = (value: unknown): value is object => typeof value === "object" && value !== null && !Array.isArray(value);
