/** Finds Debian's Redis, which Argo CD needs, and installs it if it is missing and the user may. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

export async function redisServer(): Promise<string> {
  const isThere = () =>
    run("redis-server", ["--version"]).then(
      () => true,
      () => false,
    );
  if (await isThere()) return "redis-server";
  process.stderr.write("Installing redis-server for the tests with apt-get.\n");
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const failed = await run("apt-get", ["install", "--yes", "--no-install-recommends", "redis-server"], { env }).then(
    () => undefined,
    (error: Error) => error,
  );
  if (!(await isThere()))
    throw new Error(
      "Argo CD needs Redis, and no redis-server was found in the PATH. Install it: apt-get install redis-server",
      {
        cause: failed,
      },
    );
  return "redis-server";
}
