/** All attacks by the size or number of a tenant's objects. Add each new one here. */
import type { Attack } from "./attack.ts";
import { manyKeys, manyKeysByName } from "./keys.ts";
import { changingObjects, escapedCharacters, largeAnnotations, manyNumbers } from "./large.ts";

export const ATTACKS: readonly Attack[] = [
  manyKeys,
  manyKeysByName,
  escapedCharacters,
  largeAnnotations,
  changingObjects,
  manyNumbers,
];
