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
      new RegExp(`^port ${port} of 127.0.0.1 is in use; .*--health-port or --metrics-port$`),
    );
    first.close();
  });

  it("names the file that does not exist", () => {
    assert.throws(
      () => readFileSync("/nowhere/inlay.yaml"),
      (error) => failureText(error) === "/nowhere/inlay.yaml: there is no such file; correct the path, or create it",
    );
  });

  it("says what to check if the API server can't be reached", () => {
    assert.match(failureText(new ApiError("GET /api/v1", 0, "ECONNREFUSED")), /can't be reached: check .*kubeconfig/);
  });

  it("is the message of any other error", () => {
    assert.equal(
      failureText(new Error("--insecure-metrics needs --health-port")),
      "--insecure-metrics needs --health-port",
    );
    assert.equal(failureText("text"), "text");
  });
});
