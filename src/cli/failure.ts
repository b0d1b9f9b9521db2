/** Explains errors of the system and of connections, which name only a code: what is wrong, where, and what to do. */
import { whyUnreadable } from "../apimachinery/file-errors.ts";
import { ApiError } from "../kube/api-error.ts";

type SystemError = Error & { code?: string; path?: string; address?: string; port?: number };

const CHOOSE_PORT = "choose another port with --health-port, --metrics-port or --debug-port";
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ENOTFOUND: "there is no such host",
  EAI_AGAIN: "the name server does not answer",
  EHOSTUNREACH: "there is no route to it",
  ENETUNREACH: "there is no route to it",
  ETIMEDOUT: "it does not answer in time",
  ECONNRESET: "it cut the connection",
};

/** The text for a command that failed. `server` is the address of the API server, if known. */
export function failureText(error: unknown, server?: string): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof ApiError) return apiFailure(error, server === undefined ? "" : ` ${server}`);
  const { code = "", path, port, address, message } = error as SystemError;
  if (code === "EADDRINUSE")
    return `port ${port}${placeOf(address)} is in use; stop the process that uses it, or ${CHOOSE_PORT}`;
  if (code === "EACCES" && port !== undefined) return `you may not open port ${port}; ${CHOOSE_PORT} above 1023`;
  const why = whyUnreadable(error);
  if (path !== undefined && why !== undefined) return `${path}: ${why}`;
  // Node does not name the path in an error of reading a folder.
  if (code === "EISDIR" && why !== undefined) return why;
  return message;
}

function apiFailure({ status, reason, message }: ApiError, server: string): string {
  const kubeconfig = "the kubeconfig (--kubeconfig, or KUBECONFIG)";
  if (status === 401)
    return `the API server${server} does not accept your credentials; log in again, or correct the user in ${kubeconfig}`;
  if (status !== 0) return message;
  const [, untrusted] = /: no answer [^,]*, (.*)$/s.exec(message) ?? [];
  if (untrusted !== undefined) return `the API server${server} is not trusted: ${untrusted}, in ${kubeconfig}`;
  const why = WORDS[reason];
  return `the API server${server} can't be reached: ${why === undefined ? reason : `${why} (${reason})`}; check that the cluster runs, and its address in ${kubeconfig}`;
}

const placeOf = (address: string | undefined) =>
  address === undefined || address === "::" || address === "0.0.0.0" ? "" : ` of ${address}`;
