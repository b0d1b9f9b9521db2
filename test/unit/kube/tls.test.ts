/** That nothing goes to a server that is not the one that the credentials mean, and that the error says why. */
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

  /** Nothing was sent, so no token either. */
  async function distrusted(tls: Credentials["tls"], says: RegExp): Promise<void> {
    await assert.rejects(asked(tls), (error) => {
      assert.ok(error instanceof ApiError && error.status === 0);
      assert.match(error.message, says);
      return true;
    });
    assert.equal(server.received.length, 0);
  }

  it("that the CA vouches for is asked", async () => {
    assert.deepEqual(await asked({ ca: certificate.cert }), { items: [] });
  });

  it("of another CA is told nothing", async () => {
    const { cert } = await makeCertificate();
    await distrusted(
      { ca: cert },
      /^GET \/x: no answer \w+, the CA that is given did not sign .+: correct certificate-authority$/,
    );
  });

  it("of no CA that is known is told nothing, unless the system trusts it", async () => {
    await distrusted({}, /the CA that is given did not sign/);
  });

  it("of another name is told nothing", async () => {
    await distrusted(
      { ca: certificate.cert, servername: "kubernetes.example.com" },
      /ERR_TLS_CERT_ALTNAME_INVALID, the server's certificate is for another name: .+ tls-server-name$/,
    );
  });

  describe("where the environment says to trust anybody", () => {
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

    it("is told nothing either if the CA does not vouch for it", async () => {
      const { cert } = await makeCertificate();
      await distrusted({ ca: cert }, /the CA that is given did not sign/);
      await distrusted({ ca: certificate.cert, servername: "kubernetes.example.com" }, /for another name/);
    });
  });
});
