/** Asks the cluster for the names that complete a word, for at most a second. */
import { homedir } from "node:os";
import type { FindNames } from "./complete.ts";

const WITHIN_MS = 1_000;

export const findNames: FindNames = async (kind, { kubeconfig, namespace }) => {
  const [{ loadCredentials }, { Transport }, { Reader }, { namesOf }] = await Promise.all([
    import("../kube/credentials.ts"),
    import("../kube/transport.ts"),
    import("../explain/reading.ts"),
    import("../explain/names.ts"),
  ]);
  // The shell has not expanded the word yet.
  const credentials = await loadCredentials(kubeconfig?.replace(/^~(?=\/)/, homedir()));
  const transport = new Transport(credentials, { deadlineMs: WITHIN_MS });
  const late = AbortSignal.timeout(WITHIN_MS);
  const limited = {
    request: <T>(request: Parameters<typeof transport.request>[0]) => transport.request<T>(request, late),
    lines: transport.lines.bind(transport),
  };
  try {
    return await namesOf(new Reader(limited), kind, namespace ?? credentials.namespace ?? "default");
  } finally {
    await transport.close();
  }
};
