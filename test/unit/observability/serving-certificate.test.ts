/** The certificate of the metrics server: created, or read from files that change. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, request } from "undici";
import {
  type CertificateAndKey,
  ServingCertificate,
  selfSigned,
  serveMetrics,
} from "../../../src/observability/metrics-server.ts";

describe("a self-signed certificate", () => {
  it("is valid for its names and for servers, and signed with its own key", () => {
    const now = Date.UTC(2026, 10, 23);
    const certificate = new X509Certificate(selfSigned(["inlay-0", "localhost"], now).cert);
    assert.equal(certificate.subject, "CN=inlay-0");
    assert.equal(certificate.checkHost("localhost"), "localhost");
    assert.ok(certificate.verify(certificate.publicKey) && certificate.checkIssued(certificate));
    assert.deepEqual(certificate.keyUsage, ["1.3.6.1.5.5.7.3.1"]);
    assert.ok(Date.parse(certificate.validFrom) < now && now < Date.parse(certificate.validTo));
  });

  it("is different each time", () => {
    const [one, two] = [selfSigned(["localhost"]), selfSigned(["localhost"])];
    assert.notEqual(one.key, two.key);
    assert.notEqual(new X509Certificate(one.cert).serialNumber, new X509Certificate(two.cert).serialNumber);
  });
});

describe("the certificate in a folder", () => {
  let folder: string;
  let logged: string[];
  const log = {
    info: (_: object, text: string) => logged.push(text),
    error: (_: object, text: string) => logged.push(text),
  };
  const write = async ({ cert, key }: CertificateAndKey) => {
    await writeFile(join(folder, "tls.crt"), cert);
    await writeFile(join(folder, "tls.key"), key);
  };
  beforeEach(async () => {
    logged = [];
    folder = await mkdtemp(join(tmpdir(), "inlay-certificate-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("is served to a client that verifies it", async () => {
    const pair = selfSigned(["localhost"]);
    await write(pair);
    const metrics = { contentType: "text/plain", text: async () => "up 1\n" };
    const access = { check: async () => 200 as const, knows: () => false };
    const server = await serveMetrics({ port: 0, certDir: folder, metrics, access, log });
    const dispatcher = new Agent({ connect: { ca: pair.cert } });
    try {
      const answer = await request(`https://localhost:${server.port}/metrics`, { dispatcher });
      assert.deepEqual([answer.statusCode, await answer.body.text()], [200, "up 1\n"]);
      const posted = await request(`https://localhost:${server.port}/metrics`, { dispatcher, method: "POST" });
      assert.equal(posted.statusCode, 405);
      await posted.body.dump();
    } finally {
      await dispatcher.close();
      await server.stop();
    }
  });

  it("expires when its file says so", async () => {
    const pair = selfSigned(["localhost"]);
    await write(pair);
    const certificate = await ServingCertificate.load(folder, log);
    assert.equal(certificate.expiresAt * 1_000, Date.parse(new X509Certificate(pair.cert).validTo));
  });

  it("is reloaded when it changes, and kept while its files do not match", async () => {
    const [first, second] = [selfSigned(["localhost"]), selfSigned(["localhost"])];
    await write(first);
    const certificate = await ServingCertificate.load(folder, log);
    const seen: CertificateAndKey[] = [];
    const look = () => certificate.look((pair) => seen.push(pair));
    await look();
    await write({ cert: second.cert, key: first.key });
    for (let n = 0; n < 2; n++) await look();
    assert.deepEqual([seen, certificate.current, logged.length], [[], first, 1]);
    await write(second);
    await look();
    assert.deepEqual([seen, certificate.current], [[second], second]);
  });

  it("fails the start if it can't be used, with the folder and the expected files", async () => {
    const load = () => ServingCertificate.load(folder, log);
    await assert.rejects(
      load(),
      ({ message }: Error) => message.includes(folder) && /tls\.crt or tls\.key does not exist/.test(message),
    );
    const pair = selfSigned(["localhost"]);
    await write({ cert: pair.cert, key: "no key" });
    await assert.rejects(load(), ({ message }: Error) => message.includes(folder) && !message.includes("no key"));
  });
});
