/** All attacks by the size or number of a tenant's objects. Add each new one here. */
import type { Attack } from "./attack.ts";
import { largeBindings, manyBytes } from "./bindings.ts";
import { manyKeys } from "./keys.ts";

export const ATTACKS: readonly Attack[] = [manyKeys, largeBindings, manyBytes];
