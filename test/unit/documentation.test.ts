/** Every file, folder and function that the documentation names exists. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { LAYERS } from "../../lint/layers.ts";

const root = join(import.meta.dirname, "..", "..");
const files = (pattern: string) => globSync(pattern, { cwd: root, exclude: ["node_modules"] });
const read = (path: string) => readFileSync(join(root, path), "utf8");

const sources = files("{src,test,lint,bench,apis,samples}/**/*.ts").map((path) => `/${path}`);
const pages = files("**/*.md").map((page) => ({ page, text: read(page) }));
const PATH = /(?<![\w./-])(?:apis|bench|compositions|deploy|docs|lint|samples|src|test)\/[\w./-]*\w(?![\w*{<…])/g;

/** What `find` says is missing of a page, with the page. */
const missing = (find: (page: string, text: string) => string[]) =>
  pages.flatMap(({ page, text }) => find(page, text).map((each) => `${page}: ${each}`));
const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([all, one = all]) => one);

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(text: string): string[] {
  const headings = matches(text.replaceAll(/^```.*?^```/gms, ""), /^#+ (.*)$/gm);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

describe("the documentation", () => {
  it("names paths that exist", () => {
    const gone = missing((_, text) => matches(text, PATH).filter((path) => !existsSync(join(root, path))));
    assert.deepEqual(gone, []);
  });

  it("names source files that exist", () => {
    const named = /`([\w./-]+\.ts)\b[^`\n]*`/g;
    const gone = missing((_, text) =>
      matches(text, named).filter((name) => !sources.some((path) => path.endsWith(`/${name}`))),
    );
    assert.deepEqual(gone, []);
  });

  it("has links that lead to files", () => {
    const link = /\]\(([^)#:]+)(?:#[^)]*)?\)/g;
    const gone = missing((page, text) =>
      matches(text, link).filter((path) => !existsSync(join(root, dirname(page), path))),
    );
    assert.deepEqual(gone, []);
  });

  it("has links that lead to headings", () => {
    const link = /\]\(([^)#:\s]*)#([^)\s]+)\)/g;
    const gone = missing((page, text) =>
      [...text.matchAll(link)].flatMap(([all, path = "", anchor = ""]) => {
        const target = path === "" ? page : join(dirname(page), path);
        const headings = pages.find((each) => each.page === target);
        return headings === undefined || anchorsOf(headings.text).includes(anchor) ? [] : [all];
      }),
    );
    assert.deepEqual(gone, []);
  });

  it("names functions that their files have, in docs/architecture.md", () => {
    const calls = [...read("docs/architecture.md").matchAll(/`([\w/-]+\.ts): (#?\w+)`/g)];
    assert.ok(calls.length > 30, `${calls.length} calls`);
    const gone = calls.filter(([, file = "", name = ""]) => !read(`src/${file}`).includes(`${name}(`));
    assert.deepEqual(
      gone.map(([call]) => call),
      [],
    );
  });

  it("has a row for each layer, in the order of lint/layers.ts", () => {
    const [, section = ""] = read("docs/architecture.md").split("\n## ");
    const rows = matches(section, /^\| `(\w+)\/?` \|/gm);
    assert.deepEqual(rows, LAYERS.flat());
  });
});
