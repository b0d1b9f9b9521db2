/**
 * The limits of what one namespace can make Inlay keep and do, so that it can't stop Inlay for others. `limits` in the configuration
 * file changes them. What exceeds a limit reports that on the object, and everything else works on.
 */

/** Numbers of bytes are about the number of characters of an object as JSON. */
export type Limits = Readonly<Record<keyof typeof DEFAULT_LIMITS, number>>;

export const DEFAULT_LIMITS = {
  /** The size of one SecretBinding, with its status. */
  bindingBytes: 512 * 1024,
  /** The size of all SecretBindings of a namespace together, and of those that one BindingComposition wants there. */
  bindingBytesPerNamespace: 32 * 1024 ** 2,
  /** The claims of a namespace for which one BindingComposition generates bindings. */
  claimsPerNamespace: 10_000,
  /** The VaultConnections of a namespace. */
  connectionsPerNamespace: 100,
  /** The SecretGrants of a namespace. */
  grantsPerNamespace: 1_000,
  /** The SecretGrants that are considered for one source of a binding. */
  grantsPerSource: 100,
  /** The keys of one source. */
  keysPerSource: 20_000,
  /** The Secrets, ConfigMaps and other objects that the pods of one workload refer to. */
  referencesPerWorkload: 1_000,
} as const;

/**
 * What the controller did not do, or did later, for a namespace that takes too much: the label `limit` of the metric
 * `inlay_tenant_limited_total`. A limit of the configuration has its name, others are named here.
 */
const OTHER_LIMITS = [
  /** An answer of the API server, or an object in it, was too large to read. */
  "answerBytes",
  /** What the watches of a namespace showed of its workloads was too large together to keep. */
  "watchedBytes",
  /** A binding was too much for its namespace, whose bindings own too many fields. */
  "ownedFields",
  /** A status was too large for the API server. */
  "statusBytes",
  /** Work waited because its namespace had used its share of the processor. */
  "processor",
  /** A reconcile was ended at its deadline, or after its number of requests. */
  "reconcile",
  /** Objects of a binding were not watched, because the binding or its namespace has too many. */
  "watches",
  /** An event was dropped. */
  "events",
  /** A workload was not restarted, because it restarted too often. */
  "restarts",
] as const;

export type LimitName = keyof Limits | (typeof OTHER_LIMITS)[number];
