/** Asks the controller to reconcile an object now, by the annotation inlay.dev/refresh, and waits until it has. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Condition } from "../api/binding.ts";
import { REFRESH_ANNOTATION } from "../api/refresh.ts";
import { findController } from "../explain/running.ts";
import { change, type NamedObject, type OwnObject, read, readyOf, type Tools, textOf } from "./object.ts";

interface Synced {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  /** The text of the annotation. */
  readonly requested: string;
  /** Whether Inlay has handled the request. */
  readonly handled: boolean;
  /** The condition Ready after that. */
  readonly ready?: Condition;
}

const POLL_MS = 200;

/** Throws Error with what to do. `waitMs`: how long to wait until it is handled; undefined for not at all. */
export async function sync(
  tools: Tools,
  object: NamedObject,
  namespace: string,
  waitMs: number | undefined,
): Promise<Synced> {
  const before = await read(tools, object, namespace);
  const { kind, namespaced } = object.resource;
  const where = namespaced ? ` -n ${namespace}` : "";
  if (before.metadata.deletionTimestamp !== undefined)
    throw new Error(`${textOf(object)} is being deleted, so Inlay only releases what it wrote`);
  if (before.spec?.suspend)
    throw new Error(
      `${textOf(object)} is suspended; resume it with: inlay resume ${kind.toLowerCase()}/${object.name}${where}`,
    );
  const requested = new Date().toISOString();
  const annotations = { [REFRESH_ANNOTATION]: requested };
  await change(tools, object, namespace, before, { metadata: { annotations } });
  const result = { kind, ...(namespaced && { namespace }), name: object.name, requested };
  if (waitMs === undefined) return { ...result, handled: false };
  const ready = readyOf(await untilHandled(tools, object, namespace, requested, waitMs));
  return { ...result, handled: true, ...(ready && { ready }) };
}

async function untilHandled(
  tools: Tools,
  object: NamedObject,
  namespace: string,
  requested: string,
  waitMs: number,
): Promise<OwnObject> {
  const end = performance.now() + waitMs;
  for (;;) {
    const now = await read(tools, object, namespace);
    if (now.status?.lastHandledRefresh === requested) return now;
    const other = now.metadata.annotations?.[REFRESH_ANNOTATION];
    if (other !== requested && other !== undefined && now.status?.lastHandledRefresh === other) return now;
    const left = end - performance.now();
    if (left <= 0) break;
    await sleep(Math.min(POLL_MS, left));
  }
  const { advice: down } = await findController(tools.reader, namespace, Date.now());
  const why =
    down === undefined
      ? "check that the controller runs and is not older than this program, and wait longer with --timeout"
      : `${down.message} ${down.command}`;
  throw new Error(`${textOf(object)}: Inlay has not handled the request after ${Math.round(waitMs / 1000)} s; ${why}`);
}
