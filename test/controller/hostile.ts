/**
 * Bindings that a tenant creates to crash or starve the controller: the spec of the nth one, and its expected reason. Each is
 * wrong in a different way, and none names what its author may not write.
 */
import type { AnyObject } from "./api.ts";

const MIB = 1024 * 1024;

/** Values of the Secret `hostile`, which together nearly reach the maximum size of a Secret. */
export function hostileData(value: string): Record<string, string> {
  const laughs = [..."bcdefghi"].reduce(
    (text, key, n) => `${text}${key}: &${key} [${Array(9).fill(`*${"abcdefgh"[n]}`).join(", ")}]\n`,
    `a: &a [${value}]\n`,
  );
  return {
    value,
    text: `? ${value} ?`,
    laughs,
    yaml: `[${"a,".repeat(12_000)}${value}]`,
    flow: `[${"a,".repeat(60_000)}${value}]`,
    deep: `${"[".repeat(60_000)}${"]".repeat(60_000)}`,
    commas: ",".repeat(100_000),
    large: `${value}${"x".repeat(MIB / 2)}`,
  };
}

const harbor = (fields: object[], more: object = {}) => ({
  apiVersion: "goharbor.io/v1beta1",
  kind: "HarborCluster",
  name: "hostile",
  fields,
  ...more,
});
/** A different field for each binding: otherwise the younger of two bindings would only report a conflict. */
const own = (n: number, field = "") => `metadata.annotations["hostile.example.com/n${n}${field}"]`;
const key = (n: number, name: string, field?: string) => ({
  path: own(n, field),
  from: { source: "hostile", key: name },
});
const template = (n: number, text: string) => ({ path: own(n), template: text });
const nested = (depth: number): string => (depth === 0 ? "hostile.commas" : `(replace ${nested(depth - 1)} "," ",,")`);

type Way = (n: number) => { reason: string; targets: object[] };

const ways: Way[] = [
  (n) => ({ reason: "KindNotFound", targets: [harbor([key(n, "value")], { apiVersion: `g${n}.example.com/v1` })] }),
  (n) => ({ reason: "InvalidTemplate", targets: [harbor([template(n, `${n}{{#if hostile.value}}`)])] }),
  (n) => ({ reason: "InvalidTemplate", targets: [harbor([template(n, `${n}{{lower ${nested(8)}}}`)])] }),
  (n) => ({ reason: "InvalidValue", targets: [harbor([{ ...key(n, "laughs"), as: "yaml" }])] }),
  (n) => ({ reason: "InvalidValue", targets: [harbor([{ ...key(n, "flow"), as: "yaml" }])] }),
  (n) => ({ reason: "InvalidValue", targets: [harbor([{ ...key(n, "deep"), as: "json" }])] }),
  (n) => ({ reason: "KeyNotFound", targets: [harbor([key(n, `none-${n}`)])] }),
  (n) => ({ reason: "TargetNotFound", targets: [harbor([key(n, "value")], { name: `none-${n}` })] }),
  (n) => ({
    reason: "Forbidden",
    targets: [
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        name: `d-${n}`,
        fields: [{ ...key(n, "value"), path: "spec.template" }],
      },
    ],
  }),
  (n) => ({
    reason: "Rejected",
    targets: [harbor([{ ...key(n, "text"), path: `metadata.labels["hostile.example.com/n${n}"]` }])],
  }),
  // As many targets and fields as the schema permits, each with half a megabyte or a document that is slow to process.
  (n) => ({
    reason: "InvalidValue",
    targets: Array.from({ length: 32 }, (_, t) =>
      harbor(
        Array.from({ length: 8 }, (_, f) => key(n, "large", `-${f}`)),
        { name: `many-${t}` },
      ),
    ),
  }),
  (n) => ({
    reason: "InvalidTemplate",
    targets: Array.from({ length: 4 }, (_, t) =>
      harbor(
        Array.from({ length: 16 }, (_, f) => ({
          path: own(n, `-${f}`),
          template: `${t}-${f}{{#if (yaml (parse (concat hostile.yaml)))}}{{/if}}`,
        })),
        { name: `many-${t}` },
      ),
    ),
  }),
  (n) => ({
    reason: "Synced",
    targets: [
      harbor([key(n, "value")], {
        name: undefined,
        selector: { names: Array.from({ length: 16 }, (_, g) => `${"*a".repeat(100)}*${n}-${g}`) },
      }),
    ],
  }),
];

export const WAYS = ways.length;

/** The spec of one of them, and its reason. */
export function hostileBinding(n: number): { spec: AnyObject; reason: string } {
  const { reason, targets } = (ways[n % WAYS] as Way)(n);
  return { reason, spec: { sources: [{ secret: { name: "hostile" } }], targets } };
}

/**
 * The spec of a binding with the maximum number of objects, each of which needs a stream of its own: sources, targets, and
 * Deployments. Two of these bindings share no Deployment.
 */
export function namingBinding(n: number): AnyObject {
  const sources = Array.from({ length: 16 }, (_, s) => ({ name: `s-${s}`, secret: { name: `naming-${n}-${s}` } }));
  const targets = Array.from({ length: 64 }, (_, t) =>
    harbor([{ path: own(n), from: { source: `s-${t % 16}`, key: "value" } }], { name: `naming-${n}-${t}` }),
  );
  const steps = Array.from({ length: 16 }, (_, s) => ({
    name: `step-${s}`,
    targets: Array.from({ length: 64 }, (_, t) => ({ kind: "Deployment", name: namedDeployment(n, s * 64 + t) })),
  }));
  return { sources, targets, rollout: { steps } };
}

/** The name of one of the 1,024 Deployments of the `n`th binding. */
export const namedDeployment = (n: number, d: number) => `naming-${n}-${d}`;
