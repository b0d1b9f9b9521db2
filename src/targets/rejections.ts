/** Remembers why writes were rejected, because a rejected write is repeated every half minute. */
import { setNewest } from "../apimachinery/newest.ts";

/** How long an explanation is used. The rules of the cluster may change in the meantime. */
const EXPLAINED_FOR_MS = 600_000;
/** The limit of remembered targets; the oldest are dropped. */
const MAX_KNOWN = 1_000;

export class Rejections {
  readonly #known = new Map<string, { of: string; until: number; findings: readonly string[] }>();
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** The findings for a target in the state `of`. */
  async findings(target: string, of: string, find: () => Promise<readonly string[]>): Promise<readonly string[]> {
    const known = this.#known.get(target);
    if (known?.of === of && known.until > this.#now()) return known.findings;
    const findings = await find();
    setNewest(this.#known, target, { of, until: this.#now() + EXPLAINED_FOR_MS, findings }, MAX_KNOWN);
    return findings;
  }
}
