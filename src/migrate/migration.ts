/** The input and output of the converters of other tools' objects. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import { type Mistake, type ObjectDocument, readDocuments, type TextFile } from "../render/documents.ts";
import { OWN_VERSION } from "../render/own-kinds.ts";
import { Tracked } from "./tracked.ts";

/** An object of the other tool. */
export interface Input {
  readonly root: Tracked;
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace: string;
}

/** An object of Inlay. */
export interface Converted {
  /** The objects that it replaces, such as `policies.yaml:1: ClusterPolicy sync-secrets`. */
  readonly from: readonly string[];
  /** What to do before you apply it, and what differs. */
  readonly notes: readonly string[];
  readonly object: JsonObject;
}

export interface Migration {
  readonly converted: readonly Converted[];
  /** What is not converted, and mistakes in the files. */
  readonly lost: readonly Mistake[];
  /** The number of objects in the files that do not belong to the tool. */
  readonly others: number;
}

export interface Tool {
  /** Its name in messages. */
  readonly title: string;
  /** What its objects are called. */
  readonly objects: string;
  owns(object: JsonObject): boolean;
  /** Whether objects of a kind without `Cluster` in its name have no namespace. */
  isClusterScoped?(apiVersion: string, kind: string): boolean;
  /** Must handle each field of each input, or report it. `all` has the objects of all kinds in the files. */
  convert(inputs: readonly Input[], output: Output, all: readonly JsonObject[]): void;
}

export class Output {
  readonly #converted: (Converted & { readonly inputs: readonly Input[] })[] = [];

  get converted(): readonly Converted[] {
    return this.#converted.map(({ from, notes, object }) => ({ from, notes, object }));
  }

  /** Suspends all bindings that replace the input. */
  suspend(input: Input): void {
    for (const [at, converted] of this.#converted.entries()) {
      const suspended = converted.inputs.includes(input) ? suspendedObject(converted.object) : undefined;
      if (suspended !== undefined && !converted.notes.includes(SUSPENDED))
        this.#converted[at] = { ...converted, notes: [...converted.notes, SUSPENDED], object: suspended };
    }
  }

  /** If an object of that kind and name exists already, the name gets a number. */
  add(
    kind: string,
    metadata: JsonObject & { name: string },
    spec: JsonObject,
    from: readonly Input[],
    notes: readonly string[] = [],
  ): void {
    const isTaken = (name: string) =>
      this.#converted.some(({ object }) => {
        const { name: other, namespace } = object["metadata"] as JsonObject;
        return object["kind"] === kind && other === name && namespace === metadata["namespace"];
      });
    let name = metadata.name;
    for (let n = 2; isTaken(name); n++) name = `${metadata.name}-${n}`;
    this.#converted.push({
      inputs: from,
      from: from.map(describe),
      notes: notes.map(plain),
      object: { apiVersion: OWN_VERSION, kind, metadata: { ...metadata, name }, spec },
    });
  }
}

/** Undefined for a kind that is no binding and creates none. */
function suspendedObject(object: JsonObject): JsonObject | undefined {
  const spec = object["spec"] as JsonObject;
  if (object["kind"] === "SecretBinding") return { ...object, spec: { suspend: true, ...spec } };
  if (object["kind"] !== "BindingComposition") return undefined;
  const bindings = (spec["bindings"] as JsonObject[]).map((entry) => {
    const base = entry["base"] as JsonObject;
    return { ...entry, base: { ...base, spec: { suspend: true, ...(base["spec"] as JsonObject) } } };
  });
  return { ...object, spec: { ...spec, bindings } };
}

const describe = ({ root, kind, namespace, name }: Input) =>
  plain(`${root.place}: ${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`);

/** Converts the objects of the files. `namespace` is that of objects that name none. */
export function migrate(tool: Tool, files: readonly TextFile[], namespace: string): Migration {
  const { documents, mistakes } = readDocuments(files);
  const migration = migrateDocuments(tool, documents, namespace);
  return { ...migration, lost: [...mistakes, ...migration.lost] };
}

export function migrateDocuments(tool: Tool, documents: readonly ObjectDocument[], namespace: string): Migration {
  const own = documents.filter(({ object }) => tool.owns(object));
  const inputs = own.map((document) => inputOf(document, namespace, tool));
  const output = new Output();
  tool.convert(
    inputs,
    output,
    documents.map(({ object }) => object),
  );
  const lost = inputs.map((input) => ({ input, lost: input.root.allLost() }));
  const restricted = lost.filter((each) => each.lost.some(({ message }) => RESTRICTS.test(message)));
  for (const { input } of restricted) output.suspend(input);
  return {
    converted: output.converted,
    lost: lost.flatMap((each) => each.lost),
    others: documents.length - own.length,
  };
}

/** The path of a condition. Without it, an object would affect more than it did with the other tool. */
const RESTRICTS =
  /^(?:[^: ]*\.)?(?:match|exclude|\w*[pP]reconditions|context|conditions|\w*[sS]electors?|allowedNamespaces)\b[^ ]*: /;
const SUSPENDED =
  "Suspended, because a condition is not converted. Add the condition, or check that you don't need it, and remove suspend.";

/** Fields that the API server sets. */
const SERVER_FIELDS = [
  "uid resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds managedFields",
  "ownerReferences finalizers selfLink",
].flatMap((line) => line.split(" "));

function inputOf(document: ObjectDocument, namespace: string, tool: Tool): Input {
  const root = Tracked.of(document);
  const metadata = root.field("metadata");
  for (const field of SERVER_FIELDS) metadata.field(field).ignore();
  root.field("status").ignore();
  metadata.field("annotations", "kubectl.kubernetes.io/last-applied-configuration").ignore();
  const [apiVersion = "", kind = ""] = [root.field("apiVersion").text(), root.field("kind").text()];
  const isCluster = kind.startsWith("Cluster") || tool.isClusterScoped?.(apiVersion, kind) === true;
  return {
    root,
    apiVersion,
    kind,
    name: metadata.field("name").text() ?? "unnamed",
    namespace: isCluster ? "" : (metadata.field("namespace").text() ?? namespace),
  };
}

/** The labels and annotations of an input, without those that only the other tool uses. */
export function metadataOf({ root }: Input, isTools: (key: string) => boolean = () => false): JsonObject {
  const result: JsonObject = {};
  for (const field of ["labels", "annotations"]) {
    const kept: Record<string, string> = {};
    for (const [key, value] of root.field("metadata", field).entries()) {
      if (isTools(key) || key.startsWith("kubectl.kubernetes.io/")) value.ignore();
      else {
        const text = value.text();
        if (text !== undefined) kept[key] = text;
      }
    }
    if (Object.keys(kept).length > 0) result[field] = kept;
  }
  return result;
}
