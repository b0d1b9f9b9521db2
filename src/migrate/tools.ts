/** The tools whose objects `inlay migrate` converts, in the order of its output. */
import type { Tool } from "./migration.ts";

export const TOOLS: Readonly<Record<string, () => Promise<Tool>>> = {
  kyverno: async () => (await import("./kyverno.ts")).KYVERNO,
  vso: async () => (await import("./vso.ts")).VSO,
  "patch-operator": async () => (await import("./patch-operator.ts")).PATCH_OPERATOR,
  "external-secrets": async () => (await import("./external-secrets.ts")).EXTERNAL_SECRETS,
  replicator: async () => (await import("./replicator.ts")).REPLICATOR,
  reflector: async () => (await import("./reflector.ts")).REFLECTOR,
  reloader: async () => (await import("./reloader.ts")).RELOADER,
};
