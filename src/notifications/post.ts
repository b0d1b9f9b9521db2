/**
 * Sends one POST to a receiver on a separate connection, with one deadline for the whole exchange. Follows no redirects. Drops all error
 * texts of undici, Node and the server, which may contain the URL, which is a secret.
 */
import { Agent } from "undici";
import type { SecretValue } from "../apimachinery/secret-value.ts";

const DEADLINE_MS = 10_000;
/** The most of an answer that is read. Its content is not used. */
const MAX_ANSWER = 64 * 1024;

/** The result of a message. `retry`: a later attempt may succeed. */
export type PostResult =
  | { outcome: "sent" }
  | { outcome: "rejected"; why: string }
  | { outcome: "retry"; why: string; afterMs?: number };

export async function post(url: SecretValue<URL>, body: string, signal: AbortSignal): Promise<PostResult> {
  const agent = new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    // Set explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED in the environment has no effect.
    connect: { rejectUnauthorized: true, timeout: DEADLINE_MS },
  });
  const { promise: late, resolve } = Promise.withResolvers<PostResult>();
  const timer = setTimeout(() => resolve({ outcome: "retry", why: "no answer within 10 s" }), DEADLINE_MS);
  const onAbort = () => resolve({ outcome: "retry", why: "the controller is stopping" });
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([send(agent, url, body), late]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    // Also ends the request if it is still running.
    agent.destroy().catch(() => {});
  }
}

async function send(agent: Agent, url: SecretValue<URL>, body: string): Promise<PostResult> {
  try {
    const { origin, pathname, search } = url.reveal();
    const headers = { "content-type": "application/json", "user-agent": "inlay" };
    const answer = await agent.request({ origin, path: pathname + search, method: "POST", headers, body });
    // A failure while reading the rest of the answer does not matter.
    await answer.body.dump({ limit: MAX_ANSWER }).catch(() => {});
    return resultOf(answer.statusCode, answer.headers["retry-after"]);
  } catch (error) {
    const { code, name } = error as { code?: string; name?: string };
    return { outcome: "retry", why: `no connection (${code ?? name ?? "Error"})` };
  }
}

export function resultOf(status: number, retryAfter: unknown): PostResult {
  if (status >= 200 && status < 300) return { outcome: "sent" };
  const why = `the receiver answered with status ${status}`;
  if (status >= 300 && status < 400)
    return { outcome: "rejected", why: `${why}; redirects are not followed, so set the final URL` };
  if (status !== 408 && status !== 429 && status < 500) return { outcome: "rejected", why };
  const afterMs = retryAfterMs(retryAfter);
  return { outcome: "retry", why, ...(afterMs !== undefined && { afterMs }) };
}

/** In seconds, or as a date. */
function retryAfterMs(header: unknown): number | undefined {
  if (typeof header !== "string") return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return ms > 0 ? ms : undefined;
}
