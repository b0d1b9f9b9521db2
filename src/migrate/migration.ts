/** The input and output of the converters of other tools' objects. Pure. */
import { fieldsAt } from "../apimachinery/fields.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import { sentenceOf } from "../apimachinery/problem.ts";
import { type Mistake, type ObjectDocument, readDocuments, type TextFile } from "../render/documents.ts";
import { checkOwn, OWN_VERSION } from "../render/own-kinds.ts";
import { KnownObjects, keyOf, type ObjectName } from "./known-objects.ts";
import { type Loss, Tracked } from "./tracked.ts";

/** An object of another tool. */
export interface Input {
  readonly root: Tracked;
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace: string;
  /** The part that is converted by itself. Undefined for all of the object. */
  readonly part?: Tracked;
}

/** The input as far as one part of it is concerned, such as a rule of a policy: what is lost in other parts does not matter. */
export const partOf = (input: Input, part: Tracked): Input => {
  part.separate();
  return { ...input, part };
};

/** An object of Inlay. */
export interface Converted {
  /** The objects that it replaces, such as `policies.yaml:1: ClusterPolicy sync-secrets`. */
  readonly from: readonly string[];
  /** What to do before you apply it, and what differs. */
  readonly notes: readonly string[];
  /** What the other tool did and this object does not. If there is any, a binding is suspended. At most 20. */
  readonly notConverted: readonly Mistake[];
  readonly object: JsonObject;
}

export interface Migration {
  readonly converted: readonly Converted[];
  /** What is not converted, and mistakes in the files. */
  readonly lost: readonly Mistake[];
  /** Those of `lost` that concern no converted object. */
  readonly unplaced: readonly Mistake[];
  /** What is known about objects that need no conversion. */
  readonly remarks: readonly string[];
  /** The number of objects in the files that do not belong to the tools, and are no sources of their copies. */
  readonly others: number;
  /** The number of objects that belong to the tools. */
  readonly own: number;
  /** The sources of copies of which something is not known: whether they are immutable, or permit a copy, or the type for a single key. */
  readonly missing: readonly ObjectName[];
}

export interface Tool {
  /** Its name in messages. */
  readonly title: string;
  /** What its objects are called. */
  readonly objects: string;
  owns(object: JsonObject): boolean;
  /** Whether objects of a kind without `Cluster` in its name have no namespace. */
  isClusterScoped?(apiVersion: string, kind: string): boolean;
  /** Must handle each field of each input, or report it. */
  convert(inputs: readonly Input[], output: Output, known: KnownObjects): void;
}

type Draft = Omit<Converted, "from" | "notConverted"> & { readonly inputs: readonly Input[] };

/** An object that bindings of other namespaces may read only with a SecretGrant. */
export interface Granted extends ObjectName {
  readonly kind: "Secret" | "ConfigMap" | "VaultConnection";
}

/** An entry of `from` in the grant of an object, and the object that needs it. */
interface Grant {
  readonly granted: Granted;
  readonly from: JsonObject;
  readonly input: Input;
}

const MAX_FROM = 64;

export class Output {
  readonly remarks: string[] = [];
  readonly #drafts: Draft[] = [];
  /** The last number after each name. */
  readonly #numbers = new Map<string, number>();
  readonly #taken = new Set<string>();
  #grants: Grant[] = [];

  /** If an object of that kind and name exists already, the name gets a number. */
  add(
    kind: string,
    metadata: JsonObject & { name: string },
    spec: JsonObject,
    from: readonly Input[],
    notes: readonly string[] = [],
  ): void {
    const nameAt = (number: number) => (number === 1 ? metadata.name : `${metadata.name}-${number}`);
    const numbered = (number: number) => `${kind} ${String(metadata["namespace"])}/${nameAt(number)}`;
    let number = this.#numbers.get(numbered(1)) ?? 1;
    while (this.#taken.has(numbered(number))) number++;
    this.#numbers.set(numbered(1), number);
    this.#taken.add(numbered(number));
    this.#drafts.push({
      inputs: from,
      notes: notes.map(plain),
      object: { apiVersion: OWN_VERSION, kind, metadata: { ...metadata, name: nameAt(number) }, spec },
    });
  }

  /** Permits the bindings that `from` matches to read an object. A binding needs no grant for an object of its own namespace. */
  grant(granted: Granted, from: JsonObject, input: Input): void {
    if (from["namespace"] !== granted.namespace) this.#grants.push({ granted, from, input });
  }

  /** Whether one of the grants names the object. */
  isGranted(granted: Granted): boolean {
    return this.#grants.some((each) => keyOf(each.granted) === keyOf(granted));
  }

  /** Adds the SecretGrants for what was granted so far. */
  addGrants(): void {
    for (const ofObject of Map.groupBy(this.#grants, ({ granted }) => keyOf(granted)).values()) {
      const { kind, namespace, name } = (ofObject[0] as Grant).granted;
      const entries = [...Map.groupBy(ofObject, ({ from }) => JSON.stringify(from)).values()];
      for (let at = 0; at < entries.length; at += MAX_FROM) {
        const some = entries.slice(at, at + MAX_FROM);
        const inputs = new Set(some.flat().map(({ input }) => input));
        const spec = { from: some.map(([first]) => (first as Grant).from), to: [{ kind, name }] };
        this.add("SecretGrant", { name, namespace }, spec, [...inputs]);
      }
    }
    this.#grants = [];
  }

  /** Something about objects that need no conversion. */
  remark(text: string): void {
    this.remarks.push(plain(text));
  }

  /** The objects, with what is lost in their inputs. Other objects than bindings have what concerns no binding. */
  converted(losses: Losses): Converted[] {
    const drafts = this.#drafts.map((draft) => {
      const suspended = suspendedObject(draft.object);
      return { ...draft, suspended, lost: losses.of(draft.inputs) };
    });
    const ofBindings = new Set(drafts.flatMap(({ suspended, lost }) => (suspended ? lost : [])));
    return drafts.map(({ inputs, notes, object, suspended, lost }) => {
      const from = [...new Set(inputs.map(describe))];
      const all = mistakesOf(suspended ? lost : lost.filter((each) => !ofBindings.has(each)));
      const notConverted = all.slice(0, MAX_MARKS);
      const more = all.length - notConverted.length;
      return {
        from,
        notes: [
          ...notes,
          ...(suspended && all.length > 0 ? [SUSPENDED] : []),
          ...(more > 0 ? [`Standard error has ${more} more lines about this object.`] : []),
        ],
        notConverted,
        object: suspended && all.length > 0 ? suspended : object,
      };
    });
  }

  /** Reports why the API server would refuse an object, such as for too many fields. */
  check(): void {
    for (const { object, inputs } of this.#drafts)
      for (const wrong of checkOwn(object, String(fieldsAt(object, "metadata")["name"])).wrong)
        partIn(inputs[0])?.lose(`the API server would refuse ${String(object["kind"])}: ${sentenceOf(wrong)}`);
  }
}

const partIn = (input: Input | undefined): Tracked | undefined => input?.part ?? input?.root;

/** The most lines above one object. All are in `lost`. */
const MAX_MARKS = 20;
const SUSPENDED =
  "Suspended, because the binding would write less, or to more objects, than before. For each NOT CONVERTED line, add what is missing, or check that you don't need it, and remove the line. Then remove suspend.";

const mistakesOf = (lost: readonly Loss[]): Mistake[] => lost.map(({ mistake }) => mistake);

/** What is lost in the inputs. */
class Losses {
  readonly all: readonly Mistake[];
  /** By the key of the part that it concerns. Without one, it concerns all of the input. */
  readonly #byRoot: ReadonlyMap<Tracked, ReadonlyMap<string | undefined, readonly Loss[]>>;
  readonly #placed = new Set<Loss>();

  constructor(inputs: readonly Input[]) {
    const lost = inputs.map(({ root }) => [root, root.allLost()] as const);
    this.all = mistakesOf(lost.flatMap(([, each]) => each));
    this.#byRoot = new Map(lost.map(([root, each]) => [root, Map.groupBy(each, ({ part }) => part)]));
  }

  /** What concerns an object that the inputs become. */
  of(inputs: readonly Input[]): Loss[] {
    const lost = inputs.flatMap(({ root, part }) => {
      const byPart = this.#byRoot.get(root);
      const parts = part === undefined ? [...(byPart?.keys() ?? [])] : [undefined, part.key];
      return parts.flatMap((each) => byPart?.get(each) ?? []);
    });
    for (const each of lost) this.#placed.add(each);
    return [...new Set(lost)];
  }

  /** What concerns no object that `of` was called for. */
  get unplaced(): Mistake[] {
    const lost = [...this.#byRoot.values()].flatMap((byPart) => [...byPart.values()].flat());
    return mistakesOf(lost.filter((each) => !this.#placed.has(each)));
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

/** Where the object is, its kind and name. */
export const describe = ({ root, kind, namespace, name }: Input) =>
  plain(`${root.place}: ${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`);

/**
 * Converts the objects of the files. `namespace` is that of objects that name none. `live` are sources that were read from a cluster,
 * `unread` mistakes in reading the files.
 */
export function migrate(
  tools: Tool | readonly Tool[],
  files: readonly TextFile[],
  namespace: string,
  live?: readonly JsonObject[],
  unread: readonly Mistake[] = [],
): Migration {
  const { documents, mistakes } = readDocuments(files);
  const migration = migrateDocuments(tools, documents, namespace, live);
  const all = [...unread, ...mistakes];
  return { ...migration, lost: [...all, ...migration.lost], unplaced: [...all, ...migration.unplaced] };
}

export function migrateDocuments(
  tools: Tool | readonly Tool[],
  documents: readonly ObjectDocument[],
  namespace: string,
  live?: readonly JsonObject[],
): Migration {
  const all = documents.map(({ object }) => object);
  const known = new KnownObjects(all, namespace, live);
  const output = new Output();
  const inputs = [tools].flat().flatMap((tool) => {
    const own = documents
      .filter(({ object }) => tool.owns(object))
      .map((document) => inputOf(document, namespace, tool));
    if (own.length > 0) tool.convert(own, output, known);
    output.addGrants();
    return own;
  });
  output.check();
  const losses = new Losses(inputs);
  const converted = output.converted(losses);
  const others = all.filter((object) => !known.isUsed(object) && ![tools].flat().some((tool) => tool.owns(object)));
  return {
    converted,
    lost: losses.all,
    unplaced: losses.unplaced,
    remarks: output.remarks,
    others: others.length,
    own: inputs.length,
    missing: known.missing,
  };
}

/** Fields that the API server sets. */
const SERVER_FIELDS = [
  "uid resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds managedFields",
  "ownerReferences finalizers selfLink",
].flatMap((line) => line.split(" "));

function inputOf(document: ObjectDocument, namespace: string, tool: Tool): Input {
  const root = Tracked.of(document);
  const metadata = root.field("metadata");
  metadata.ignore(...SERVER_FIELDS);
  root.ignore("status");
  metadata.field("annotations", "kubectl.kubernetes.io/last-applied-configuration").ignore();
  const [apiVersion = "", kind = ""] = root.textsOf("apiVersion", "kind");
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
