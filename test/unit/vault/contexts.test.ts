/** How many TLS contexts connections need. */
import assert from "node:assert/strict";
import type { SecureContext } from "node:tls";
import { Contexts, VaultHttp } from "../../../src/vault/http.ts";
import { servicesFor, settingsFor } from "./server.ts";

describe("TLS contexts", () => {
  it("are shared by connections with the same certificates, and bounded in number and size", () => {
    const made: (string | undefined)[] = [];
    const contexts = new Contexts((ca) => {
      made.push(ca);
      return {} as SecureContext;
    });
    assert.equal(contexts.of("a"), contexts.of("a"));
    assert.equal(contexts.of(undefined), contexts.of(undefined));
    assert.deepEqual(made, ["a", undefined]);
    for (let n = 0; n < 64; n++) contexts.of(`${n}`);
    contexts.of("a");
    assert.equal(made.filter((ca) => ca === "a").length, 2);
    contexts.of("b".repeat(3 * 1024 ** 2));
    contexts.of("c".repeat(3 * 1024 ** 2));
    contexts.of("b".repeat(3 * 1024 ** 2));
    assert.equal(made.filter((ca) => ca?.startsWith("b")).length, 2);
  });

  it("and sockets are not made for connections without requests", async () => {
    const runs: string[] = [];
    const cpu = {
      run: async <T>(name: string, work: () => T) => {
        runs.push(name);
        return work();
      },
    };
    const http = new VaultHttp(settingsFor(new URL("https://127.0.0.1:1")), servicesFor({ cpu }));
    assert.deepEqual(runs, []);
    await assert.rejects(http.send({ operation: "health", method: "GET", path: "sys/health" }));
    assert.deepEqual(runs.slice(0, 1), ["registry"]);
    await http.close();
  });
});
