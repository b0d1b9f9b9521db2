/** All attacks by the size or number of a tenant's objects. Add each new one here. */
import type { Attack } from "./attack.ts";
import { largeBindings, manyBytes, statusesWithoutRoom } from "./bindings.ts";
import { copiedKeys, manyKeys } from "./keys.ts";
import { annotatedMany, consumersOfMany } from "./references.ts";

export const ATTACKS: readonly Attack[] = [
  manyKeys,
  copiedKeys,
  largeBindings,
  manyBytes,
  statusesWithoutRoom,
  consumersOfMany,
  annotatedMany,
];
