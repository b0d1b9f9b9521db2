/** Values that stand for secrets: every one that a test makes is remembered, and looked for in all that is put out. */
import { randomBytes } from "node:crypto";

const values = new Set<string>();

/** A new value that occurs nowhere else. Its label says what it stands for; what is hunted is the random part. */
export function secretText(label: string): string {
  const random = randomBytes(12).toString("hex");
  values.add(random);
  return `${label}-${random}`;
}

/** Remembers a value that was not made here. */
export function hunt(value: string): string {
  values.add(value);
  return value;
}

/** The values that stand in a text, by themselves or in base64. */
export function foundIn(text: string): string[] {
  return [...values].filter(
    (value) => text.includes(value) || text.includes(Buffer.from(value).toString("base64").slice(0, -3)),
  );
}
