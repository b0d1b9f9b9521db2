/** When a silent connection is closed. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { endWhenSilent } from "../../../src/kube/connector.ts";
import { fakeClock } from "../clock.ts";

class FakeSocket extends EventEmitter {
  bytesRead = 100;
  ended: unknown;
  destroy(error?: Error): this {
    this.ended = (error as NodeJS.ErrnoException).code;
    this.emit("close");
    return this;
  }
}

describe("a connection", () => {
  const clock = fakeClock();
  let socket: FakeSocket;
  beforeEach(() => {
    socket = new FakeSocket();
    endWhenSilent(socket);
  });

  it("ends when it has received nothing for ten seconds", async () => {
    await clock.pass(9_000);
    assert.equal(socket.ended, undefined);
    await clock.pass(1_000);
    assert.equal(socket.ended, "ETIMEDOUT");
  });

  it("stays open while it receives data", async () => {
    for (let seconds = 0; seconds < 60; seconds += 6) {
      socket.bytesRead += 17;
      await clock.pass(6_000);
    }
    assert.equal(socket.ended, undefined);
    await clock.pass(10_000);
    assert.equal(socket.ended, "ETIMEDOUT");
  });

  it("is not checked any more after it is closed", async () => {
    socket.emit("close");
    await clock.pass(60_000);
    assert.equal(socket.ended, undefined);
  });
});
