/** What looking takes, beside what is looked at: the cluster as the user sees it, and who reads templates. */

import type { SecretBinding } from "../api/binding.ts";
import type { Resource } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { attempt, kindNotFound } from "../kube/access-error.ts";
import type { Discovery } from "../kube/discovery.ts";
import type { ReadTemplate } from "../sources/uses.ts";
import type { Reader } from "./reading.ts";

export interface Tools {
  readonly reader: Reader;
  readonly discovery: Discovery;
  /** Loads who reads templates. */
  readonly loadTemplates: () => Promise<ReadTemplate>;
}

/** The same, once it is known which bindings there are: most have no template, and loading what reads one takes a while. */
export async function readerOfTemplates(
  { loadTemplates }: Tools,
  bindings: readonly SecretBinding[],
): Promise<ReadTemplate> {
  const has = bindings.some(({ spec }) => spec.targets.some(({ fields }) => fields.some(({ template }) => template)));
  return has ? loadTemplates() : () => [];
}

/** The kind as the cluster serves it, or why it is not known. */
export async function served(apiVersion: string, kind: string, found: Promise<Resource | undefined>) {
  const resource = await attempt(found);
  if (resource instanceof Problem) return resource;
  return resource ?? kindNotFound(apiVersion, kind);
}
