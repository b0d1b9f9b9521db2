/**
 * Composes the record that Reloader would write to the pod template for a restart by its annotations, without a hash against
 * which values could be guessed. It is written together with the restart annotation, because another change of the template would
 * be another restart. Pure.
 */
import type { SecretBinding } from "../../api/binding.ts";
import { claimsToBeGenerated, LAST_RELOADED_FROM } from "../../api/reloader.ts";
import { digestParts, type RolloutStatus } from "../../api/rollout.ts";
import { at, fieldsAt, listAt, valueAt } from "../../apimachinery/fields.ts";
import type { KubeObject } from "../../apimachinery/objects.ts";
import { podReferences } from "../../workloads/pod-references.ts";
import type { PlannedRestart } from "../decide/schedule.ts";

/** Reloader's names of the kinds. */
const TYPES = { Secret: "SECRET", ConfigMap: "CONFIGMAP", SecretProviderClass: "SECRETPROVIDERCLASS" };

interface Restarted {
  binding: SecretBinding;
  planned: Pick<PlannedRestart, "dependent" | "causes">;
  /** The text of the restart annotation. */
  text: string;
  pending: RolloutStatus["pending"];
}

/**
 * `now` is the workload before the restart. If it has that restart annotation already, an interrupted request had arrived, and
 * its record stays: another time would change the template again. Otherwise, a binding that no annotations generated has no record.
 */
export function reloadRecord({ binding, planned, text, pending }: Restarted, now: KubeObject): string | undefined {
  const { stampAt } = planned.dependent;
  // The path ends with metadata.annotations[key].
  const [template, annotations] = [3, 1].map((count) => valueAt(now, stampAt.upTo(stampAt.segments.length - count)));
  const stamp = stampAt.segments.at(-1);
  const noted = at(annotations, LAST_RELOADED_FROM);
  if (stamp?.kind === "key" && at(annotations, stamp.key) === text)
    return typeof noted === "string" ? noted : undefined;
  const source = claimsToBeGenerated(binding) ? sourceOf(binding, planned.causes) : undefined;
  if (source === undefined) return undefined;
  const container = containerOf(at(template, "spec"), source);
  return JSON.stringify({
    type: TYPES[source.kind],
    name: source.name,
    namespace: binding.metadata.namespace,
    hash: text,
    containerRefs: container === undefined ? [] : [container],
    observedAt: Math.floor(Date.parse(pending?.lastChangeTime ?? "") / 1000),
  });
}

type Source = { kind: keyof typeof TYPES; name: string };

/** The first source that changed: Reloader records one. */
function sourceOf({ spec }: SecretBinding, causes: readonly string[]): Source | undefined {
  const changed = causes.map((id) => digestParts(id).source);
  const { secret, configMap, providerClass } = spec.sources.find(({ name = "" }) => changed.includes(name)) ?? {};
  if (secret?.name !== undefined) return { kind: "Secret", name: secret.name };
  if (providerClass !== undefined) return { kind: "SecretProviderClass", name: providerClass.name };
  return configMap?.name === undefined ? undefined : { kind: "ConfigMap", name: configMap.name };
}

/** The first container that reads it. If only an init container or none reads it, the first of all, as in Reloader. */
function containerOf(podSpec: unknown, { kind, name }: Source): string | undefined {
  const volumes = listAt(podSpec, "volumes");
  const reads = (container: unknown) => {
    const mounted = listAt(container, "volumeMounts").map((mount) => at(mount, "name"));
    const own = volumes.filter((volume) => mounted.includes(at(volume, "name")));
    return podReferences({ containers: [fieldsAt(container)], volumes: own }).some(
      (each) => each.kind === kind && each.name === name,
    );
  };
  const containers = listAt(podSpec, "containers");
  const called = at(containers.find(reads) ?? containers[0], "name");
  return typeof called === "string" ? called : undefined;
}
