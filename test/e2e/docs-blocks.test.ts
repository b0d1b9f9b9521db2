/** The code blocks of README and docs that are no commands: an API server, a loader or a parser accepts each of them. */
import assert from "node:assert/strict";
import { createNamespace } from "../controller/test-namespace.ts";
import { blocksOf, LANGUAGES, pages, runnableIn, textOf, withFragment } from "./doc-blocks.ts";
import { YamlCheck } from "./doc-yaml.ts";

const blocks = pages.flatMap((page) => blocksOf(page));
const of = (language: string) => blocks.filter((block) => block.language === language);

/** Fails with all failures at once, each with the line of its block. */
async function assertEach<T extends { at: string }>(each: readonly T[], check: (block: T) => unknown): Promise<void> {
  const results = await Promise.allSettled(each.map(async (block) => check(block)));
  const failed = results.flatMap((result, index) =>
    result.status === "rejected" ? [`${each[index]?.at}: ${result.reason.message}`] : [],
  );
  assert.deepEqual(failed, []);
}

describe("the code blocks of README and docs", function () {
  this.timeout("1m");

  it("have a language that a test, a parser or a viewer knows", () =>
    assertEach(blocks, ({ language }) => assert.ok(LANGUAGES.includes(language), `the language is "${language}"`)));

  it("contain all commands: no indented line is one", () =>
    assertEach(
      pages.map((at) => ({ at })),
      ({ at }) => {
        const outside = textOf(at).replaceAll(/^( *)```.*?^ *```$/gms, "");
        assert.deepEqual(outside.match(/^ {4,}(\$ )?(kubectl|npx|inlay|docker) .*$/gm) ?? [], []);
      },
    ));

  it("are not run only if no test could run them", () =>
    assertEach(of("console"), (block) => assert.deepEqual(runnableIn(block), [], "use ```sh for these commands")));

  it("of JSON can be parsed", () => assertEach(of("json"), ({ text }) => JSON.parse(text)));

  it("of Mermaid begin with the kind of the diagram", () =>
    assertEach(of("mermaid"), ({ text }) =>
      assert.match(text, /^\s*(flowchart|graph|sequenceDiagram|stateDiagram-v2)\b/),
    ));

  it("of YAML are accepted by the API server, the loader of the configuration, or kustomize", async () => {
    const { namespace } = await createNamespace({ controller: false });
    const check = new YamlCheck(namespace);
    await check.installKinds(of("yaml"));
    await assertEach(of("yaml"), (block) => check.check(block));
  });
});

describe("the check of blocks", () => {
  const block = (text: string) => blocksOf("page.md", text)[0] ?? assert.fail();

  it("finds the line, the language and the place of a block, and one in a list", () => {
    assert.deepEqual(blocksOf("page.md", "# T\n\n- a\n  ```yaml in=SecretBinding.spec\n  a: 1\n  ```\n"), [
      { at: "page.md:4", language: "yaml", info: "in=SecretBinding.spec", text: "a: 1\n" },
    ]);
  });

  it("finds commands in a console block that a test could run", () => {
    const text = "```console\ndocker build .\nkubectl edit configmap a\n$X\nkubectl get pods\nkubectl logs -f x\n```\n";
    assert.deepEqual(runnableIn(block(text)), ["$X", "kubectl get pods"]);
    assert.deepEqual(runnableIn(block("```console\n$ kubectl edit a\nedited\n$ kubectl get a\n```\n")), [
      "kubectl get a",
    ]);
  });

  it("sets a fragment into lists and maps, and keeps the other fields of a map", () => {
    const object = { spec: { a: 1, targets: [{ name: "x" }] } };
    assert.deepEqual(withFragment(object, "spec", { b: 2 }).spec, { a: 1, b: 2, targets: [{ name: "x" }] });
    assert.deepEqual(withFragment(object, "spec.targets[0].fields", [1]).spec.targets, [{ name: "x", fields: [1] }]);
  });

  it("refuses YAML with a field that no schema has, and a fragment without a place", async () => {
    const { namespace } = await createNamespace({ controller: false });
    const check = new YamlCheck(namespace);
    const refused = async (fence: string, text: string, why: RegExp) =>
      assert.rejects(check.check(block(`\`\`\`${fence}\n${text}\n\`\`\`\n`)), why);
    await refused("yaml in=SecretBinding.spec", "suspnd: true", /suspnd/);
    await refused("yaml in=configuration", "rollouts: { suspnd: true }", /suspnd/);
    await refused("yaml in=kustomization", "resources: [../nowhere]", /nowhere/);
    await refused("yaml in=values", "replcas: 1", /replcas/);
    await refused("yaml in=Something.spec", "a: 1", /in=Something\.spec/);
    await refused("yaml", "a: 1", /has no apiVersion/);
    await check.check(block("```yaml in=SecretBinding.spec\nsuspend: true\n```\n"));
  });
});
