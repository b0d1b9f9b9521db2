/**
 * Shows that each composition's account.yaml has the least permissions: with all of them the sample works, and without any single
 * verb it fails or leaves something behind.
 */
import assert from "node:assert/strict";
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { at } from "../../src/apimachinery/fields.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { untilMay } from "../controller/access.ts";
import { type AnyObject, Api, unlessGone } from "../controller/api.ts";
import { COMPOSITIONS } from "../controller/compositions.ts";
import { eventually } from "../controller/eventually.ts";
import { applyFile, applyObjects, deleteFile, objectsIn, pathOf } from "../controller/manifests.ts";
import { createNamespace, type Rule, type TestNamespace } from "../controller/test-namespace.ts";
import { ACROSS_NAMESPACES, folders, MANIFEST, WITH_VAULT } from "./compositions.ts";
import { root } from "./pages.ts";

const RBAC = "rbac.authorization.k8s.io";
/** Only OpenShift requires it. */
const UNTESTED = "routes/custom-host";
/** Inlay reads a claim before it writes it only if the kind has several versions, as that of Harbor. Others may get more in a later release. */
const READS_CLAIMS = "compositions: get ";
/** Folders of sample/ that are not applied at first. The test creates a grant of its own. */
const LATER = /\/(rotate|grant)\//;
/** The value of a manual change: valid as text and as base64. */
const CHANGED = "AAAA";

interface Rights {
  /** The permissions of the account for compositions. */
  ofCompositions: Rule[];
  /** The permissions of the account of the namespace. */
  ofNamespace: Rule[];
}

interface Shipped extends Rights {
  composition: AnyObject;
  sample: AnyObject[];
  claim: AnyObject;
}

/** A namespace with all permissions but one. */
interface Trial {
  lacks: string;
  team: TestNamespace;
}

/** An action in a namespace, and the reason why its outcome is missing. */
interface Stage {
  act: (team: TestNamespace) => Promise<unknown>;
  problem: (team: TestNamespace) => Promise<string | undefined>;
}

describe("account.yaml of the composition", () => {
  const api = () => new Api(controlPlane());
  before(() => applyFile(api(), MANIFEST));
  after(() => deleteFile(api(), MANIFEST));

  const withRights = folders.filter((name) => existsSync(join(root, "compositions", name, "account.yaml")));
  for (const name of withRights.filter((each) => ![...WITH_VAULT, ...ACROSS_NAMESPACES].includes(each)))
    it(`${name} has the permissions that it needs, and no others`, async () => {
      const account = join(root, "compositions", name, "account.yaml");
      for (const file of [...filesIn(`{samples,compositions}/${name}/crd/*.yaml`), account])
        await applyFile(api(), file);
      const shipped = await read(name);
      const whole = await newNamespace(shipped);
      const trials = await Promise.all(
        reduced(shipped).map(async ({ lacks, ...rights }): Promise<Trial> => {
          return { lacks, team: await newNamespace(rights) };
        }),
      );
      await applyObjects(api(), [shipped.composition]);
      try {
        let working = trials;
        for (const { act, problem } of [start(shipped), change, end(shipped)]) {
          for (const team of [...working.map((each) => each.team), whole]) await act(team);
          await eventually(async () => assert.equal(await problem(whole), undefined));
          await whole.controller.idle();
          working = await filter(working, async ({ team }) => (await problem(team)) === undefined);
        }
        const crds = await Promise.all(filesIn(`{samples,compositions}/${name}/crd/*.yaml`).map(objectsIn));
        const single = crds.flat().filter(({ spec }) => spec.versions.length === 1);
        const unread = single.map(({ spec }) => `${READS_CLAIMS}${spec.names.plural}`);
        const idle = working.map(({ lacks }) => lacks).filter((each) => !unread.includes(each));
        assert.deepEqual(idle, []);
      } finally {
        await forget(shipped.composition);
        await deleteFile(api(), account);
      }
    });
});

async function read(name: string): Promise<Shipped> {
  const folder = join(root, "compositions", name);
  const [composition] = await objectsIn(join(folder, "composition.yaml"));
  const [{ rules: ofCompositions }, { rules: ofNamespace } = { rules: [] }] = (await objectsIn(
    join(folder, "account.yaml"),
  )) as [AnyObject, AnyObject];
  const files = filesIn(`compositions/${name}/sample/**/*.yaml`).filter((file) => !LATER.test(file));
  const sample = (await Promise.all(files.map((file) => objectsIn(file)))).flat();
  const claim = sample.find(({ kind }) => kind === composition.spec.for.kind);
  return { composition, sample, claim, ofCompositions, ofNamespace };
}

const filesIn = (glob: string): string[] => globSync(glob, { cwd: root }).map((file) => join(root, file));

/** The permissions without each single verb. */
function reduced({ ofCompositions, ofNamespace }: Rights): (Rights & { lacks: string })[] {
  const without = (rules: readonly Rule[], account: string) =>
    rules.flatMap((rule, at) =>
      rule.verbs.map((verb) => ({
        lacks: `${account}: ${verb} ${rule.resources}`,
        rules: rules.with(at, { ...rule, verbs: rule.verbs.filter((each) => each !== verb) }),
      })),
    );
  const all = [
    ...without(ofCompositions, "compositions").map(({ lacks, rules }) => ({
      lacks,
      ofCompositions: rules,
      ofNamespace,
    })),
    ...without(ofNamespace, "namespace").map(({ lacks, rules }) => ({ lacks, ofCompositions, ofNamespace: rules })),
  ];
  return all.filter(({ lacks }) => !lacks.endsWith(UNTESTED));
}

/**
 * Creates a namespace in which both accounts have these permissions. The account for compositions also gets what every
 * composition needs.
 */
async function newNamespace({ ofCompositions, ofNamespace }: Rights): Promise<TestNamespace> {
  const team = await createNamespace({ rules: ofNamespace.filter(({ verbs }) => verbs.length > 0) });
  const { namespace, api } = team;
  const shared = (await objectsIn(MANIFEST)).find(({ metadata }) => metadata.name === "inlay-compositions-bindings");
  const rules = [...ofCompositions.filter(({ verbs }) => verbs.length > 0), ...(shared?.rules ?? [])];
  const metadata = { name: "compositions" };
  await api.create(team.path(`${RBAC}/v1`, "roles"), { metadata, rules });
  await api.create(team.path(`${RBAC}/v1`, "rolebindings"), {
    metadata,
    roleRef: { apiGroup: RBAC, kind: "Role", name: metadata.name },
    subjects: [{ kind: "ServiceAccount", namespace: "inlay-system", name: "inlay-compositions" }],
  });
  await untilMay(COMPOSITIONS, { verb: "create", group: "inlay.dev", resource: "secretbindings", namespace });
  return team;
}

const inNamespace = (object: AnyObject, { namespace }: Pick<TestNamespace, "namespace">): AnyObject => ({
  ...object,
  metadata: { ...object.metadata, namespace },
});

/**
 * Applies the sample, with a grant for everything. The value arrives and, if the composition writes back, the claim shows that.
 */
const start = ({ composition, sample, claim }: Shipped): Stage => ({
  act: (team) => {
    const grant = {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "SecretGrant",
      metadata: { name: "all" },
      spec: {
        from: [{ composition: composition.metadata.name }],
        to: ["Secret", "ConfigMap"].map((kind) => ({ kind, selector: { names: ["*"] } })),
      },
    };
    const all = [grant, ...sample].map((object) => inNamespace(object, team));
    return applyObjects(team.api, all);
  },
  problem: async (team) => {
    const conditions: AnyObject[] = (await bindingIn(team))?.status?.conditions ?? [];
    const ready = conditions.find(({ type }) => type === "Ready");
    if (ready?.reason !== "Synced") return ready?.message ?? "there is no binding, or it has no status";
    const { metadata } = await team.api.get(await pathOf(team.api, inNamespace(claim, team)));
    const writesBack = JSON.stringify(composition).includes("ToComposite");
    const isShown = metadata.annotations?.["inlay.dev/state"] === "Synced";
    return writesBack && !isShown ? "the claim does not show it" : undefined;
  },
});

/** Changes a field that the binding wrote. Inlay corrects it. */
const change: Stage = {
  act: async (team) => {
    for (const { object, field } of await madeIn(team))
      await team.api.merge(await pathOf(team.api, object), nested(field, CHANGED));
  },
  problem: async (team) => {
    for (const { object, field } of await madeIn(team)) {
      const live = await team.api.get(await pathOf(team.api, object));
      if (at(live, ...field.split(".")) === CHANGED) return `${object.kind} is not corrected`;
    }
    return undefined;
  },
};

/** Deletes the claim. Its binding is deleted only after the objects that it created. */
const end = ({ claim }: Shipped): Stage => ({
  act: async (team) => team.api.delete(await pathOf(team.api, inNamespace(claim, team))),
  problem: async (team) => ((await bindingIn(team)) === undefined ? undefined : "the binding is still there"),
});

/** Deletes a composition by force, because bindings that can't release their objects delay the deletion. */
async function forget(composition: AnyObject): Promise<void> {
  const api = new Api(controlPlane());
  const path = await pathOf(api, composition);
  await api.merge(path, { metadata: { annotations: { "inlay.dev/delete-copies": "true" } } });
  await api.remove(path);
  await api.merge(path, { metadata: { finalizers: null } }).catch(unlessGone);
}

async function bindingIn(team: TestNamespace): Promise<AnyObject> {
  return (await team.api.get(team.path("inlay.dev/v1alpha1", "secretbindings"))).items[0];
}

/** The objects that the binding creates, each with the path of a field of it. */
async function madeIn(team: TestNamespace): Promise<{ object: AnyObject; field: string }[]> {
  const { targets } = (await bindingIn(team)).spec;
  return targets
    .filter(({ create }: AnyObject) => create !== undefined)
    .map(({ apiVersion, kind, name, fields }: AnyObject) => ({
      object: inNamespace({ apiVersion, kind, metadata: { name } }, team),
      field: fields[0].path,
    }));
}

const nested = (path: string, value: string): object =>
  path.split(".").reduceRight<object | string>((inner, key) => ({ [key]: inner }), value) as object;

async function filter<T>(all: readonly T[], keeps: (each: T) => Promise<boolean>): Promise<T[]> {
  const kept = await Promise.all(all.map(keeps));
  return all.filter((_, at) => kept[at]);
}
