/** Nothing is sent to a server that does not match the credentials, and the error says why. */
import assert from "node:assert/strict";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { Credentials } from "../../../src/kube/credentials.ts";
import { CONTROLLER } from "../../../src/kube/identity.ts";
import { Transport } from "../../../src/kube/transport.ts";
import { json, makeCertificate, startServer, type TestServer } from "./server.ts";

describe("an API server", () => {
  let certificate: Awaited<ReturnType<typeof makeCertificate>>;
  let server: TestServer;
  before(async () => {
    certificate = await makeCertificate();
  });
  beforeEach(async () => {
    server = await startServer(certificate, json({ items: [] }));
  });
  afterEach(() => server.stop());

  async function asked(tls: Credentials["tls"]): Promise<unknown> {
    const transport = new Transport({ ...server.credentials, tls });
    try {
      return await transport.request({ method: "GET", path: "/x", identity: CONTROLLER });
    } finally {
      await transport.close();
    }
  }

  /** No request was sent, so no token either. */
  async function distrusted(tls: Credentials["tls"], says: RegExp): Promise<void> {
    await assert.rejects(asked(tls), (error) => {
      assert.ok(error instanceof ApiError && error.status === 0);
      assert.match(error.message, says);
      return true;
    });
    assert.equal(server.received.length, 0);
  }

  it("gets requests if the CA signed its certificate", async () => {
    assert.deepEqual(await asked({ ca: certificate.cert }), { items: [] });
  });

  it("of another CA gets no request", async () => {
    const { cert } = await makeCertificate();
    await distrusted(
      { ca: cert },
      /^GET \/x: no answer \w+, the configured CA did not sign .+: correct certificate-authority$/,
    );
  });

  it("of an unknown CA gets no request, unless the system trusts it", async () => {
    await distrusted({}, /CA did not sign/);
  });

  it("of another name gets no request", async () => {
    await distrusted(
      { ca: certificate.cert, servername: "kubernetes.example.com" },
      /ERR_TLS_CERT_ALTNAME_INVALID, the server's certificate is for another name: .+ tls-server-name$/,
    );
  });

  describe("if the environment disables verification", () => {
    const variable = "NODE_TLS_REJECT_UNAUTHORIZED";
    let former: string | undefined;
    before(() => {
      former = process.env[variable];
      process.env[variable] = "0";
    });
    after(() => {
      if (former === undefined) delete process.env[variable];
      else process.env[variable] = former;
    });

    it("gets no request either if the CA did not sign its certificate", async () => {
      const { cert } = await makeCertificate();
      await distrusted({ ca: cert }, /CA did not sign/);
      await distrusted({ ca: certificate.cert, servername: "kubernetes.example.com" }, /for another name/);
    });
  });
});
