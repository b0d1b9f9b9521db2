/** All attacks by the size or number of a tenant's objects. Add each new one here. */
import type { Attack } from "./attack.ts";
import { largeBindings, manyBytes, statusesWithoutRoom } from "./bindings.ts";
import { largeClaims, manyClaims, manyTargets } from "./claims.ts";
import { manyConnections } from "./connections.ts";
import { flappingBindings } from "./flapping.ts";
import { grantsInDeletion, manyGrants } from "./grants.ts";
import { copiedKeys, manyKeys, manyKeysByName } from "./keys.ts";
import { changingObjects, escapedCharacters, largeAnnotations, manyNumbers } from "./large.ts";
import { projections } from "./projections.ts";
import { annotatedMany, consumersOfMany } from "./references.ts";
import { longRoles } from "./roles.ts";
import { largeClasses, manyLookups } from "./rollouts.ts";
import { selectedClaims } from "./selected.ts";
import { slowReconciles } from "./slow.ts";

export const ATTACKS: readonly Attack[] = [
  manyKeys,
  manyKeysByName,
  copiedKeys,
  escapedCharacters,
  largeAnnotations,
  changingObjects,
  manyNumbers,
  largeBindings,
  manyBytes,
  statusesWithoutRoom,
  consumersOfMany,
  annotatedMany,
  projections,
  manyLookups,
  largeClasses,
  manyGrants,
  grantsInDeletion,
  selectedClaims,
  longRoles,
  flappingBindings,
  slowReconciles,
  manyTargets,
  largeClaims,
  manyClaims,
  manyConnections,
];

/** One for each mechanism that stops them. */
export const DIFFERENT_ATTACKS: readonly Attack[] = [
  manyKeysByName,
  largeBindings,
  statusesWithoutRoom,
  annotatedMany,
  manyGrants,
  longRoles,
  flappingBindings,
  manyTargets,
  manyConnections,
];
