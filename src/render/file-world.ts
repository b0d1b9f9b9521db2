/** The world of files: what a step of a binding may ask, answered by the objects in the files and by values in place of stores. */
import type { SecretBinding } from "../api/binding.ts";
import type { Installation } from "../api/installation.ts";
import { describeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { type Advice, attemptSync, type MissingPolicy, Problem, reasonOf } from "../apimachinery/problem.ts";
import { SECRET_GRANTS } from "../apimachinery/resources.ts";
import { serviceAccountIdentity } from "../kube/identity.ts";
import { type CompiledBinding, compile, listedNow, readValues, type Values, type World } from "../pipeline/compile.ts";
import { notGranted, type ProducedBy } from "../sources/grant-rules.ts";
import type { Poll, PollState, StoreFiles } from "../sources/poll.ts";
import { connectionKinds } from "../sources/registry.ts";
import { finish } from "../workqueue/cpu-scheduler.ts";
import type { FileCluster } from "./file-cluster.ts";
import type { Inputs } from "./inputs.ts";
import { ownResource } from "./own-kinds.ts";

export interface FileWorld extends World {
  /** Missing values and connections, and what to add to the files. */
  readonly notes: ReadonlySet<string>;
}

/** For one binding. Every connection is ready. */
export function fileWorld(
  { client, discovery, watcher, find }: FileCluster,
  { stores }: Pick<Inputs, "stores">,
  installation: Installation,
  producedBy: ProducedBy = "none",
): FileWorld {
  const notes = new Set<string>();
  const note = (text: string) => void notes.add(text);
  const files: StoreFiles = {
    find,
    fieldsOf: stores.fieldsOf,
    missing: (part, key) => note(`there are no values for ${part} ${key}; ${stores.adviceFor(part, key)}`),
    note,
  };
  return {
    notes,
    client,
    discovery,
    watcher,
    installation,
    compositionOf: () => producedBy,
    stepsOf: () => async (work) => finish(work),
    connections: {
      get(ref) {
        const found = find(ref);
        const called = describeObject(ref.resource.kind, ref.namespace, ref.name);
        if (found === undefined)
          note(`${called} is not in the files, so what it allows is not checked; add it to the files`);
        return connectionKinds()
          .find(({ resource }) => resource === ref.resource)
          ?.fromFile(found);
      },
    },
    polls: {
      stateOf<T>(poll: Poll<T>): PollState<T> {
        const answer = attemptSync(() => poll.fromFile(files));
        return answer instanceof Problem ? { phase: "failed", problem: answer } : { phase: "synced", answer };
      },
    },
  };
}

/** Compiles a binding that is in files. */
export const compileFile = (binding: SecretBinding, world: World): Promise<CompiledBinding> => {
  const { metadata, spec } = binding;
  const identity = serviceAccountIdentity(metadata.namespace as string, spec.serviceAccountName);
  return compile(binding, { identity, accountUid: "" }, world);
};

/** The values of a binding, and the SecretGrants that it needs if the files contain no grants at all: then all sources are read. */
export async function valuesInFiles(
  compiled: CompiledBinding,
  world: FileWorld,
  { objects, isCluster }: Pick<Inputs, "objects" | "isCluster">,
): Promise<{ values: Values; grants: readonly Advice[] }> {
  const hasGrants = isCluster || objects.some(({ object }) => ownResource(object) === SECRET_GRANTS);
  const shown = listedNow(compiled, world);
  const grants = hasGrants ? shown.grants : { ...shown.grants, grantsFor: () => undefined };
  const values = await readValues(compiled, world.client, { ...shown, grants }, "more");
  const needed = (ref: ObjectRef, policy: MissingPolicy) =>
    reasonOf(notGranted(shown.grants.asker(), ref, policy).within("the files contain no grants"));
  return {
    values,
    grants: compiled.resolved.flatMap(({ grantedObject, policy }) =>
      grantedObject === undefined || hasGrants ? [] : needed(grantedObject, policy),
    ),
  };
}
