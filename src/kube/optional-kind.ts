/** A kind that most clusters lack comes in; it goes out as the API server serves it, asked for now and then where it is missing. */
import type { Resource } from "../apimachinery/objects.ts";
import type { Discovery } from "./discovery.ts";

const MISSING_LIVES_MS = 60_000;

export class RareKind {
  readonly #discovery: Pick<Discovery, "byKind">;
  readonly #apiVersion: string;
  readonly #kind: string;
  #missingUntil = Number.NEGATIVE_INFINITY;

  constructor(discovery: Pick<Discovery, "byKind">, { apiVersion, kind }: { apiVersion: string; kind: string }) {
    this.#discovery = discovery;
    this.#apiVersion = apiVersion;
    this.#kind = kind;
  }

  async served(): Promise<Resource | undefined> {
    if (performance.now() < this.#missingUntil) return undefined;
    const found = await this.#discovery.byKind(this.#apiVersion, this.#kind);
    if (found === undefined) this.#missingUntil = performance.now() + MISSING_LIVES_MS;
    return found;
  }
}
