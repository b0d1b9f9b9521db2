/** Objects with so many nested levels that recursion overflows the stack. The API server accepts up to 10,000 levels. */
import type { Api } from "./api.ts";
import { apiVersionOf, type Kind, mayWrite, objectPath } from "./kinds.ts";
import { usualRules } from "./test-namespace.ts";

const LEVELS = 5_000;

/** A kind that accepts any fields, and has a pattern that compiles to 72,000 instructions. */
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

/** JSON of nested levels around a number. */
export const deepText = (levels = LEVELS) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

/** Creates an object with `spec.deep` and the given fields. */
export async function createDeep(api: Api, namespace: string, name: string, spec: object = {}): Promise<void> {
  const object = JSON.stringify({ apiVersion: apiVersionOf(heaps), kind: heaps.kind, metadata: { name }, spec });
  await api.create(objectPath(heaps, namespace), withDeep(object));
}

/** Adds `spec.deep` to an existing object without it. */
export async function makeDeep(api: Api, namespace: string, name: string): Promise<void> {
  await api.merge(objectPath(heaps, namespace, name), withDeep('{"spec":{}}'));
}

/** `spec` is the last field in the text. */
const withDeep = (object: string) => {
  const rest = object.slice(0, -2);
  return `${rest}${rest.endsWith("{") ? "" : ","}"deep":${deepText()}}}`;
};
