/** A failed command says what is wrong, where, and what to do, and not only a code of the system. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { failureText } from "../../../src/cli/failure.ts";
import { ApiError } from "../../../src/kube/api-error.ts";

describe("the text of a failure", () => {
  it("names the port that is in use, and the flags that choose another", async () => {
    const [first, second] = [createServer(), createServer()];
    first.listen(0, "127.0.0.1");
    await once(first, "listening");
    const { port } = first.address() as { port: number };
    second.listen(port, "127.0.0.1");
    const [error] = await once(second, "error");
    assert.match(
      failureText(error),
      new RegExp(`^port ${port} of 127.0.0.1 is in use; stop .*--health-port, --metrics-port or --debug-port$`),
    );
    first.close();
  });

  it("names the file that does not exist", () => {
    assert.throws(
      () => readFileSync("/nowhere/inlay.yaml"),
      (error) => failureText(error) === "/nowhere/inlay.yaml: there is no such file; correct the path, or create it",
    );
  });

  it("says that a path is a folder, and that a port below 1024 needs permissions", () => {
    assert.throws(
      () => readFileSync("/"),
      (error) => failureText(error) === "this is a folder; write the path of a file in it",
    );
    const denied = Object.assign(new Error("listen EACCES: permission denied 0.0.0.0:80"), {
      code: "EACCES",
      port: 80,
    });
    assert.match(failureText(denied), /^you may not open port 80; .* above 1023$/);
  });

  it("names the API server that can't be reached, is not trusted, or does not accept the credentials", () => {
    const text = (status: number, reason: string) =>
      failureText(new ApiError("GET /api/v1", status, reason), "https://10.0.0.1:6443");
    assert.match(
      text(0, "ECONNREFUSED"),
      /^the API server https:\/\/10\.0\.0\.1:6443 can't be reached: nothing listens there \(ECONNREFUSED\); check .*kubeconfig/,
    );
    assert.match(text(0, "Timeout"), /can't be reached: Timeout; check/);
    assert.match(
      text(0, "SELF_SIGNED_CERT_IN_CHAIN"),
      /^the API server \S+ is not trusted: the configured CA .*kubeconfig/,
    );
    assert.match(text(401, "Unauthorized"), /^the API server \S+ does not accept your credentials; log in again/);
    assert.equal(text(500, "InternalError"), "GET /api/v1: 500 InternalError");
  });

  it("is the message of any other error", () => {
    assert.equal(
      failureText(new Error("--insecure-metrics needs --health-port")),
      "--insecure-metrics needs --health-port",
    );
    assert.equal(failureText("text"), "text");
  });
});
