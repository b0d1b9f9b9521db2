/** `inlay dev`: runs a local control plane with Inlay, from a clone of the repository, until Ctrl-C. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Command } from "commander";

interface DevFlags {
  /** False for --no-controller. */
  controller: boolean;
  vault?: true;
}

/** Of the clone, both from src/ and from dist/. The npm package and the image do not contain it. */
const MODULE = new URL("../../test/control-plane/dev.ts", import.meta.url);

export function devCommand(): Command {
  return new Command("dev")
    .option("--vault", "also run a Vault server, with an example")
    .option("--no-controller", "don't run the controller; run it yourself, with inlay controller")
    .addHelpText(
      "after",
      "\nNeeds a clone of the repository, and Go for the first run.\n\nExample:\n  inlay dev --vault",
    )
    .action(run);
}

async function run({ controller, vault = undefined }: DevFlags): Promise<void> {
  if (!existsSync(fileURLToPath(MODULE)))
    throw new Error(
      "inlay dev needs a clone of the repository, because it builds the control plane there; in a clone, run: npm ci && npx inlay dev",
    );
  const { runDev }: { runDev(options: { controller: boolean; vault: boolean }): Promise<void> } = await import(
    MODULE.href
  );
  await runDev({ controller, vault: vault === true });
}
