/** Converts PushSecrets of the External Secrets Operator that write Secrets of the cluster. Pure. */
import { fieldsAt } from "../apimachinery/fields.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { copyCreate, copyFields } from "./copies.ts";
import { findStore, type Store } from "./external-stores.ts";
import type { KnownObjects, ObjectName } from "./known-objects.ts";
import { type Input, metadataOf, type Output } from "./migration.ts";
import { compact, keyPath } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

const SOURCE = "source";

/** A new Secret gets the type, labels and annotations of the pushed one. */
const RULE = { labels: true, annotations: true };

export function pushSecret(input: Input, stores: readonly Store[], known: KnownObjects, output: Output): void {
  const spec = input.root.field("spec");
  // Inlay writes each change at once.
  spec.field("refreshInterval").ignore();
  const refs = spec.field("secretStoreRefs").list();
  const found = refs.map((ref) => ({ ref, store: findStore(ref, input, stores) }));
  const used = found.flatMap(({ store }) => (store?.provider === "kubernetes" ? [store.input] : []));
  const namespaces = found.flatMap(({ ref, store }) => {
    if (store?.provider === "kubernetes") return [store.namespace];
    if (store !== undefined)
      ref.lose("Inlay writes objects of the cluster, and nothing to other stores; keep External Secrets for this one");
    return [];
  });
  const name = spec.field("selector", "secret", "name").text();
  const policy = spec.field("updatePolicy");
  const updates = policy.text() ?? "Replace";
  if (updates !== "Replace" && updates !== "IfNotExists") policy.lose("must be Replace or IfNotExists; correct it");
  const deletes = spec.field("deletionPolicy").text() === "Delete";
  const pushed = new Map<string, JsonObject[]>();
  for (const each of spec.field("data").list()) {
    const [key, remote] = [each.field("match", "secretKey").text(), each.field("match", "remoteRef")];
    const [object = "", property] = [remote.field("remoteKey").text(), remote.field("property").text()];
    const strategy = each.field("conversionStrategy");
    if ((strategy.text() ?? "None") !== "None") strategy.lose("Inlay does not rename keys; write a field for each key");
    if (key === undefined && property !== undefined) {
      remote
        .field("property")
        .lose("without secretKey, the value is all data as JSON, which a field can't be; write a template");
      continue;
    }
    const to = property ?? key;
    const field =
      key === undefined || to === undefined
        ? (copyFields(SOURCE)[0] as JsonObject)
        : { path: keyPath("data", to), from: { source: SOURCE, key } };
    const fields = pushed.get(object);
    if (fields === undefined) pushed.set(object, [field]);
    else fields.push(field);
  }
  if (name === undefined)
    spec.field("selector").lose("Inlay copies a Secret that has a name; write a binding for each Secret");
  if (name === undefined || namespaces.length === 0 || pushed.size === 0) return;
  const source = { kind: "Secret", namespace: input.namespace, name };
  const isWhole = (fields: readonly JsonObject[]) => fields.some(({ path }) => path === "data");
  const manifest = [...pushed.values()].every(isWhole)
    ? {}
    : manifestOf(source, known, spec.field("selector", "secret", "name"));
  const createOf = (fields: readonly JsonObject[]) => {
    const { adopt: _, ...create } = isWhole(fields) ? copyCreate(RULE) : { manifest };
    return updates === "IfNotExists" ? create : { adopt: "Any", ...create };
  };
  const targets = namespaces.flatMap((namespace) =>
    [...pushed].map(([object, fields]) =>
      compact({
        apiVersion: "v1",
        kind: "Secret",
        name: object,
        namespace: namespace === input.namespace ? undefined : namespace,
        mode: updates === "IfNotExists" ? "Once" : undefined,
        onRelease: deletes ? undefined : "Retain",
        create: createOf(fields),
        fields,
      }),
    ),
  );
  const binding = { acknowledge: ["ReadableCopies"], sources: [{ name: SOURCE, secret: { name } }], targets };
  output.add("SecretBinding", { name: input.name, namespace: input.namespace, ...metadataOf(input) }, binding, [
    input,
    ...used,
  ]);
}

/** What programs note on a source for themselves. */
const OWN_NOTES = /^(?:kubectl\.kubernetes\.io|generate\.kyverno\.io)\//;

/** The manifest for single keys, which inherit nothing from their source. */
function manifestOf(source: ObjectName, known: KnownObjects, place: Tracked): JsonObject {
  const found = known.find(source);
  if (found === undefined)
    place.lose(
      `${source.kind} ${source.namespace}/${source.name} is not in these files, so its type, labels and annotations are unknown; add it to the files, set --cluster, or write them to create.manifest`,
    );
  const copied = (field: string) => {
    const entries = Object.entries(fieldsAt(found, "metadata", field)).filter(([key]) => !OWN_NOTES.test(key));
    return entries.length > 0 ? Object.fromEntries(entries) : undefined;
  };
  const metadata = compact({ labels: copied("labels"), annotations: copied("annotations") });
  const type = found?.["type"];
  return compact({
    type: typeof type === "string" ? type : undefined,
    metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
  });
}
