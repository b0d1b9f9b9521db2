/** A Job with annotations of Reloader, for tests: a shop comes in, which Job and binding there are by now goes out. */
import { AUTO, annotated, newShop, type Shop } from "./annotated.ts";
import { jobOf } from "./jobs.ts";
import { untilMade } from "./reloader.ts";

/** That of the Job `migrate`. */
export const BINDING = "reloader-job-migrate";
export const JOB = { annotations: AUTO };

/** With the Secret `bucket`, to which Jobs refer. */
export async function newJobShop(): Promise<Shop> {
  const shop = await newShop();
  await shop.rotate("bucket");
  return shop;
}

/** Which ones they are by now: the Job, and its binding. */
export async function uidsIn({ team }: Shop): Promise<{ job: string; binding: string; resourceVersion: string }> {
  const { uid, resourceVersion } = (await team.api.get(team.bindingPath(BINDING))).metadata;
  return { job: (await jobOf(team)).metadata.uid, binding: uid, resourceVersion };
}

/** A Deployment that is annotated later has its binding when all before has been looked at. */
export async function lookedAt(shop: Shop, ...made: string[]): Promise<void> {
  await shop.make(annotated("next", { "secret.reloader.stakater.com/auto": "true" }));
  await untilMade(shop.team, [...made, "reloader-deployment-next"]);
}
