/** What looking takes, beside what is looked at: the cluster as the user sees it, and who reads templates. */
import type { Discovery } from "../kube/discovery.ts";
import { attempt, kindNotFound } from "../kube/refusal.ts";
import type { SecretBinding } from "../model/binding.ts";
import type { Resource } from "../model/kube-object.ts";
import { Problem } from "../model/problem.ts";
import type { ReadTemplate } from "../model/uses.ts";
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
