/** Explains errors of the system, which name only a code: what is wrong, where, and what to do. */

type SystemError = Error & { code?: string; path?: string; address?: string; port?: number };

/** The text for a command that failed. */
export function failureText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code = "", path, port, address, message } = error as SystemError;
  if (code === "EADDRINUSE")
    return `port ${port} of ${address} is in use; stop the other process, or choose another port with --health-port or --metrics-port`;
  if (code === "ENOENT" && path !== undefined) return `${path}: there is no such file; correct the path, or create it`;
  if (code === "EACCES" && path !== undefined) return `${path}: you may not read this file; correct its permissions`;
  const [, isUnreached] = /: no answer (ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|ETIMEDOUT)$/.exec(message) ?? [];
  if (isUnreached !== undefined)
    return `${message}; the API server can't be reached: check that the cluster runs, and its address in the kubeconfig (--kubeconfig, or KUBECONFIG)`;
  return message;
}
