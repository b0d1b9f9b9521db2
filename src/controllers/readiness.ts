/** Reads from the status of objects whether they are ready. Pure. */
export interface WithConditions {
  status?: { conditions?: readonly { type: string; status: string; reason: string; message?: string }[] };
}

/** The condition Ready. Undefined if the object has none yet. */
export const readinessOf = ({ status }: WithConditions) => status?.conditions?.find(({ type }) => type === "Ready");

/** Whether Inlay waits for a user. */
export const isStalled = ({ status }: WithConditions): boolean =>
  status?.conditions?.some(({ type }) => type === "Stalled") === true;
