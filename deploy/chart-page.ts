/** Generates docs/reference/chart.md from the comments in the chart's values.yaml. */
import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from "yaml";

const HEAD = `# Values of the Helm chart

The chart is in \`deploy/chart\`. [Install Inlay](../tasks/install.md) shows how to use it. \`npm run manifests\` generates this page from
\`values.yaml\`. Helm refuses values that are not in this list. \`config\` has the fields of the [configuration file](configuration.md#configuration-file).

`;

interface Value {
  name: string;
  byDefault: string;
  meaning: string;
}

export function chartPage(valuesYaml: string): string {
  const rows = valuesIn(valuesYaml).map(
    ({ name, byDefault, meaning }) => `| \`${name}\` | ${byDefault === "" ? "" : `\`${byDefault}\``} | ${meaning} |\n`,
  );
  return `${HEAD}| value | default | meaning |\n| --- | --- | --- |\n${rows.join("")}`;
}

/** The values with a comment. A map without one is a group of values, each of which has its own. */
function valuesIn(valuesYaml: string): Value[] {
  const document = parseDocument<YAMLMap>(valuesYaml);
  if (document.contents === null) return [];
  // The library attaches the comment at the beginning of a file to the document, and that of the first key of a map to the map.
  return valuesOf(document.contents, "", document.commentBefore ?? document.contents.commentBefore);
}

function valuesOf(map: YAMLMap, prefix: string, firstComment: string | null | undefined): Value[] {
  return map.items.flatMap((item, index) => {
    const { key, value } = item as Pair;
    if (!isScalar(key)) throw new Error(`${prefix}: a key is not a word`);
    const name = `${prefix}${key.value}`;
    const comment = key.commentBefore ?? (index === 0 ? firstComment : undefined);
    if (comment) return [{ name, byDefault: textOf(value), meaning: meaningOf(comment) }];
    if (!isMap(value)) throw new Error(`values.yaml: ${name} has no comment`);
    return valuesOf(value, `${name}.`, value.commentBefore);
  });
}

/** The default on one line. One that is empty needs no text. */
function textOf(value: unknown): string {
  const js = (value as { toJSON: () => unknown }).toJSON();
  const text = typeof js === "string" ? js : JSON.stringify(js);
  return ["", "[]", "{}"].includes(text) ? "" : text;
}

const meaningOf = (comment: string) =>
  comment
    .split("\n")
    .map((line) => line.trim())
    .join(" ")
    .replaceAll("|", "\\|");
