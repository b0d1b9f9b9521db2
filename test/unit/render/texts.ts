/** Renders texts as if each was a file. */
import { render } from "../../../src/render/render.ts";
import { type Opened, opened, type Rendering } from "../../../src/render/rendering.ts";

interface RenderOptions {
  showValues?: boolean;
  namespace?: string;
  /** The text of the file with Vault's values. */
  vault?: string;
}

export async function renderTexts(
  texts: Record<string, string>,
  { showValues = false, namespace = "default", vault }: RenderOptions = {},
): Promise<Opened<Rendering>> {
  const files = Object.entries(texts).map(([name, text]) => ({ name, text }));
  const vaultFiles = vault === undefined ? [] : [{ name: "vault", text: vault }];
  return opened(await render(files, namespace, vaultFiles), showValues);
}
