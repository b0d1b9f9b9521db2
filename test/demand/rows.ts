/** All rows of docs/demand.md as tests: every custom resource whose values users write by hand today. */
import type { Row } from "./row.ts";
import { certificates } from "./rows/certificates.ts";
import { delivery } from "./rows/delivery.ts";
import { messaging } from "./rows/messaging.ts";
import { monitoring } from "./rows/monitoring.ts";
import { storage } from "./rows/storage.ts";
import { traffic } from "./rows/traffic.ts";

export const rows: Row[] = [...certificates, ...delivery, ...messaging, ...monitoring, ...storage, ...traffic].sort(
  (a, b) => a.number - b.number,
);
