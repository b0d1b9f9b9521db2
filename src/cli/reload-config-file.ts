/**
 * Reads the configuration file again and again while the controller runs, and applies its section `rollouts` at once: a kill switch must
 * not need a restart. All other sections take effect at the next start.
 */
import { readFile } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import type { Installation } from "../api/installation.ts";
import type { Log } from "../observability/log.ts";
import { installationOf } from "./config-file.ts";

/** The kubelet replaces a link when a ConfigMap changes. Reading the file regularly is simpler than watching that. */
const EVERY_MS = 5_000;

export class RolloutsFile {
  readonly #file: string;
  readonly #installation: Installation;
  readonly #ownNamespace: string;
  readonly #log: Pick<Log, "info" | "error">;
  #timer: NodeJS.Timeout | undefined;
  #text: string | undefined;
  /** Why the present file can't be used, if so. */
  #trouble: string | undefined;

  constructor(file: string, installation: Installation, ownNamespace: string, log: Pick<Log, "info" | "error">) {
    this.#file = file;
    this.#installation = installation;
    this.#ownNamespace = ownNamespace;
    this.#log = log;
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** If the file has a mistake anywhere, the former settings stay in effect. */
  async look(): Promise<void> {
    try {
      const text = await readFile(this.#file, "utf8");
      if (text === this.#text && this.#trouble === undefined) return;
      const { rollouts } = installationOf(text, this.#ownNamespace, this.#installation.scope);
      this.#text = text;
      const isOther = !isDeepStrictEqual(rollouts, this.#installation.rollouts);
      if (isOther) this.#installation.replaceRollouts(rollouts);
      if (isOther || this.#trouble !== undefined)
        this.#log.info({ rollouts }, "applied the changed section rollouts of the configuration");
      this.#trouble = undefined;
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      if (error.message === this.#trouble) return;
      this.#trouble = error.message;
      const { rollouts } = this.#installation;
      this.#log.error(
        { rollouts, error: error.message },
        "can't use the changed configuration; the former section rollouts stays in effect",
      );
    }
  }
}
