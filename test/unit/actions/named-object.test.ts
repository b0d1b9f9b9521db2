/** How objects are named on the command line. */
import assert from "node:assert/strict";
import { namedObject, textOf } from "../../../src/actions/object.ts";

describe("an object on the command line", () => {
  it("is a SecretBinding unless it names its kind, in one of the forms of kubectl", () => {
    for (const text of ["s3", "secretbinding/s3", "SecretBinding/s3", "sb/s3", "secretbindings.inlay.dev/s3"])
      assert.equal(textOf(namedObject(text)), "secretbinding.inlay.dev/s3");
    assert.equal(textOf(namedObject("vc/vault")), "vaultconnection.inlay.dev/vault");
    assert.equal(textOf(namedObject("bindingcompositions/s3")), "bindingcomposition.inlay.dev/s3");
  });

  it("must have a known kind and one valid name", () => {
    assert.throws(() => namedObject("secretbindin/s3"), /Did you mean secretbinding\/s3\?/);
    assert.throws(() => namedObject("secret/s3"), /The kind is one of secretbinding/);
    for (const text of ["", "sb/", "a b", "a\nb", "sb/a/b", "../a", "a".repeat(254)])
      assert.throws(() => namedObject(text), /name of one object|The kind is/, text);
  });
});
