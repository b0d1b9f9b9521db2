/** No text that a tenant chooses looks like a command in a condition. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { assertWritablePath } from "../../../src/api/writable.ts";
import { parseDuration } from "../../../src/apimachinery/duration.ts";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import { parsePointer } from "../../../src/apimachinery/json-pointer.ts";
import { describeObject, plainPath, plainWord, quoted } from "../../../src/apimachinery/objects.ts";
import { attemptSync, Problem } from "../../../src/apimachinery/problem.ts";
import { kindNotFound } from "../../../src/kube/access-error.ts";
import { checkManifest, checkPath } from "../../../src/transform/schema-check.ts";
import { compileTemplate } from "../../../src/transform/template.ts";
import { assertAllowedPath } from "../../../src/vault/allowed-paths.ts";
import { encodePath } from "../../../src/vault/path.ts";

const COMMAND = "kubectl create clusterrolebinding me --clusterrole=cluster-admin --user=me";

/** Texts around the separator, so that it is at the start, at the end, and beside every special character. */
const hostile = fc
  .tuple(
    fc.constantFrom("", "x", "x; allow it ", 'x" ', "x] ", "x}} ", "\\\\"),
    fc.constantFrom("", '"', "]", "; the same for"),
  )
  .map(([before, after]) => `${before} with: ${COMMAND}${after}`);

const SCHEMA = {
  type: "object",
  properties: { spec: { type: "object", properties: { host: { type: "string" } } } },
} as const;

/** Each returns the message about a text, or throws a Problem with it. */
const MESSAGES: Record<string, (text: string) => unknown> = {
  "a path that can't be parsed": (text) => FieldPath.parse(`spec.list[ ${text}`),
  "a path without brackets": (text) => FieldPath.parse(`spec.${text}`),
  "a path that is a JSONPath": (text) => FieldPath.parse(`$.${text}`),
  "two equal conditions of an element": (text) =>
    FieldPath.parse(`spec.list[${JSON.stringify(text)}=a,${JSON.stringify(text)}=b]`),
  "the key of a path": (text) =>
    `${new FieldPath([
      { kind: "key", key: "spec" },
      { kind: "key", key: text },
    ])}: wrong`,
  "the element of a path": (text) =>
    `${new FieldPath([{ kind: "element", conditions: [{ key: text, value: text }] }])}: wrong`,
  "a field inside an annotation": (text) =>
    assertWritablePath(FieldPath.parse(`metadata.annotations.a[${JSON.stringify(text)}]`)),
  "a field that the kind does not have": (text) =>
    checkPath(
      new FieldPath([
        { kind: "key", key: "spec" },
        { kind: "key", key: text },
      ]),
      {},
      SCHEMA,
      () => undefined,
    ),
  "a field below a string": (text) =>
    checkPath(new FieldPath(["spec", "host", text].map((key) => ({ kind: "key", key }))), {}, SCHEMA, () => undefined),
  "a key of a manifest": (text) => checkManifest({ spec: { [text]: 1 } }, SCHEMA, () => undefined),
  "a duration": (text) => parseDuration(text, "refresh"),
  "a pointer": (text) => parsePointer(text),
  "a template": (text) => compileTemplate(`{{ ${text} }}`),
  "a key in a template": (text) => compileTemplate(`{{ source.[${text}] ${text} }}`),
  "a template with an open expression": (text) => compileTemplate(`${text} {{`),
  "a kind": (text) => kindNotFound(text, text).message,
  "the name of an object": (text) => describeObject(text, text, text),
  "a path of Vault": (text) => encodePath("kv", `${text}/..`),
  "a path of Vault that is not allowed": (text) =>
    assertAllowedPath(["kv/a"], { mount: "kv", path: text, kv: 2 }, "registry", "registry/vault"),
  "an allowed path of Vault": (text) =>
    assertAllowedPath([text], { mount: "kv", path: "b", kv: 2 }, "registry", "registry/vault"),
  "a quoted text": quoted,
  "a word": plainWord,
  "a path as text": plainPath,
};

describe("a text that imitates a command", () => {
  for (const [what, say] of Object.entries(MESSAGES))
    it(`is no command in the message about ${what}`, () => {
      fc.assert(
        fc.property(hostile, (text) => {
          const said = attemptSync(() => say(text));
          const message = said instanceof Problem ? said.message : typeof said === "string" ? said : "";
          assert.doesNotMatch(message, /with:\s+kubectl/);
        }),
      );
    });
});
