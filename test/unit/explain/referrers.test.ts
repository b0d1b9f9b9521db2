/** Which namespaces are listed when the user may not list the workloads of the whole cluster. */
import assert from "node:assert/strict";
import type { Reading } from "../../../src/explain/reading.ts";
import { listWidely } from "../../../src/explain/trace.ts";

const namespaces = Array.from({ length: 40 }, (_, at) => `team-${at}`);
const refused = (where: string): Reading<string[]> => ({
  state: "Unreadable",
  message: `you may not list deployments.apps in ${where}`,
});

describe("the workloads of many namespaces", () => {
  it("are listed by one request if that is allowed", async () => {
    const asked: unknown[] = [];
    const readings = await listWidely(namespaces, async (namespace) => {
      asked.push(namespace);
      return { state: "Found", it: ["all"] };
    });
    assert.deepEqual(asked, [undefined]);
    assert.deepEqual(readings, [{ state: "Found", it: ["all"] }]);
  });

  const byNamespace = async (all: readonly string[]) => {
    const asked: string[] = [];
    const readings = await listWidely(all, async (namespace) => {
      if (namespace === undefined) return refused("all namespaces");
      asked.push(namespace);
      return namespace === "team-1" ? refused(`namespace ${namespace}`) : { state: "Found", it: [namespace] };
    });
    return { asked, readings };
  };

  it("are listed in 16 namespaces otherwise, and the message names others", async () => {
    const { asked, readings } = await byNamespace(namespaces);
    assert.deepEqual(asked, namespaces.slice(0, 16));
    assert.deepEqual(
      readings.flatMap((each) => (each.state === "Found" ? each.it : [])),
      asked.filter((each) => each !== "team-1"),
    );
    const unread = readings.filter(({ state }) => state !== "Found");
    const message =
      "you may not list deployments.apps in all namespaces; skipped these namespaces with copies: team-1, team-16, team-17 and 22 more";
    assert.deepEqual(unread, [{ state: "Unreadable", message }]);
  });

  it("need no cluster-wide permission if all the namespaces can be listed", async () => {
    const { readings } = await byNamespace(["team-0", "team-2"]);
    assert.deepEqual(readings, [
      { state: "Found", it: ["team-0"] },
      { state: "Found", it: ["team-2"] },
    ]);
  });
});
