/** Leaves out the sources that the account for Reloader's annotations may not list. Pure. */
import type { SecretBinding } from "../../api/binding.ts";
import { claimsToBeGenerated } from "../../api/reloader.ts";
import { firstOf } from "../../apimachinery/name-list.ts";
import type { ReloaderSource } from "./sources.ts";

/** How many sources a message names. */
const MAX_NAMED = 3;

/**
 * The sources that a binding may name, and the others: a new binding with a source that its account may not read is refused. An existing
 * binding keeps its baseline for such a source.
 */
export function permitted(
  sources: readonly ReloaderSource[],
  refused: ReadonlySet<string>,
  there: ReadonlyMap<string, SecretBinding>,
): [permitted: ReloaderSource[], left: ReloaderSource[]] {
  if (!sources.some(({ kind }) => refused.has(kind))) return [[...sources], []];
  const named = new Set([...there.values()].filter(claimsToBeGenerated).flatMap(namedBy));
  const isPermitted = ({ kind, name }: ReloaderSource) => !refused.has(kind) || named.has(`${kind} ${name}`);
  return [sources.filter(isPermitted), sources.filter((each) => !isPermitted(each))];
}

const namedBy = ({ spec }: SecretBinding) =>
  spec.sources.map(({ secret, configMap, providerClass }) =>
    secret
      ? `Secret ${secret.name}`
      : configMap
        ? `ConfigMap ${configMap.name}`
        : `SecretProviderClass ${providerClass?.name}`,
  );

export const sourcesForbidden = (sources: readonly ReloaderSource[]) =>
  `does not restart for ${firstOf(
    sources.map(({ kind, name }) => `${kind} ${name}`),
    MAX_NAMED,
  )}, because Inlay may not list objects of this kind in this namespace; ask the administrator of Inlay in this cluster to apply optional/reloader.yaml of this release`;
