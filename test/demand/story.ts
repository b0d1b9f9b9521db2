/** Tests a row step by step in a namespace of its own, as a user of the custom resource would use Inlay. */
import assert from "node:assert/strict";
import type { AnyObject, RequestFailed } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn } from "../controller/leak-detector.ts";
import { createNamespace, type Rule, type TestNamespace } from "../controller/test-namespace.ts";
import type { Place, Row, Target, Values } from "./row.ts";

const BINDING = "demand";

export async function live(row: Row): Promise<void> {
  const team = await createNamespace();
  await grantTargets(team, row.targets);
  const story = new Story(team, row);
  await story.begins();
  await story.binds("Remove");
  await story.holds();
  await story.rotates();
  await story.removes();
  await story.binds("Retain");
  await story.holds();
  await story.retains();
}

async function grantTargets(team: TestNamespace, targets: Target[]): Promise<void> {
  const rules = targets.map(({ apiVersion, plural, entry }): Rule => {
    const verbs = ["get", "list", "watch", "patch", ...(entry.create ? ["create", "delete"] : [])];
    return { apiGroups: [apiVersion.slice(0, apiVersion.indexOf("/"))], resources: [plural], verbs };
  });
  if (targets.some(({ scope }) => scope === "Cluster")) await team.grantInCluster(rules);
  else await team.grant(rules, { role: "targets" });
}

class Story {
  readonly #team: TestNamespace;
  readonly #row: Row;
  /** The objects before the binding exists. */
  readonly #before = new Map<Target, AnyObject>();
  /** The current data of the sources, and their data when the binding was created. */
  #values: Values = {};
  #first: Values = {};

  constructor(team: TestNamespace, row: Row) {
    this.#team = team;
    this.#row = row;
  }

  /** Creates the sources and the objects. An object that needs a value is refused without it. */
  async begins(): Promise<void> {
    await this.#fill();
    for (const target of this.#row.targets) {
      if (target.object) this.#before.set(target, await this.#post(target, target.object));
      else if (!target.schemaless) {
        const isInvalid = ({ status, body }: RequestFailed) => status === 422 && body.reason === "Invalid";
        await assert.rejects(this.#post(target, target.entry.create?.manifest, "dryRun=All"), isInvalid);
      }
    }
  }

  async binds(onRelease: "Remove" | "Retain"): Promise<void> {
    const { targets, configMaps = [] } = this.#row;
    this.#first = this.#values;
    await this.#team.bind(BINDING, {
      defaults: { onRelease },
      sources: Object.keys(this.#values).map((name) => ({
        [configMaps.includes(name) ? "configMap" : "secret"]: { name },
      })),
      targets: targets.map(({ apiVersion, kind, name, entry }) => ({ apiVersion, kind, name, ...entry })),
    });
    await this.#team.until(BINDING, "Synced");
  }

  /** The values are written with their types, nothing else differs, and managedFields record how, without any value. */
  async holds(): Promise<void> {
    for (const target of this.#row.targets) {
      const object = await this.#get(target);
      assert.deepEqual(contentOf(object), await this.#expected(target), target.name);
      assert.deepEqual(foundIn(JSON.stringify(object.metadata.managedFields)), [], target.name);
      // An object that the binding creates is posted as a whole.
      assert.deepEqual(this.#operations(object), [target.operation ?? "Update"], target.name);
    }
  }

  /** New values are written, except into targets with mode Once. */
  async rotates(): Promise<void> {
    const before = new Map(await this.#each(async (target) => [target, await this.#get(target)] as const));
    await this.#fill();
    await eventually(async () => {
      for (const target of this.#row.targets.filter(({ entry }) => entry.mode !== "Once")) {
        const object = await this.#get(target);
        assert.deepEqual(contentOf(object), await this.#expected(target), target.name);
        assert.deepEqual(this.#operations(object), [target.operation ?? "Apply"], target.name);
      }
    });
    const once = this.#row.targets.filter(({ entry }) => entry.mode === "Once");
    if (once.length > 0) await this.#seen();
    for (const target of once) assert.deepEqual(await this.#get(target), before.get(target), target.name);
  }

  /** Release removes what the binding wrote: the object is as before, or is deleted if the binding created it. */
  async removes(): Promise<void> {
    const standing = new Map(await this.#each(async (target) => [target, await this.#get(target)] as const));
    await this.#team.unbind(BINDING);
    for (const target of this.#row.targets) {
      const before = this.#before.get(target);
      if (before === undefined) await this.#team.untilGone(this.#path(target));
      else {
        const expected = structuredClone(contentOf(before));
        for (const place of target.required ?? []) put(expected, place, at(standing.get(target), place));
        const object = await this.#get(target);
        assert.deepEqual(contentOf(object), expected, target.name);
        assert.deepEqual(this.#operations(object), [], target.name);
        this.#before.set(target, object);
      }
    }
  }

  /** The values stay after the binding is deleted, and no field manager of Inlay owns them. */
  async retains(): Promise<void> {
    await this.#team.unbind(BINDING);
    for (const target of this.#row.targets) {
      await eventually(async () => assert.deepEqual(this.#operations(await this.#get(target)), []));
      const { metadata, ...object } = await this.#get(target);
      assert.deepEqual(contentOf({ metadata, ...object }), await this.#expected(target), target.name);
      assert.deepEqual([metadata.ownerReferences, metadata.labels], [undefined, undefined], target.name);
    }
  }

  /** Gives the sources new values. */
  async #fill(): Promise<void> {
    this.#values = this.#row.values();
    for (const [name, data] of Object.entries(this.#values)) {
      if (this.#row.configMaps?.includes(name)) await this.#configMap(name, data);
      else await this.#team.secret(name, data);
    }
  }

  async #configMap(name: string, data: object): Promise<void> {
    const path = this.#team.path("v1", "configmaps");
    if (await this.#team.api.find(`${path}/${name}`)) await this.#team.api.merge(`${path}/${name}`, { data });
    else await this.#team.api.create(path, { metadata: { name }, data });
  }

  /** Waits until the controller has reconciled all changes. */
  async #seen(): Promise<void> {
    await this.#team.requestsDuring(async () => {});
    await this.#team.until(BINDING, "Synced");
  }

  /** The object with the values added to it and nothing else, with the defaults of the API server. */
  async #expected(target: Target): Promise<AnyObject> {
    const before = this.#before.get(target);
    const base = before ? contentOf(before) : target.entry.create?.manifest;
    const object = structuredClone(base) as AnyObject;
    const values = target.entry.mode === "Once" ? this.#first : this.#values;
    for (const [place, value] of target.arrives(values)) put(object, place, value);
    return contentOf(await this.#post({ ...target, name: `${target.name}-expected` }, object, "dryRun=All"));
  }

  #operations(object: AnyObject): string[] {
    const mine = this.#team.manager(BINDING);
    return (object.metadata.managedFields ?? [])
      .filter(({ manager }: AnyObject) => manager === mine)
      .map(({ operation }: AnyObject) => operation);
  }

  #each<T>(act: (target: Target) => Promise<T>): Promise<T[]> {
    return Promise.all(this.#row.targets.map(act));
  }

  #get(target: Target): Promise<AnyObject> {
    return this.#team.api.get(this.#path(target));
  }

  #post(target: Target, content: AnyObject, query = ""): Promise<AnyObject> {
    const { apiVersion, kind, name } = target;
    const object = { ...content, apiVersion, kind, metadata: { name } };
    return this.#team.api.create(`${this.#collection(target)}?${query}`, object);
  }

  #path(target: Target): string {
    return `${this.#collection(target)}/${target.name}`;
  }

  #collection({ apiVersion, plural, scope }: Target): string {
    return scope === "Cluster" ? `/apis/${apiVersion}/${plural}` : this.#team.path(apiVersion, plural);
  }
}

/** The object without the parts that the API server and its controllers write. */
function contentOf({ metadata, status, ...content }: AnyObject): AnyObject {
  return content;
}

/** Sets the value at a place, and creates the objects on the way. */
function put(object: AnyObject, place: Place, value: unknown): void {
  const [last, ...way] = [...place].reverse() as [string | number, ...Place];
  const parent = way.reduceRight<AnyObject>((at, key) => {
    at[key] ??= {};
    return at[key];
  }, object);
  parent[last] = value;
}

function at(object: AnyObject, place: Place): unknown {
  return place.reduce<AnyObject>((each, key) => each[key], object);
}
