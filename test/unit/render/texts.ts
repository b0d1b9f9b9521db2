/** Renders texts as if each were a file. */
import { render } from "../../../src/render/render.ts";
import { type OpenRendering, opened } from "../../../src/render/rendering.ts";

export async function renderTexts(
  texts: Record<string, string>,
  { showValues = false, namespace = "default" } = {},
): Promise<OpenRendering> {
  const files = Object.entries(texts).map(([name, text]) => ({ name, text }));
  return opened(await render(files, namespace), showValues);
}
