/** Objects of the largest size that the API server accepts, in forms that take more memory or time than their size. */
import { setTimeout as sleep } from "node:timers/promises";
import { apiVersionOf, createObject, installKind, type Kind } from "../kinds.ts";
import { type Attack, sized } from "./attack.ts";
import { bindAll, configMaps, readByName } from "./keys.ts";
import { READ } from "./permissions.ts";

/** The most data of a ConfigMap. A custom resource may have 1.5 MB. */
const BYTES = 1_000_000;
const ESCAPED = 48;
const ANNOTATED = 500;
const CHANGING = 12;
const CHANGES = 15;
const NUMBERS = 48;

/** In the JSON of the API server, such a character takes six bytes, so that these are objects of 6 MB. */
export const escapedCharacters: Attack = {
  tenant: `${ESCAPED} ConfigMaps of 1 MB of characters that JSON escapes`,
  async launch(tenant, scale) {
    const names = await configMaps(tenant, sized(ESCAPED, scale), { data: { text: "<".repeat(BYTES) } });
    await readByName(tenant, names);
    await bindAll(tenant, names);
  },
};

/** Annotations and managedFields are also in the form that shows only the metadata. */
export const largeAnnotations: Attack = {
  tenant: `${ANNOTATED} ConfigMaps with 250 kB of annotations`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    await tenant.grant(READ, { role: "attack" });
    const annotations = Object.fromEntries(Array.from({ length: 12_000 }, (_, n) => [`example.com/k${n}`, ""]));
    const names = await configMaps(tenant, sized(ANNOTATED, scale), { metadata: { annotations } });
    await bindAll(tenant, names.slice(0, 1));
  },
};

/** Each change is an event of 3.5 MB, in a stream for each object and one for all of them. */
export const changingObjects: Attack = {
  tenant: `${CHANGING} ConfigMaps of 1 MB that change all the time`,
  async launch(tenant, scale) {
    const names = await configMaps(tenant, CHANGING, {
      data: { text: "<".repeat(BYTES / 2), more: "x".repeat(BYTES / 2) },
    });
    await readByName(tenant, names);
    await bindAll(tenant, names);
    for (let n = 0; n < sized(CHANGES, scale); n++) {
      const path = tenant.path("v1", "configmaps");
      await Promise.all(names.map((name) => tenant.api.merge(`${path}/${name}`, { data: { n: `${n}` } })));
      await sleep(200);
    }
  },
};

const kind: Kind = {
  group: "attack.example.com",
  kind: "Heap",
  plural: "heaps",
  spec: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
};

/** A single long integer makes each number of an object cost more, and so do objects with keys of their own. */
export const manyNumbers: Attack = {
  tenant: `${NUMBERS} custom resources of 1.4 MB of numbers and objects as sources and targets`,
  async launch(tenant, scale) {
    await installKind(tenant.api, kind);
    await tenant.createAccount();
    const verbs = ["get", "list", "watch", "patch"];
    const rules = [...READ, { apiGroups: [kind.group], resources: [kind.plural], verbs }];
    await tenant.grant(rules, { role: "attack" });
    const numbers = { first: 9007199254740992, list: Array.from({ length: 500_000 }, (_, n) => n % 10) };
    const objects = Array.from({ length: 30_000 }, (_, n) => ({ [`k${n}`]: n }));
    const names = Array.from({ length: sized(NUMBERS, scale) }, (_, n) => `heap-${n}`);
    for (const name of names) await createObject(tenant.api, kind, name, { numbers, objects }, tenant.namespace);
    for (const name of names)
      await tenant.bind(name, {
        sources: [{ object: { apiVersion: apiVersionOf(kind), resource: kind.plural, name } }],
        targets: [
          {
            apiVersion: apiVersionOf(kind),
            kind: kind.kind,
            name,
            fields: [{ path: "spec.copy", from: { source: name, fieldPath: "spec.numbers.first" } }],
          },
        ],
      });
  },
};
