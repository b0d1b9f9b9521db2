/** The Job `migrate` with Reloader's annotations, and its binding. */
import { AUTO, annotated, newShop, type Shop } from "./annotated.ts";
import { jobOf } from "./jobs.ts";
import { untilMade } from "./reloader.ts";

/** The binding of the Job. */
export const BINDING = "reloader-job-migrate";
export const JOB = { annotations: AUTO };

/** Creates a shop with the Secret `bucket`, to which Jobs refer. */
export async function newJobShop(): Promise<Shop> {
  const shop = await newShop();
  await shop.rotate("bucket");
  return shop;
}

/** The uids of the Job and of its binding, and the resource version of the binding. */
export async function uidsIn({ team }: Shop): Promise<{ job: string; binding: string; resourceVersion: string }> {
  const { uid, resourceVersion } = (await team.api.get(team.bindingPath(BINDING))).metadata;
  return { job: (await jobOf(team)).metadata.uid, binding: uid, resourceVersion };
}

/** Waits until the controller has processed all earlier changes: a Deployment that is created now gets its binding after them. */
export async function lookedAt(shop: Shop, ...made: string[]): Promise<void> {
  await shop.make(annotated("next", { "secret.reloader.stakater.com/auto": "true" }));
  await untilMade(shop.team, [...made, "reloader-deployment-next"]);
}
