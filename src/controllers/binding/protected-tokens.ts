/**
 * Finds the protected Secrets of a binding that contain the token of a ServiceAccount: Kubernetes deletes such a Secret with its
 * account. The status lists them for the admission policies, which see no Secret when a ServiceAccount is deleted. Pure.
 */
import type { SecretBinding, Status } from "../../api/binding.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { LiveSource } from "../../transform/live-source.ts";

/** Whether Inlay must read sources for that, even if nothing else needs them. */
export const protectsSecrets = ({ spec }: SecretBinding): boolean =>
  spec.sources.some(({ protect, secret }) => protect !== undefined && secret !== undefined);

/** For a Secret that was not read, the entry in the status stays. */
export function protectedTokens(
  { spec, status }: SecretBinding,
  sources: ReadonlyMap<string, LiveSource | Problem>,
): Pick<Status, "protectedTokens"> {
  const accounts = new Map<string, string>();
  for (const { protect, secret, name } of spec.sources) {
    if (protect === undefined || secret === undefined) continue;
    const live = sources.get(name ?? secret.name);
    const known = status?.protectedTokens?.find((each) => each.secret === secret.name)?.serviceAccountName;
    const account =
      live === undefined || live instanceof Problem ? known : live.kind === "data" ? live.tokenOf : undefined;
    if (account !== undefined) accounts.set(secret.name, account);
  }
  const tokens = [...accounts].map(([secret, serviceAccountName]) => ({ secret, serviceAccountName }));
  return tokens.length === 0 ? {} : { protectedTokens: tokens };
}
