/** What a bundle of certificates contains, and that it never contains a private key. */
import assert from "node:assert/strict";
import type { Problem } from "../../../src/apimachinery/problem.ts";
import { pemBundle } from "../../../src/transform/pem.ts";
import { makeCertificate } from "../kube/server.ts";

const bundle = (...texts: string[]) => pemBundle(texts, "here");

function refused(texts: string[], advice: string): void {
  assert.throws(
    () => bundle(...texts),
    (problem: Problem) => {
      assert.equal(problem.reason, "InvalidValue");
      assert.ok(problem.message.startsWith("here: ") && problem.message.includes(advice), problem.message);
      const bodies = texts.flatMap((text) => text.match(/[A-Za-z0-9+/=]{20,}/g) ?? []);
      assert.ok(bodies.every((body) => !`${problem.stack}${problem.cause}`.includes(body)));
      return true;
    },
  );
}

describe("a bundle of certificates", () => {
  let [one, two, three, key] = ["", "", "", ""];
  before(async () => {
    const made = await Promise.all([makeCertificate(), makeCertificate(), makeCertificate()]);
    [one = "", two = "", three = ""] = made.map(({ cert }) => cert.toString());
    key = made[0]?.key.toString() ?? "";
  });
  const bodyOf = (pem: string) => pem.split("\n").slice(1, -2).join("");

  it("contains each certificate once, in order", () => {
    assert.equal(bundle(one), one);
    assert.equal(bundle(two, one), two + one);
    assert.equal(bundle(one + two, two + three, one), one + two + three);
    assert.equal(bundle(one, ""), one);
  });

  it("has one form for any line ends, long lines, and comments", () => {
    const wide = `# Issuer: test\n-----BEGIN CERTIFICATE-----\n${bodyOf(two)}\n-----END CERTIFICATE-----`;
    assert.equal(bundle(one.replaceAll("\n", "\r\n"), wide, `subject=test\n${three}\n\n`), one + two + three);
    assert.equal(bundle(one.replaceAll("\n", "\r\n"), one), one);
    assert.equal(bundle((one + two).repeat(300)), one + two);
  });

  it("accepts no private key, and no other PEM content", () => {
    refused([one, key], "PEM other than certificates, such as a private key");
    refused([one + key], "such as a private key");
    const encrypted = key.replaceAll("PRIVATE", "EC PRIVATE").replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\n\n");
    refused([one + encrypted], "a PEM block is incomplete");
    refused([key.replaceAll("PRIVATE KEY", "CERTIFICATE")], "contains no X.509 certificate");
  });

  it("accepts only complete certificates", () => {
    refused(["hunter2-s3cr3t-and-more-of-it"], "one of the strings has no certificate");
    refused([one, " "], "one of the strings has no certificate");
    refused(["", ""], "none of the strings contains a certificate");
    refused([one.replace(/-----END.*/, "")], "a PEM block is incomplete");
    refused([one.slice(40)], "a PEM block is incomplete");
    refused([one.replace("M", "*")], "a PEM block is incomplete");
    const both = Buffer.concat([bodyOf(one), bodyOf(two)].map((body) => Buffer.from(body, "base64"))).toString(
      "base64",
    );
    refused([`-----BEGIN CERTIFICATE-----\n${both}\n-----END CERTIFICATE-----\n`], "more than one X.509 certificate");
    refused([one.replace(bodyOf(one).slice(0, 64), bodyOf(one).slice(8, 64))], "contains no X.509 certificate");
  });
});
