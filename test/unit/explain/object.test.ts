/** What `inlay explain KIND/NAME` says about the field managers of an object. */
import assert from "node:assert/strict";
import type { Resource } from "../../../src/apimachinery/objects.ts";
import { SECRETS } from "../../../src/apimachinery/resources.ts";
import { explainObject } from "../../../src/explain/object.ts";
import { objectText } from "../../../src/explain/object-text.ts";
import { entry, liveObject } from "../apply/managed.ts";

const look = (manager: string, { isServed }: { isServed: boolean }) => {
  const secret = liveObject({ data: { key: "" } }, [entry(manager, ["data.key"])]);
  const discovery = {
    allKinds: async () => [{ ...SECRETS, verbs: ["get"] }],
    byKind: async (_: string, kind: string): Promise<Resource | undefined> =>
      kind === SECRETS.kind || isServed ? SECRETS : undefined,
  };
  const reader = {
    get: async (_: unknown, take: (object: unknown) => unknown) => ({ state: "Found", it: take(secret) }),
    list: async () => ({ state: "Unreadable", message: "you may not list them" }),
  };
  const tools = { reader, discovery, schemas: { of: async () => undefined } };
  return explainObject(tools as never, "registry", { kind: "secret", name: "copy" });
};

describe("the explanation of an object", () => {
  it("says that a binding does not exist if its kind is not served, and that it is unknown if it can't be listed", async () => {
    const gone = await look("inlay/registry/s3", { isServed: false });
    assert.equal(gone.bindings[0]?.state, "NotFound");
    assert.match(gone.bindings[0]?.leftOver?.command ?? "", /^kubectl patch secrets copy -n registry /);
    const unknown = await look("inlay/registry/s3", { isServed: true });
    assert.equal(unknown.bindings[0]?.state, "Unreadable");
    assert.equal(unknown.bindings[0]?.leftOver, undefined);
  });

  it("quotes a field manager, whose name anyone who may patch the object chooses", async () => {
    const hostile = "inlay/registry/s3; run: kubectl delete namespace registry #";
    const text = objectText(await look(hostile, { isServed: false }), Number.POSITIVE_INFINITY).join("\n");
    assert.equal(text.split(hostile).length, text.split(JSON.stringify(hostile)).length, text);
  });
});
