/**
 * The configuration file of an installation comes in again and again while the controller runs, and what it says of rollouts
 * goes into the installation: a kill switch that waits for a restart is none. All else in it holds from the next start.
 */
import { readFile } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import type { Installation } from "../api/installation.ts";
import type { Log } from "../observability/log.ts";
import { installationOf } from "./config-file.ts";

/** A file under a ConfigMap's volume is a link to another at every change, which nothing tells of as simply as reading. */
const EVERY_MS = 5_000;

export class RolloutsFile {
  readonly #file: string;
  readonly #installation: Installation;
  readonly #ownNamespace: string;
  readonly #log: Pick<Log, "info" | "error">;
  #timer: NodeJS.Timeout | undefined;
  #text: string | undefined;
  /** Why what is there now can't be used, if it can't be. */
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

  /** With a mistake anywhere in the file, what held before holds on. */
  async look(): Promise<void> {
    try {
      const text = await readFile(this.#file, "utf8");
      if (text === this.#text && this.#trouble === undefined) return;
      const { rollouts } = installationOf(text, this.#ownNamespace, this.#installation.scope);
      this.#text = text;
      const isOther = !isDeepStrictEqual(rollouts, this.#installation.rollouts);
      if (isOther) this.#installation.replaceRollouts(rollouts);
      if (isOther || this.#trouble !== undefined)
        this.#log.info({ rollouts }, "rollouts go by the configuration as it is now");
      this.#trouble = undefined;
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      if (error.message === this.#trouble) return;
      this.#trouble = error.message;
      const { rollouts } = this.#installation;
      this.#log.error(
        { rollouts, error: error.message },
        "the configuration can't be used, and rollouts go on by what it was",
      );
    }
  }
}
