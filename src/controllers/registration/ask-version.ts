/** Asks another replica for its version, at /version of its health port. */
import { isIPv6 } from "node:net";
import { isObject, parseJson } from "../../apimachinery/json.ts";

/** As in observability/health.ts. */
const { request } = process.getBuiltinModule("node:http");
const DEADLINE_MS = 2_000;
const MAX_LENGTH = 1_000;

/** Undefined if the replica does not answer, or reports no version. */
export async function askVersion({ host, port }: { host: string; port: number }): Promise<string | undefined> {
  const url = `http://${isIPv6(host) ? `[${host}]` : host}:${port}/version`;
  try {
    const version = parseJson(await get(url));
    const text = isObject(version) ? version["version"] : undefined;
    return typeof text === "string" ? text : undefined;
  } catch {
    return undefined;
  }
}

function get(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    // The connection is not kept: it is used once in ten seconds.
    const asked = request(url, { agent: false, signal: AbortSignal.timeout(DEADLINE_MS) }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
        if (text.length > MAX_LENGTH) response.destroy(new Error("too long"));
      });
      response.once("error", reject);
      response.once("end", () => (response.statusCode === 200 ? resolve(text) : reject(new Error("no version"))));
    });
    asked.once("error", reject).end();
  });
}
