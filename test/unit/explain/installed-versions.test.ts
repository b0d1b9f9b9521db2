/** What `inlay version --cluster` says about parts of other versions. */
import assert from "node:assert/strict";
import { differences } from "../../../src/explain/installed-versions.ts";

const none = { crds: [], policies: [], controllers: [] };

describe("the versions of an installation", () => {
  it("need no note if they are that of the program, or unknown from the tag of an image", () => {
    const controllers = [
      { namespace: "inlay-system", name: "inlay-controller", images: ["inlay:0.1.0", "inlay@sha256:1", "inlay:main"] },
    ];
    const own = [{ name: "a", version: "0.1.0" }];
    assert.deepEqual(differences({ crds: own, policies: own, controllers }, "0.1.0"), []);
  });

  it("say which parts are older, or newer, and what to do", () => {
    const [older] = differences({ ...none, crds: [{ name: "a" }, { name: "b", version: "0.9.0" }] }, "0.10.0");
    assert.match(
      older ?? "",
      /^CRDs of another version than this program \(0\.10\.0\): unknown, 0\.9\.0 \(a, b\); upgrade/,
    );
    const [newer] = differences({ ...none, policies: [{ name: "a", version: "0.11.0" }] }, "0.10.0");
    assert.match(newer ?? "", /0\.11\.0 \(a\); use the program of their version$/);
    const images = ["registry.example.com:5000/inlay:v0.9.1@sha256:1"];
    const [image] = differences({ ...none, controllers: [{ namespace: "x", name: "c", images }] }, "0.10.0");
    assert.match(image ?? "", /^controllers .*: 0\.9\.1 \(x\/c\)/);
  });
});
