/** Changes that lead to changes of other objects: what changes, what follows, and how long that takes. */
import { type AnyObject, atOnce, type Client } from "./cluster.ts";
import { accessKeyOf, harborPath, makeBindings, makeHarbors, makeNamespace, makeSecrets, secretPath } from "./world.ts";

/** The floor is a client that writes the changed object and then its dependents. */
export type Side = "floor" | "ours";
export type Compared<T> = Record<Side, T>;
export const SIDES: readonly Side[] = ["floor", "ours"];

/** How many requests a client has open in a burst. */
const WRITERS = 50;

let values = 0;
/** A value that no change has had. */
const nextValue = () => `value-${values++}`;

export interface Write {
  path: string;
  /** A JSON merge patch, or a configuration for server-side apply. */
  patch: object;
  apply?: boolean;
}

/** A number of objects that change, such as Secrets, and the dependents of each. */
export interface Course {
  /** The effect of a change, in the table. */
  what: string;
  count: number;
  /** The collection of the dependents. */
  watched(side: Side): string;
  /** The change of object `i`, after which `textOf` its dependents differs. */
  change(side: Side, i: number, value: string): Write;
  /** What the floor writes for the change. */
  dependents(side: Side, i: number, value: string): Write[];
  textOf(object: AnyObject): string | undefined;
  /** Waits until only the controller still works on the last changes. */
  settled?(): Promise<void>;
  /** Pauses other programs that would work during a burst, and resumes them, because their load falls on one side by chance. */
  hush?(on: boolean): Promise<void>;
}

/** Secrets `s-0`… of a namespace for each side, with values for the HarborClusters `h-0`…. */
export function harborCourse(namespaces: Compared<string>, count: number): Course {
  return {
    what: "change",
    count,
    watched: (side) => harborPath(namespaces[side]),
    change: (side, i, value) => secretChange(namespaces[side], i, value),
    dependents: (side, i, value) => [{ path: harborPath(namespaces[side], `h-${i}`), patch: harborPatch(value) }],
    textOf: accessKeyOf,
  };
}

/** Creates the namespaces of such a course, with everything in them, and the bindings of Inlay's. */
export async function makeHarborCourse(
  client: Client,
  namespaces: Compared<string>,
  count: number,
  { bytes = 1_000, fields = {} } = {},
): Promise<Course> {
  for (const side of SIDES) {
    const namespaceOf = () => namespaces[side];
    await makeNamespace(client, namespaces[side]);
    await makeSecrets(client, namespaceOf, count, { bytes });
    await makeHarbors(client, namespaceOf, count, { fields });
  }
  await makeBindings(client, () => namespaces.ours, count);
  return harborCourse(namespaces, count);
}

export const secretChange = (namespace: string, i: number, value: string): Write => ({
  path: secretPath(namespace, `s-${i}`),
  patch: { stringData: { accessKeyID: value } },
});

/** The fields that the bindings of the benchmark write. */
export const harborPatch = (value: string) => ({
  spec: { storage: { spec: { s3: { accesskey: value, regionendpoint: `https://${value}.example.com` } } } },
});

/** Changes of one side, which end when a watch has shown the changes of their dependents. */
export class Changes {
  readonly #client: Client;
  readonly #course: Course;
  readonly #side: Side;
  /** By namespace and name of a dependent. */
  readonly #texts = new Map<string, string | undefined>();
  readonly #waiting = new Map<string, ((at: number) => void)[]>();
  stop: () => void = () => {};

  private constructor(client: Client, course: Course, side: Side) {
    this.#client = client;
    this.#course = course;
    this.#side = side;
  }

  static async start(client: Client, course: Course, side: Side): Promise<Changes> {
    const changes = new Changes(client, course, side);
    changes.stop = await client.watch(course.watched(side), (object, at) => changes.#saw(object, at));
    return changes;
  }

  /** Changes object `i`. Returns the milliseconds until all its dependents have changed. */
  async single(i: number): Promise<number> {
    const value = nextValue();
    const arrived = this.#next(i, value);
    const from = performance.now();
    await this.#write(i, value);
    return (await arrived) - from;
  }

  /** Changes all objects at once. Returns the milliseconds until all dependents have changed. Calls back when only Inlay works. */
  async burst(written?: () => void): Promise<number> {
    const { count } = this.#course;
    const value = nextValue();
    const arrived = Promise.all(Array.from({ length: count }, (_, i) => this.#next(i, `${value}-${i}`)));
    const from = performance.now();
    await atOnce(count, WRITERS, (i) => this.#write(i, `${value}-${i}`));
    written?.();
    return Math.max(...(await arrived)) - from;
  }

  async #write(i: number, value: string): Promise<void> {
    const { path, patch } = this.#course.change(this.#side, i, value);
    await this.#client.merge(path, patch);
    if (this.#side === "ours") return;
    const dependents = this.#course.dependents(this.#side, i, value).values();
    await Promise.all(
      Array.from({ length: WRITERS }, async () => {
        for (const { path, patch, apply } of dependents) await this.#client[apply ? "apply" : "merge"](path, patch);
      }),
    );
  }

  /** When all dependents of an object have changed next. */
  async #next(i: number, value: string): Promise<number> {
    const dependents = this.#course.dependents(this.#side, i, value);
    return Math.max(...(await Promise.all(dependents.map(({ path }) => this.#nextOf(path)))));
  }

  #nextOf(path: string): Promise<number> {
    const [namespace, , name] = path.split("/namespaces/")[1]?.split("/") ?? [];
    const key = `${namespace}/${name}`;
    return new Promise((resolve) => {
      this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), resolve]);
    });
  }

  #saw(object: AnyObject, at: number): void {
    const key = `${object.metadata.namespace}/${object.metadata.name}`;
    const text = this.#course.textOf(object);
    if (this.#texts.get(key) === text) return;
    this.#texts.set(key, text);
    const waiting = this.#waiting.get(key) ?? [];
    this.#waiting.delete(key);
    for (const resolve of waiting) resolve(at);
  }
}

export async function startChanges(client: Client, course: Course): Promise<Compared<Changes>> {
  return { floor: await Changes.start(client, course, "floor"), ours: await Changes.start(client, course, "ours") };
}
