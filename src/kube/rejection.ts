/** The problem of a write that the rules of the cluster do not allow: its schema, a policy or a webhook. */
import { PROTECTING_POLICY } from "../api/installation.ts";
import { Problem, type ProblemParts } from "../apimachinery/problem.ts";
import type { ApiError } from "./api-error.ts";
import type { Denial } from "./server-text.ts";

/** The refused request: its verb, and its object for messages. */
interface Refused {
  verb: string;
  object: string;
}

export class Rejection extends Problem {
  readonly error: ApiError;
  readonly refused: Refused;

  /** `findings` say which fields are refused and by which rule, as clauses. They contain no value. */
  constructor(error: ApiError, refused: Refused, findings: readonly string[] = []) {
    super(isProtection(error) ? "Protected" : "Rejected", partsOf(error, refused, findings));
    this.error = error;
    this.refused = refused;
  }

  /** The same rejection with an explanation. */
  because(findings: readonly string[]): Rejection {
    return findings.length === 0 ? this : new Rejection(this.error, this.refused, findings);
  }
}

/** Whether the object is protected by another binding, or by this one. */
const isProtection = ({ denial }: ApiError): boolean =>
  denial !== undefined && "policy" in denial && denial.policy === PROTECTING_POLICY;

function partsOf(
  { status, reason, denial }: ApiError,
  { verb, object }: Refused,
  findings: readonly string[],
): ProblemParts {
  const answer = `(${status} ${reason})`;
  const why = findings.length === 0 ? "" : `${findings.join("; ")}: `;
  if (denial !== undefined) {
    const advice =
      "webhook" in denial
        ? "correct the values, or ask the owner of the webhook which values it allows"
        : "correct the values, or the policy";
    const { fix, command } = howToShow(denial);
    const what = `${why}${deniedBy(denial)} denied the request to ${verb} ${object} ${answer}`;
    return { what, fix: `${advice}. ${fix}`, command };
  }
  const refused = `the API server refused to ${verb} ${object} ${answer}`;
  const guess = "its schema, a CEL rule or an admission policy forbids the binding's values";
  const what = findings.length > 0 ? `${why}${refused}` : `${refused}; ${guess}`;
  return { what, fix: "correct the values or the rule" };
}

/** The rule that denied a request, as the subject of a sentence. */
export function deniedBy(denial: Denial): string {
  if ("webhook" in denial) return `the admission webhook ${denial.webhook}`;
  const { policyKind, policy, binding } = denial;
  return `${policyKind} ${policy}${binding === undefined ? "" : ` with binding ${binding}`}`;
}

/** How to show the rule. */
export const howToShow = (denial: Denial): { fix: string; command: string } =>
  "webhook" in denial
    ? findWebhook
    : { fix: "Show it", command: `kubectl get ${denial.policyKind.toLowerCase()} ${denial.policy} -o yaml` };

/** How to find the configuration that has a webhook. */
export const findWebhook = {
  fix: "Find its configuration",
  command:
    "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o custom-columns='KIND:.kind,NAME:.metadata.name,WEBHOOKS:.webhooks[*].name'",
};
