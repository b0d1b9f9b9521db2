/**
 * Fakes of classes: a test gives only the methods that the tested code calls. The names and arguments of methods are checked; the
 * result of a generic method is not, because a fake can't know its type.
 */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../src/api/binding.ts";
import { kindNotFound } from "../../src/kube/access-error.ts";
import type { Client } from "../../src/kube/client.ts";
import type { Identity } from "../../src/kube/identity.ts";
import type { Transport } from "../../src/kube/transport.ts";
import { parseSources } from "../../src/sources/registry.ts";
import type { Dependencies, SyncContext } from "../../src/targets/dependencies.ts";

/** The public methods of `C`, with `unknown` in place of type parameters. As methods, they may take narrower arguments. */
type Methods<C> = {
  [M in keyof C]: C[M] extends (...args: infer A) => infer R ? { method(...args: A): R }["method"] : C[M];
};

export const fakeClient = <M extends keyof Client>(methods: Pick<Methods<Client>, M>) =>
  methods as unknown as Pick<Client, M>;

export const fakeTransport = <M extends keyof Transport>(methods: Pick<Methods<Transport>, M>) =>
  methods as unknown as Pick<Transport, M>;

/** What a poll has for the command line, and while there is no answer. */
export const NOT_IN_FILES = { unavailable: "Unavailable", fromFile: () => assert.fail("it is in no file") } as const;

/** A part of discovery that gives no advice. */
export const WITHOUT_ADVICE = { kindNotFound: async (version: string, kind: string) => kindNotFound(version, kind) };

type Fakes<D> = {
  [P in keyof D]?: D[P] extends (...args: never[]) => unknown ? D[P] : Partial<Methods<D[P]>>;
};

/** A test that reaches a dependency that it does not give fails with a TypeError. */
export const dependenciesOf = <D = Dependencies>(fakes: Fakes<NoInfer<D>>): D => fakes as D;

/** Work in steps that has nothing to do. */
export function* immediately<T>(result: T): Generator<void, T> {
  yield;
  return result;
}

/** A reconcile of a binding without any source that was read. */
export const contextOf = <D extends Partial<Dependencies>>(
  deps: D,
  binding: SecretBinding,
  identity: Identity,
): Omit<SyncContext, "deps"> & { deps: D } => ({
  deps,
  binding,
  identity,
  account: undefined,
  sourceMismatch: undefined,
  seenVersion: () => undefined,
  lastApplied: () => undefined,
  sourceRevisions: "",
  parsedSources: parseSources(binding),
  sourceUids: [],
});
