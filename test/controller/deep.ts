/** Objects that nest so deep that recursion through them runs out of stack. The API server takes up to 10,000 levels. */
import type { Api } from "./api.ts";
import { apiVersionOf, type Kind, mayWrite, objectPath } from "./kinds.ts";
import { usualRules } from "./test-namespace.ts";

const LEVELS = 5_000;

/** A kind that takes anything, and has a pattern that compiles to 72,000 instructions. */
export const heaps: Kind = {
  group: "hostile.example.com",
  kind: "Heap",
  plural: "heaps",
  spec: {
    type: "object",
    "x-kubernetes-preserve-unknown-fields": true,
    properties: {
      text: { type: "string" },
      address: { type: "string", format: "ipv6" },
      slow: { type: "string", pattern: `^${"(.{0,1000})".repeat(36)}[yw]$` },
    },
  },
};

export const heapRules = [...usualRules, mayWrite(heaps)];

/** JSON of levels in levels, around a number. */
export const deepText = (levels = LEVELS) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

/** Makes an object with `spec.deep` beside what is given. */
export async function createDeep(api: Api, namespace: string, name: string, spec: object = {}): Promise<void> {
  const object = JSON.stringify({ apiVersion: apiVersionOf(heaps), kind: heaps.kind, metadata: { name }, spec });
  await api.create(objectPath(heaps, namespace), withDeep(object));
}

/** Gives an object the same, that has none yet. */
export async function makeDeep(api: Api, namespace: string, name: string): Promise<void> {
  await api.merge(objectPath(heaps, namespace, name), withDeep('{"spec":{}}'));
}

/** `spec` is the last in the text. */
const withDeep = (object: string) => {
  const rest = object.slice(0, -2);
  return `${rest}${rest.endsWith("{") ? "" : ","}"deep":${deepText()}}}`;
};
