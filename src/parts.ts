/** The parts that a reconcile works with; main.ts makes them. Types only. */
import type { Contention } from "./apply/contention.ts";
import type { Client } from "./kube/client.ts";
import type { Discovery } from "./kube/discovery.ts";
import type { Schemas } from "./kube/schemas.ts";
import type { EventRecorder } from "./report/events.ts";
import type { Propagation } from "./report/propagation.ts";
import type { Log } from "./run/log.ts";
import type { BindingStore } from "./watch/bindings.ts";
import type { Streams } from "./watch/streams.ts";

export interface Parts {
  client: Client;
  discovery: Discovery;
  schemas: Schemas;
  bindings: BindingStore;
  streams: Streams;
  contention: Contention;
  events: EventRecorder;
  propagation: Propagation;
  log: Log;
}
