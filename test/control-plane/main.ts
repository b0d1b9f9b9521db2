/** `npm run control-plane`: runs a control plane until Ctrl-C, and prints the commands that use it. */
import { parseArgs } from "node:util";
import { runDev } from "./dev.ts";

const { values } = parseArgs({ options: { controller: { type: "boolean" }, vault: { type: "boolean" } } });
await runDev({ controller: values.controller ?? false, vault: values.vault ?? false });
