/** Checks whether Inlay can process a composition: its kind is served, and its spec compiles. */
import { bindingKey, type SecretBinding } from "../../api/binding.ts";
import type { BindingComposition } from "../../api/composition.ts";
import { apiVersionOf, type Resource } from "../../apimachinery/objects.ts";
import { attemptSync, Problem } from "../../apimachinery/problem.ts";
import { compileComposition } from "../../composition/compile.ts";
import { attempt } from "../../kube/access-error.ts";
import type { Discovery } from "../../kube/discovery.ts";
import { serviceAccountIdentity } from "../../kube/identity.ts";
import { type GeneratedBindingServices, GeneratedBindings } from "../generated-bindings.ts";
import type { CompositionState } from "./composition-state.ts";
import { generatorOf } from "./made-bindings.ts";

interface Services extends GeneratedBindingServices {
  discovery: Pick<Discovery, "byKindAsNamed" | "byKindInGroup" | "kindNotFound" | "forget">;
}

/**
 * Puts the compiled composition into `state`, unless it is up to date. Returns why the composition can't be processed. `written`
 * is called with the key of a binding that was written without a change that a watch shows.
 */
export async function accept(
  services: Services,
  composition: BindingComposition,
  state: CompositionState,
  written: (key: string) => void,
): Promise<Problem | undefined> {
  const { metadata, spec } = composition;
  const { apiVersion, kind } = spec.for;
  if (state.noticeRefresh(composition)) services.discovery.forget(apiVersion);
  const resource = await attempt(services.discovery.byKindAsNamed(apiVersion, kind));
  if (resource instanceof Problem) return resource;
  if (resource === undefined) return services.discovery.kindNotFound(apiVersion, kind);
  const { generation = 0, name } = metadata;
  const before = state.accepted;
  if (before?.generation === generation && servingOf(before.resource) === servingOf(resource)) return undefined;
  const compiled = attemptSync(() => compileComposition(spec, resource));
  if (compiled instanceof Problem) return compiled;
  const preferred = await attempt(services.discovery.byKindInGroup(apiVersion, kind));
  if (preferred instanceof Problem) return preferred;
  const identity = serviceAccountIdentity(spec.serviceAccount.namespace, spec.serviceAccount.name);
  const ownOf = (each: SecretBinding) => {
    const known = state.own.get(bindingKey(each));
    return known?.uid === each.metadata.uid ? known : undefined;
  };
  const generated =
    before?.identity === identity
      ? before.generated
      : new GeneratedBindings(services, generatorOf(name, identity, ownOf), written);
  const ownerApiVersion = apiVersionOf(preferred ?? resource);
  const entries = new Set(compiled.bindings.map((each) => each.name));
  state.accepted = { generation, compiled, entries, resource, ownerApiVersion, identity, generated };
  state.isListed = false;
  return undefined;
}

/** The properties of a served kind that matter here. */
const servingOf = ({ version, plural, namespaced, hasStatus }: Resource): string =>
  [version, plural, namespaced, hasStatus].join();
