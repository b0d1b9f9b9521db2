/** Workloads with annotations of Reloader whose pods mount SecretProviderClasses, for tests; and what they restart for. */
import { annotated, newShop, type Shop } from "./annotated.ts";
import type { AnyObject } from "./api.ts";
import { classVolume, newClass } from "./classes.ts";
import { madeIn } from "./reloader.ts";

export const CLASS_AUTO = { "secretproviderclass.reloader.stakater.com/auto": "true" };

/** Its pods mount a class, and read the Secret `one` beside. */
export const mounting = (name: string, secretProviderClass: string, annotations: object) =>
  annotated(name, annotations, { spec: { volumes: [classVolume(secretProviderClass)] } });

/** For which Secrets a Deployment restarts. */
export const sourcesOf = async ({ team }: Shop, name: string): Promise<string[]> =>
  (await madeIn(team))
    .filter(({ metadata }) => metadata.name === `reloader-deployment-${name}`)
    .flatMap(({ spec }) => spec.sources.map(({ secret }: AnyObject) => secret?.name));

/** With the class `store`, which writes the Secret `bucket`, and `other`, which writes `beside`. */
export async function newStore(): Promise<Shop> {
  const shop = await newShop();
  for (const name of ["bucket", "beside"]) await shop.rotate(name);
  await newClass(shop.team, "store", { bucket: ["token"] });
  await newClass(shop.team, "other", { beside: ["token"] });
  return shop;
}
