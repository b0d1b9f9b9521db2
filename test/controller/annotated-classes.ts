/** Workloads with Reloader's annotations whose pods mount SecretProviderClasses. */
import { annotated, newShop, type Shop } from "./annotated.ts";
import type { AnyObject } from "./api.ts";
import { classVolume, newClass } from "./classes.ts";
import { madeIn } from "./reloader.ts";

export const CLASS_AUTO = { "secretproviderclass.reloader.stakater.com/auto": "true" };

/** A Deployment whose pods mount a class, and that also refers to the Secret `one`. */
export const mounting = (name: string, secretProviderClass: string, annotations: object) =>
  annotated(name, annotations, { spec: { volumes: [classVolume(secretProviderClass)] } });

/** The Secrets for which a Deployment restarts. */
export const sourcesOf = async ({ team }: Shop, name: string): Promise<string[]> =>
  (await madeIn(team))
    .filter(({ metadata }) => metadata.name === `reloader-deployment-${name}`)
    .flatMap(({ spec }) => spec.sources.map(({ secret }: AnyObject) => secret?.name));

/** Creates a shop with the class `store`, which writes the Secret `bucket`, and `other`, which writes `beside`. */
export async function newStore(): Promise<Shop> {
  const shop = await newShop();
  for (const name of ["bucket", "beside"]) await shop.rotate(name);
  await newClass(shop.team, "store", { bucket: ["token"] });
  await newClass(shop.team, "other", { beside: ["token"] });
  return shop;
}
