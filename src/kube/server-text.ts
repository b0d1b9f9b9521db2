/**
 * Finds in the text of a failed answer what failed, and the names of policies and webhooks. Nothing else of the text is
 * returned, because it quotes values. Each pattern matches from the beginning, where the text is the API server's own.
 */

/**
 * What the API server can't do until it is fixed: convert objects of a kind, decode a stored object, or call an
 * admission webhook. Other requests work.
 */
export type Failure = { of: "conversion" } | { of: "decoding" } | { of: "webhook"; webhook: string };

/** What denied a request. */
export type Denial = { webhook: string } | { policyKind: PolicyKind; policy: string; binding?: string };
type PolicyKind = "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy";

/** A name as Kubernetes accepts it for a webhook, a policy or its binding. */
const NAME = "[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?";
/** While its cache is empty because it can't list a kind, the API server answers watches with 429 and this text. */
const UNREADY = String.raw`(?:storage is \(re\)initializing: failed to list [^:]{1,400}: )?`;
const CONVERTING = String.raw`(?:failed to convert (?:new|live) object \([^()]*\) to proper version(?: \([^()]*\))?: )?`;
const CONVERSION = new RegExp(
  String.raw`^(?:Internal error occurred: )?${UNREADY}${CONVERTING}conversion webhook for [^ ]+, Kind=\w+ (?:failed|returned)\b`,
);
/** Go's errors for what is no JSON, no object of a known version, or no protobuf. They come without a reason. */
const DECODING = new RegExp(
  `^${UNREADY}(?:${[
    String.raw`illegal base64 data at input byte \d+$`,
    'no kind "[^"]*" is registered for version "',
    "proto: ",
    "invalid character '",
    "unexpected end of JSON input$",
    "json: cannot unmarshal ",
    "couldn't get version/kind; json parse error: ",
    "request to convert CR (?:list failed|from an invalid group/version)",
  ].join("|")})`,
);
const UNCALLED_WEBHOOK = new RegExp(`^Internal error occurred: failed calling webhook "(${NAME})"[:;]`);
const DENYING_WEBHOOK = new RegExp(`^admission webhook "(${NAME})" denied the request(?::| without explanation$)`);
const DENYING_POLICY = new RegExp(
  String.raw`^[a-z0-9.-]+ "[^"\\]*" is forbidden: ValidatingAdmissionPolicy '(${NAME})'(?: with binding '(${NAME})')? denied request: `,
);
const DENYING_MUTATION = new RegExp(`^policy '(${NAME})' with binding '(${NAME})' denied request: `);
const NO_DRY_RUN = new RegExp(`^admission webhook "${NAME}" does not support dry run$`);

/** The permanent failure behind an answer with 500 or 429; undefined for an outage of the API server or etcd. */
export function failureIn(status: number, text: string): Failure | undefined {
  if (status !== 500 && status !== 429) return undefined;
  const [, webhook] = UNCALLED_WEBHOOK.exec(text) ?? [];
  if (webhook !== undefined) return { of: "webhook", webhook };
  if (CONVERSION.test(text)) return { of: "conversion" };
  return DECODING.test(text) ? { of: "decoding" } : undefined;
}

/** The webhook or policy that denied a request. A webhook may choose any status code. */
export function denialIn(text: string): Denial | undefined {
  const [, webhook] = DENYING_WEBHOOK.exec(text) ?? [];
  if (webhook !== undefined) return { webhook };
  return (
    policyDenial("ValidatingAdmissionPolicy", DENYING_POLICY.exec(text)) ??
    policyDenial("MutatingAdmissionPolicy", DENYING_MUTATION.exec(text))
  );
}

function policyDenial(policyKind: PolicyKind, found: RegExpExecArray | null): Denial | undefined {
  const [, policy, binding] = found ?? [];
  return policy === undefined ? undefined : { policyKind, policy, ...(binding !== undefined && { binding }) };
}

/** Whether a dry run was refused because a webhook has side effects. */
export const refusesDryRun = (text: string): boolean => NO_DRY_RUN.test(text);
