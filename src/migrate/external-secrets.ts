/** Converts the objects of the External Secrets Operator to bindings, and its stores to connections. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import { pushSecret } from "./external-push.ts";
import { Sources } from "./external-sources.ts";
import { findStore, type Store, storeOf, writeConnections } from "./external-stores.ts";
import { type Target, targetOf } from "./external-target.ts";
import { Grants } from "./grants.ts";
import { type Input, metadataOf, type Output, type Tool } from "./migration.ts";
import { compact, labelSelectorOf, refreshOf } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

const DELETE =
  "Delete the ExternalSecret with kubectl delete --cascade=orphan, after this binding is ready. Otherwise, Kubernetes deletes the Secret with it.";

export const EXTERNAL_SECRETS: Tool = {
  title: "External Secrets",
  objects: "ExternalSecrets and SecretStores",
  owns: ({ apiVersion }) => /^(?:[a-z]+\.)?external-secrets\.io\//.test(String(apiVersion)),
  convert(inputs, output, known) {
    const grants = new Grants();
    const stores = inputs.filter(({ kind }) => /^(?:Cluster)?SecretStore$/.test(kind)).map(storeOf);
    for (const input of inputs) {
      if (input.kind === "ExternalSecret") externalSecret(input, input.root.field("spec"), stores, grants, output);
      else if (input.kind === "ClusterExternalSecret") clusterExternalSecret(input, stores, grants, output);
      else if (input.kind === "PushSecret") pushSecret(input, stores, known, output);
      else if (!/^(?:Cluster)?SecretStore$/.test(input.kind))
        input.root.refuse(`Inlay has nothing for a ${input.kind}; keep External Secrets for it`);
    }
    writeConnections(stores, grants, output);
    grants.write(output);
  },
};

/** Where the Secret is written, if it is not the namespace of the ExternalSecret. */
interface Placement {
  readonly namespace: string;
  readonly selectors: readonly JsonObject[];
  readonly name: string;
}

function externalSecret(
  input: Input,
  spec: Tracked,
  stores: readonly Store[],
  grants: Grants,
  output: Output,
  placement?: Placement,
): void {
  const byDefault = findStore(spec.field("secretStoreRef"), input, stores);
  const namespace = placement?.namespace ?? input.namespace;
  const interval = spec.field("refreshInterval");
  const refresh = refreshOf(interval);
  const policy = spec.field("refreshPolicy");
  const isOnce = policy.text() === "CreatedOnce" || /^0+[a-z]*$/.test(interval.text() ?? "");
  if (policy.text() === "OnChange")
    policy.lose("Inlay writes each change of the values; set mode: Once to write them once");
  const sources = new Sources(namespace, refresh);
  const metadata = metadataOf(input);
  const used = new Set<Input>();
  const target: Target = targetOf(spec, placement?.name ?? input.name, placement === undefined ? metadata : {}, {
    storeOf: (ref) => {
      const store = ref.exists ? findStore(ref, input, stores) : byDefault;
      // It becomes no VaultConnection, but a part of the binding.
      if (store?.provider === "kubernetes") used.add(store.input);
      return store;
    },
    sources,
  });
  if (sources.list.length === 0 || target.fields.length === 0 || placement?.selectors.length === 0) return;
  sources.grantTo(input, grants);
  const { object, ...settings } = target;
  const one = compact({
    ...object,
    mode: isOnce ? "Once" : undefined,
    onRelease: settings.onRelease,
    onConflict: "Force",
    create: settings.create,
    fields: settings.fields,
  });
  const targets =
    placement === undefined ? [one] : placement.selectors.map((namespaceSelector) => ({ ...one, namespaceSelector }));
  const binding = compact({
    acknowledge: placement === undefined ? undefined : ["ReadableCopies"],
    defaults: settings.removesKeys ? { onMissing: "Remove" } : undefined,
    sources: sources.list,
    targets,
  });
  output.add(
    "SecretBinding",
    { name: input.name, namespace, ...metadata },
    binding,
    [input, ...used],
    [...(settings.create ? [DELETE] : []), ...settings.notes],
  );
}

/** One binding, in the namespace of the values, copies into all namespaces. */
function clusterExternalSecret(input: Input, stores: readonly Store[], grants: Grants, output: Output): void {
  const spec = input.root.field("spec");
  spec.field("refreshTime").ignore();
  const inner = spec.field("externalSecretSpec");
  const store = findStore(inner.field("secretStoreRef"), input, stores);
  if (store === undefined || store.provider === "other") return;
  spec
    .field("externalSecretMetadata")
    .refuse("the Secrets get the labels and annotations of the template; write them to create.manifest.metadata");
  const single = spec.field("namespaceSelector");
  const names = spec.field("namespaces").texts();
  const selectors = [single, ...spec.field("namespaceSelectors").list()].flatMap((each): JsonObject[] => {
    if (JSON.stringify(each.peek()) !== "{}")
      return [labelSelectorOf(each)].filter((selector) => selector !== undefined);
    each.ignore();
    return [{ names: ["*"] }];
  });
  const all = [...selectors, ...(names.length > 0 ? [{ names }] : [])];
  if (all.length === 0) spec.lose("it selects no namespace; write namespaceSelector, and convert again");
  const name = spec.field("externalSecretName").text() ?? input.name;
  const placement = { namespace: store.namespace, selectors: all, name };
  externalSecret(input, inner, stores, grants, output, placement);
}
