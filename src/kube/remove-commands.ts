/** Prints the commands that remove what a deleted binding left in an object. Pure. */
import type { ObjectRef } from "../apimachinery/objects.ts";
import type { JsonPatchOperation } from "./client.ts";
import { resourceText, shellWord } from "./grant-commands.ts";

export const patchCommand = (ref: ObjectRef, patch: readonly JsonPatchOperation[]): string =>
  `kubectl patch ${wordsOf(ref)} --type=json -p ${shellWord(JSON.stringify(patch))}`;

export const deleteCommand = (ref: ObjectRef): string => `kubectl delete ${wordsOf(ref)}`;

/** The command that shows what bindings left in the object. */
export const explainCommand = ({ resource, namespace, name }: ObjectRef): string =>
  `npx inlay explain ${resourceText(resource)}/${shellWord(name)}${inNamespace(namespace)}`;

const wordsOf = ({ resource, namespace, name }: ObjectRef) =>
  `${resourceText(resource)} ${shellWord(name)}${inNamespace(namespace)}`;

const inNamespace = (namespace: string | undefined) => (namespace === undefined ? "" : ` -n ${shellWord(namespace)}`);
