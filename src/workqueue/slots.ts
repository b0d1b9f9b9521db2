/** Limits how many keys of each group have a slot at once. Without a free slot, groups take turns. */
import { SetsByKey } from "../apimachinery/maps.ts";
import { RoundRobinQueue } from "./round-robin-queue.ts";

interface Waiting {
  group: string;
  key: string;
  begin: () => void;
}

export class Slots {
  readonly #hasRoom: (taken: number, total: number) => boolean;
  /** The keys with a slot, by group. */
  readonly #taken = new SetsByKey<string, string>();
  #total = 0;
  readonly #waiting = new RoundRobinQueue<Waiting>();

  /** `hasRoom`: whether a group with so many slots may have one more, of so many in all groups. */
  constructor(hasRoom: (taken: number, total: number) => boolean) {
    this.#hasRoom = hasRoom;
  }

  /** Calls `begin`: at once, or when a slot is free. */
  take(group: string, key: string, begin: () => void): void {
    this.#waiting.set(group, key, { group, key, begin });
    this.#admit();
  }

  has(group: string, key: string): boolean {
    return this.#taken.get(group)?.has(key) === true;
  }

  /** Releases the slot of a key, or removes the key from the queue. */
  release(group: string, key: string): void {
    this.#waiting.delete(group, key);
    if (!this.#taken.remove(group, key)) return;
    this.#total--;
    this.#admit();
  }

  /** Gives no more slots. */
  stop(): void {
    this.#waiting.clear();
  }

  #admit(): void {
    const hasRoom = (group: string) => this.#hasRoom(this.#taken.get(group)?.size ?? 0, this.#total);
    for (let next = this.#waiting.next(hasRoom); next !== undefined; next = this.#waiting.next(hasRoom)) {
      this.#taken.add(next.group, next.key);
      this.#total++;
      next.begin();
    }
  }
}
