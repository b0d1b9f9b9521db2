/** What `inlay explain` and `inlay trace` share: access to the cluster as the user, and a reader of templates. */
import { fieldsOfTarget, type SecretBinding } from "../api/binding.ts";
import type { KubeObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { attempt } from "../kube/access-error.ts";
import type { Discovery } from "../kube/discovery.ts";
import type { ReadTemplate } from "../sources/uses.ts";
import type { Reader, Reading } from "./reading.ts";

export interface Tools {
  readonly reader: Reader;
  readonly discovery: Discovery;
}

/** Loads the template engine only if a binding has a template. Loading it takes half of the run time. */
export async function readerOfTemplates(bindings: readonly SecretBinding[]): Promise<ReadTemplate> {
  const has = bindings.some(({ spec }) =>
    spec.targets.some((target) => fieldsOfTarget(target).some(({ template }) => template)),
  );
  if (!has) return () => [];
  const { compileTemplate } = await import("../transform/template.ts");
  return (text) => compileTemplate(text).references;
}

/** What `take` keeps of each object of a kind, in one namespace or in all. Empty for a kind that is not served. */
export async function listIfServed<T>(
  { reader, discovery }: Tools,
  { apiVersion, kind }: Pick<KubeObject, "apiVersion" | "kind">,
  namespace: string | undefined,
  take: (object: KubeObject) => T | undefined,
): Promise<Reading<T[]>> {
  const resource = await attempt(discovery.byKind(apiVersion, kind));
  if (resource === undefined) return { state: "Found", it: [] };
  if (resource instanceof Problem) return { state: "Unreadable", message: resource.message };
  return reader.list({ resource, namespace, form: "whole" }, take);
}
