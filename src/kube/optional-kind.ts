/** Finds a kind that most clusters lack. While it is missing, asks once a minute. */
import type { KubeObject, Resource } from "../apimachinery/objects.ts";
import type { Discovery } from "./discovery.ts";

const MISSING_LIVES_MS = 60_000;

export class OptionalKind {
  readonly #discovery: Pick<Discovery, "byKind">;
  readonly #wanted: Pick<KubeObject, "apiVersion" | "kind">;
  #missingUntil = Number.NEGATIVE_INFINITY;

  constructor(discovery: Pick<Discovery, "byKind">, wanted: Pick<KubeObject, "apiVersion" | "kind">) {
    this.#discovery = discovery;
    this.#wanted = wanted;
  }

  async served(): Promise<Resource | undefined> {
    if (performance.now() < this.#missingUntil) return undefined;
    const found = await this.#discovery.byKind(this.#wanted.apiVersion, this.#wanted.kind);
    if (found === undefined) this.#missingUntil = performance.now() + MISSING_LIVES_MS;
    return found;
  }
}
