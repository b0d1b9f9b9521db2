/** The sources of credentials, and their renewal; with real files and a real plugin. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { registerHooks } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { stringify } from "yaml";
import { loadCredentials, type Surroundings } from "../../../src/kube/credentials.ts";
import { foundIn, secretText } from "../../controller/leak-detector.ts";
import { makeCertificate } from "./server.ts";

type Settings = Record<string, unknown>;

const SERVER = "https://10.0.0.1:6443";

describe("credentials", () => {
  let certificate: { cert: Buffer; key: Buffer };
  let folder: string;
  let now: number;
  let around: Surroundings;
  before(async () => {
    certificate = await makeCertificate();
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "inlay-credentials-"));
    now = 0;
    around = { env: {}, home: join(folder, "home"), account: join(folder, "account"), now: () => now };
  });
  afterEach(() => rm(folder, { recursive: true }));

  const write = async (name: string, content: string | Buffer): Promise<string> => {
    const path = join(folder, name);
    await mkdir(join(path, ".."), { recursive: true });
    await writeFile(path, content);
    return path;
  };
  /** A kubeconfig with one context. */
  const kubeconfig = (user: Settings, cluster: Settings = {}, more: Settings = {}) =>
    stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "c", cluster: { server: SERVER, ...cluster } }],
      users: [{ name: "u", user }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      "current-context": "x",
      ...more,
    });
  const authorization = async (file?: string) =>
    (await (await loadCredentials(file, around)).headers())["Authorization"];

  describe("of a pod", () => {
    const asPod = async (token: string) => {
      around.env = { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443" };
      await write("account/ca.crt", certificate.cert);
      await write("account/token", `${token}\n`);
    };

    it("are its account's token and the cluster's CA", async () => {
      const token = secretText("token");
      await asPod(token);
      const { server, tls, headers, namespace } = await loadCredentials(undefined, around);
      assert.equal(server.href, "https://10.96.0.1/");
      assert.deepEqual(tls, { ca: certificate.cert });
      assert.deepEqual(await headers(), { Authorization: `Bearer ${token}` });
      assert.equal(namespace, undefined);
      await write("account/namespace", "registry\n");
      assert.equal((await loadCredentials(undefined, around)).namespace, "registry");
      around.env["KUBERNETES_SERVICE_HOST"] = "fd00::1";
      assert.equal((await loadCredentials(undefined, around)).server.hostname, "[fd00::1]");
    });

    it("follow changes of the token file, and stay valid while it is replaced", async () => {
      const [first, second] = [secretText("first"), secretText("second")];
      await asPod(first);
      const { headers } = await loadCredentials(undefined, around);
      await write("account/token", second);
      assert.equal((await headers())["Authorization"], `Bearer ${first}`);
      await rm(join(folder, "account/token"));
      now += 31_000;
      assert.equal((await headers())["Authorization"], `Bearer ${first}`);
      await write("account/token", second);
      now += 31_000;
      assert.equal((await headers())["Authorization"], `Bearer ${second}`);
    });
  });

  describe("of a kubeconfig", () => {
    it("are the values in it", async () => {
      const [cert, key] = [certificate.cert.toString("base64"), certificate.key.toString("base64")];
      const token = secretText("token");
      const user = { token, "client-certificate-data": cert, "client-key-data": key };
      const cluster = { "certificate-authority-data": cert, "tls-server-name": "api.example.com" };
      const { server, tls, headers } = await loadCredentials(await write("config", kubeconfig(user, cluster)), around);
      assert.equal(server.origin, SERVER);
      assert.deepEqual(tls, { ...certificate, ca: certificate.cert, servername: "api.example.com" });
      assert.deepEqual(await headers(), { Authorization: `Bearer ${token}` });
    });

    it("are the content of the files that it names, relative to its folder; changes of a token file are followed", async () => {
      await write("pki/ca.pem", certificate.cert);
      await write("pki/key.pem", certificate.key);
      const absolute = await write("elsewhere/cert.pem", certificate.cert);
      const [first, second] = [secretText("first"), secretText("second")];
      await write("token", first);
      const user = { "client-certificate": absolute, "client-key": "pki/key.pem", token: "stale", tokenFile: "token" };
      const file = await write("config", kubeconfig(user, { "certificate-authority": "pki/ca.pem" }));
      const { tls, headers } = await loadCredentials(file, around);
      assert.deepEqual(tls, { ...certificate, ca: certificate.cert });
      assert.equal((await headers())["Authorization"], `Bearer ${first}`);
      await write("token", second);
      now += 31_000;
      assert.equal((await headers())["Authorization"], `Bearer ${second}`);
    });

    it("are from $KUBECONFIG, else from the home directory, else from the pod", async () => {
      const [pod, home, listed] = [secretText("pod"), secretText("home"), secretText("listed")];
      around.env = { KUBERNETES_SERVICE_HOST: "10.96.0.1" };
      await write("account/ca.crt", certificate.cert);
      await write("account/token", pod);
      assert.equal(await authorization(), `Bearer ${pod}`);
      await write("home/.kube/config", kubeconfig({ token: home }));
      assert.equal(await authorization(), `Bearer ${home}`);
      around.env["KUBECONFIG"] = await write("listed", kubeconfig({ token: listed }));
      assert.equal(await authorization(), `Bearer ${listed}`);
      assert.equal(await authorization(join(folder, "home/.kube/config")), `Bearer ${home}`);
    });

    it("are from the first file of a list that has an entry", async () => {
      const [first, second] = [secretText("first"), secretText("second")];
      const users = { users: [{ name: "u", user: { token: first } }, { name: "v" }] };
      around.env["KUBECONFIG"] = [
        join(folder, "missing"),
        await write("a", stringify({ ...users, "current-context": "" })),
        await write("sub/b", kubeconfig({ token: second }, { "certificate-authority": "ca.pem" })),
      ].join(delimiter);
      await write("sub/ca.pem", certificate.cert);
      const { tls, headers } = await loadCredentials(undefined, around);
      assert.deepEqual(tls, { ca: certificate.cert });
      assert.deepEqual(await headers(), { Authorization: `Bearer ${first}` });
    });

    it("include the namespace of the context", async () => {
      const token = secretText("token");
      const contexts = [{ name: "x", context: { cluster: "c", user: "u", namespace: "registry" } }];
      const file = await write("config", kubeconfig({ token }, {}, { contexts }));
      assert.equal((await loadCredentials(file, around)).namespace, "registry");
      assert.equal((await loadCredentials(await write("other", kubeconfig({ token })), around)).namespace, undefined);
    });

    it("come from its plugin, and only then load client-node", async () => {
      const imported = new Set<string>();
      const hooks = registerHooks({
        resolve(specifier, context, next) {
          imported.add(specifier);
          return next(specifier, context);
        },
      });
      try {
        await authorization(await write("plain", kubeconfig({ token: secretText("plain") })));
        assert.ok(!imported.has("@kubernetes/client-node"));
        const token = secretText("plugin");
        const answer = { apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status: { token } };
        const plugin = await write("plugin.js", `console.log(${JSON.stringify(JSON.stringify(answer))})`);
        const exec = { apiVersion: answer.apiVersion, command: process.execPath, args: [plugin] };
        await write("ca.pem", certificate.cert);
        const file = await write("config", kubeconfig({ exec }, { "certificate-authority": "ca.pem" }));
        const { tls, headers } = await loadCredentials(file, around);
        assert.deepEqual(tls, { ca: certificate.cert });
        assert.equal((await headers())["Authorization"], `Bearer ${token}`);
        assert.ok(imported.has("@kubernetes/client-node"));
      } finally {
        hooks.deregister();
      }
    });
  });

  describe("that are invalid fail with the cause, and quote nothing", () => {
    const token = secretText("token");
    const cases: Record<string, [content: string, says: RegExp]> = {
      "that is not YAML": [`users: [{token: ${token}`, /config is not a kubeconfig: it is not YAML; /],
      "without a current context": [
        kubeconfig({ token }, {}, { "current-context": undefined }),
        /config names no cluster: it sets no current-context; .* kubectl config use-context$/,
      ],
      "whose context has no cluster": [
        kubeconfig({ token }, {}, { clusters: [] }),
        /config names no cluster: its current-context has no cluster with a server; /,
      ],
      "whose server is not a URL": [kubeconfig({ token }, { server: "10.0.0.1" }), /the server of \S+ is not a URL/],
      "whose server is a name and a port": [
        kubeconfig({ token }, { server: "localhost:6443" }),
        /the server of \S+ is not a URL/,
      ],
      "whose server has no TLS": [
        kubeconfig({ token }, { server: "http://10.0.0.1:8080" }),
        /the server of \S+ is not an https URL/,
      ],
      "that skips verification": [
        kubeconfig({ token }, { "insecure-skip-tls-verify": true }),
        /insecure-skip-tls-verify.* set the cluster's certificate-authority/,
      ],
      "with a proxy": [kubeconfig({ token }, { "proxy-url": "http://proxy" }), /has a proxy-url/],
      "that impersonates": [kubeconfig({ token, as: "jane" }), /impersonates a user \(as\)/],
      "whose CA's file is missing": [
        kubeconfig({ token }, { "certificate-authority": "none.pem" }),
        /^can't read the certificate-authority \S+none\.pem: there is no such file; /,
      ],
      "whose token's file is missing": [
        kubeconfig({ tokenFile: "none" }),
        /^can't read the token \S+none: there is no such file; /,
      ],
      "whose CA's file is a device": [
        kubeconfig({ token }, { "certificate-authority": "/dev/zero" }),
        /^can't read the certificate-authority \/dev\/zero: this is a device; write the path of a file$/,
      ],
      "whose CA is invalid": [
        kubeconfig({ token }, { "certificate-authority-data": Buffer.from(token).toString("base64") }),
        /the CA of \S+ is not a certificate in PEM; /,
      ],
      "whose key is invalid": [
        kubeconfig({ "client-key-data": Buffer.from(token).toString("base64") }),
        /the client certificate or key of \S+ is not a matching pair in PEM \(ERR_/,
      ],
    };
    for (const [what, [content, says]] of Object.entries(cases)) {
      it(`a kubeconfig ${what}`, async () => {
        await assert.rejects(loadCredentials(undefined, await withConfig(content)), (error: Error) => {
          assert.match(error.message, says);
          assert.deepEqual(foundIn(`${error.stack}${error.cause}`), []);
          return true;
        });
      });
    }
    const withConfig = async (content: string) => {
      around.env["KUBECONFIG"] = await write("config", content);
      return around;
    };

    for (const [what, program] of Object.entries({
      "that writes no JSON": `console.log(${JSON.stringify(token)})`,
      "that writes half of it": `process.stdout.write('{"status":{"token":' + ${JSON.stringify(JSON.stringify(token))})`,
      "that fails": `console.error(${JSON.stringify(token)}); process.exitCode = 1`,
    })) {
      it(`a plugin ${what}`, async () => {
        const exec = { command: process.execPath, args: [await write("plugin.js", program)] };
        await assert.rejects(loadCredentials(undefined, await withConfig(kubeconfig({ exec }))), (error: Error) => {
          assert.match(error.message, /plugin gave no credentials \(\w+\); run it by hand to see why$/);
          assert.deepEqual(foundIn(`${error.stack}${error.cause}`), []);
          return true;
        });
      });
    }

    it("a missing kubeconfig", async () => {
      await assert.rejects(
        loadCredentials(join(folder, "none"), around),
        /^Error: can't read the kubeconfig \S+none: there is no such file; /,
      );
    });

    it("without any source of credentials", async () => {
      await assert.rejects(
        loadCredentials(undefined, around),
        /no cluster is configured: set --kubeconfig or KUBECONFIG/,
      );
    });

    it("a pod whose token is empty", async () => {
      around.env = { KUBERNETES_SERVICE_HOST: "10.96.0.1" };
      await write("account/ca.crt", certificate.cert);
      await write("account/token", "\n");
      await assert.rejects(loadCredentials(undefined, around), /the token \S+token is empty$/);
    });
  });
});
