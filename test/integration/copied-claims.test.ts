/**
 * The compositions for Secrets that are copied by the annotations of Reflector and the replicator: the objects that they do
 * not change, and the limits of the author of such a Secret.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import type { AnyObject } from "../controller/api.ts";
import {
  compose,
  composedNames,
  compositionPath,
  installCompositions,
  removeCompositions,
  untilComposition,
} from "../controller/compositions.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { ALL } from "../controller/made.ts";
import { objectsIn } from "../controller/manifests.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, type Rule, type TestNamespace } from "../controller/test-namespace.ts";

const MAY_COPY: Rule = { apiGroups: [""], resources: ["secrets"], verbs: ALL };
const NAMESPACES: Rule = { apiGroups: [""], resources: ["namespaces"], verbs: ["list", "watch"] };
const CLAIMS: Rule = { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"] };
const REFLECTOR = "reflector.v1.k8s.emberstack.com";
const REPLICATOR = "replicator.v1.mittwald.de";

interface Source {
  team: TestNamespace;
  /** The namespace of its copy. */
  other: TestNamespace;
}

/** A shipped composition, limited to the Secrets of one namespace, whose account may copy into another one. */
async function newSource(folder: string): Promise<Source> {
  const team = await createNamespace({ rules: [MAY_COPY] });
  const other = await createNamespace({ rules: [] });
  await team.grantInCluster([MAY_COPY, NAMESPACES]);
  const [{ spec }] = (await objectsIn(
    join(import.meta.dirname, "..", "..", "compositions", folder, "composition.yaml"),
  )) as [AnyObject];
  await compose(team, folder, {
    ...spec,
    for: { ...spec.for, namespaceSelector: { names: [team.namespace, other.namespace] } },
  });
  await untilComposition(team, folder, "Accepted", "Accepted");
  return { team, other };
}

const make = ({ api, namespace }: TestNamespace, name: string, annotations: object, data: Record<string, string>) =>
  api.create(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name, annotations }, stringData: data });
const read = ({ api, namespace }: TestNamespace, name: string) =>
  api.find(`/api/v1/namespaces/${namespace}/secrets/${name}`);
const valueIn = (secret: AnyObject | undefined) => Buffer.from(secret?.["data"].value ?? "", "base64").toString();

const reflected = (...namespaces: string[]) => ({
  [`${REFLECTOR}/reflection-allowed`]: "true",
  [`${REFLECTOR}/reflection-auto-enabled`]: "true",
  [`${REFLECTOR}/reflection-auto-namespaces`]: namespaces.join(","),
});
const markOf = (source: TestNamespace) => ({
  [`${REFLECTOR}/auto-reflects`]: "True",
  [`${REFLECTOR}/reflects`]: `${source.namespace}/key`,
});

describe("a Secret that is copied by its annotations", function () {
  this.timeout("1m");
  before(() => installCompositions([CLAIMS]));
  after(() => removeCompositions());

  it("keeps its copies while it is a claim, and is not deleted with them, also if it names its own namespace", async () => {
    const { team, other } = await newSource("reflector");
    const value = secretText("value");
    await make(team, "key", reflected(team.namespace, other.namespace), { value });
    await eventually(async () => assert.equal(valueIn(await read(other, "key")), value));
    // The copy has annotations of its own, and is no claim, so it is not copied again.
    const annotations = reflected(team.namespace);
    await other.api.merge(`/api/v1/namespaces/${other.namespace}/secrets/key`, { metadata: { annotations } });
    await team.until("key-reflected", "Synced");
    assert.deepEqual([await composedNames(team), await composedNames(other)], [["key-reflected"], []]);
    const { uid } = (await read(team, "key"))?.["metadata"] ?? {};
    await team.api.merge(compositionPath(team, "reflector"), {
      metadata: { annotations: { "inlay.dev/delete-copies": "true" } },
    });
    await team.api.delete(compositionPath(team, "reflector"));
    await eventually(async () => assert.equal(await read(other, "key"), undefined));
    assert.equal((await read(team, "key"))?.["metadata"].uid, uid);
  });

  it("adopts Reflector's own copy of it, and neither one with another value nor an equal Secret that is no copy", async () => {
    const { team, other } = await newSource("reflector");
    const [third, fourth] = [await createNamespace({ rules: [] }), await createNamespace({ rules: [] })];
    const [value, another] = [secretText("value"), secretText("another")];
    const left = await make(other, "key", markOf(team), { value });
    await make(third, "key", markOf(team), { value: another });
    // A user who guesses the values of a Secret must not be able to take it over.
    await make(fourth, "key", {}, { value });
    await make(team, "key", reflected(other.namespace, third.namespace, fourth.namespace), { value });
    const { status } = await team.until("key-reflected", "Conflict");
    assert.equal(status.synced, "1/3");
    assert.equal((await read(other, "key"))?.["metadata"].uid, left["metadata"].uid);
    assert.equal(valueIn(await read(third, "key")), another);
    assert.equal((await read(fourth, "key"))?.["metadata"].labels, undefined);
    // From the second change on, an adopted copy is written without a read, as a created one.
    let mark = 0;
    for (const next of [secretText("second"), secretText("third")]) {
      mark = await auditLog().mark();
      await team.api.merge(`/api/v1/namespaces/${team.namespace}/secrets/key`, { stringData: { value: next } });
      await eventually(async () => assert.equal(valueIn(await read(other, "key")), next));
      await team.controller.idle();
    }
    const requests = (await requestsFor(team, mark)).filter(({ namespace }) => namespace === other.namespace);
    assert.deepEqual(
      requests.map(({ verb }) => verb),
      ["patch"],
    );
  });

  it("overwrites no Secret of that name that another user created, unlike the replicator", async () => {
    const { team, other } = await newSource("replicator");
    const [value, theirs] = [secretText("value"), secretText("theirs")];
    const before = await make(other, "key", {}, { value: theirs });
    await make(team, "key", { [`${REPLICATOR}/replicate-to`]: other.namespace }, { value });
    await team.until("key-replicated", "Conflict");
    assert.deepEqual(await read(other, "key"), before);
  });

  it("is not copied into a namespace in which its account has no permissions", async () => {
    const { team, other } = await newSource("reflector");
    const poor = await createNamespace({ rules: [CLAIMS] });
    await poor.grantInCluster([NAMESPACES]);
    const composition = await team.api.get(compositionPath(team, "reflector"));
    const namespaceSelector = { names: [poor.namespace] };
    await team.api.merge(compositionPath(team, "reflector"), {
      spec: { for: { ...composition.spec.for, namespaceSelector } },
    });
    await make(poor, "key", reflected(other.namespace), { value: secretText("value") });
    await poor.until("key-reflected", "Forbidden");
    assert.equal(await read(other, "key"), undefined);
  });
});
