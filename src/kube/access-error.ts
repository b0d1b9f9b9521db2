/** Turns failed requests into Problems that say what to do. */
import { MAX_LEVELS } from "../apimachinery/json.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import {
  apiVersionOf,
  describeObject,
  type ObjectRef,
  parseApiVersion,
  plainWord,
  type Resource,
} from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { ACCOUNT_TOKENS, SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import { similarName } from "../apimachinery/suggest-names.ts";
import { MAX_CHARACTERS, MAX_OWNERS, MAX_OWNERS_CHARACTERS } from "./answer-text.ts";
import { ApiError, isNotFound, objectOf, verbOf } from "./api-error.ts";
import { grantCommands, resourceText, shellWord } from "./grant-commands.ts";
import { CONTROLLER, describeIdentity, homeOf, type Identity, serviceAccountIdentity } from "./identity.ts";
import { findWebhook, Rejection } from "./rejection.ts";
import { OVER_BUDGET } from "./request-budget.ts";
import type { Failure } from "./server-text.ts";

export type ServedKind = Pick<Resource, "group" | "version" | "kind" | "plural">;

/** Whether a kind is named by its kind or by its plural. */
export type KindName = "kind" | "plural";

const MAX_VERSIONS = 3;
/** If nothing shows what was meant. */
const INSTALL_KIND = "install its CRD, or correct apiVersion or kind";
/** The list of all kinds is newer than the answer that lacks the kind. */
const NOT_YET = "its CRD is new and not served yet; wait some seconds, or try again";

/**
 * In this order: that it is not served yet; the kind in other letters, or its plural for its kind; the kind in another group
 * or version; a kind with a similar name in this version.
 */
export function kindAdvice(apiVersion: string, wanted: string, by: KindName, served: readonly ServedKind[]): string {
  const isHere = (each: ServedKind) => apiVersionOf(each) === apiVersion;
  const text = wanted.toLowerCase();
  const same = served.filter(({ kind, plural }) => kind.toLowerCase() === text || plural.toLowerCase() === text);
  const here = same.find(isHere);
  if (here?.[by] === wanted) return NOT_YET;
  if (here !== undefined) return `did you mean ${here[by]}?`;
  const { group } = parseApiVersion(apiVersion);
  const [first] = same.toSorted((a, b) => Number(b.group === group) - Number(a.group === group));
  if (first !== undefined) {
    const places = same.filter((each) => each[by] === first[by]).map(apiVersionOf);
    const inGroup = places.filter((place) => parseApiVersion(place).group === group);
    return `${first[by]} is served in ${firstOf(inGroup.length > 0 ? inGroup : places, MAX_VERSIONS)}; correct apiVersion`;
  }
  const near = similarName(
    wanted,
    served.filter(isHere).flatMap(({ kind, plural }) => [kind, plural]),
  );
  const meant = served.find((each) => isHere(each) && (each.kind === near || each.plural === near));
  return meant === undefined ? INSTALL_KIND : `did you mean ${meant[by]}?`;
}

/** The purpose of a request: its identity, its object, and all verbs that the identity needs there. */
export interface RequiredAccess {
  identity: Identity;
  /** Without a name, all objects of the kind there. */
  ref: Pick<ObjectRef, "resource"> & { namespace?: string | undefined; name?: string };
  verbs: readonly string[];
}

/** The name of the accounts that the manifests let the controller impersonate, in every namespace. */
export const OPEN_ACCOUNT = "inlay";
/** The controller's own account, in every installation. */
export const OWN_ACCOUNT = "inlay-controller";

/** What a reflector needs. */
export const STREAM_VERBS = ["list", "watch"];
export const READ_VERBS = ["get", ...STREAM_VERBS];
export const WRITE_VERBS = [...READ_VERBS, "patch"];
const CREATE_VERBS = [...WRITE_VERBS, "create"];
const OWN_VERBS = [...CREATE_VERBS, "delete"];

/** An account requests tokens for itself. */
export const tokenAccess = (account: ObjectRef) => ({
  ref: { ...account, resource: ACCOUNT_TOKENS },
  verbs: ["create"],
});

/**
 * The verbs that an account needs on a target. More are needed if the binding creates the target, or deletes it: on release,
 * or to create it again.
 */
export function verbsFor(creates: boolean, onRelease: "Retain" | "Remove", recreates = false): readonly string[] {
  return !creates ? WRITE_VERBS : onRelease === "Remove" || recreates ? OWN_VERBS : CREATE_VERBS;
}

/**
 * The Problem of an `error` that prevented a `verb`. Rethrows any error but ApiError. Callers explain a 404 of the
 * object; this explains a 404 of its kind.
 */
export function refusal(error: unknown, use: RequiredAccess, verb: string): Problem {
  if (error instanceof Problem) return error;
  if (!(error instanceof ApiError)) throw error;
  const { ref } = use;
  if (isUnopened(error.reason)) return tooManyWatches(error.reason, use);
  if (error.status === 403 && !error.isDenied)
    return isImpersonation(error, use) ? mayNotImpersonate(use.identity) : forbidden(...refusedTo(error, use, verb));
  if (error.failure !== undefined) return lastingFailure(error.failure, ref, verb);
  if (error.namespaceEnds) return new Problem("TargetNotFound", namespaceEnding(ref), "Slow");
  if (error.denial !== undefined) return new Rejection(error, { verb, object: describe(ref) });
  if (error.status === 404 && !isNotFound(error)) return kindNotFound(apiVersionOf(ref.resource), ref.resource.kind);
  if (error.reason === OVER_BUDGET) {
    const message = `Inlay ended this reconcile because it took too long or needed too many requests, before it could ${verb} ${describe(ref)}; it continues later; if that happens again, split the binding`;
    return new Problem("Unavailable", message);
  }
  if (error.reason === "TooDeep") {
    const message = `${describe(ref)} has more than ${MAX_LEVELS} levels, including its managedFields, and Inlay can't read it; nest fewer objects and lists`;
    return new Problem("TooDeep", message);
  }
  if (error.reason === "TooLarge" || error.reason === "TooManyOwners") return tooLarge(error.reason, ref);
  if (error.isMisread) {
    const message = `a value that the binding writes to ${describe(ref)} does not have the type of its field; correct the value, or set \`as\` to the type of the field`;
    return new Problem("TypeMismatch", message);
  }
  if (error.isTooLarge) {
    const message = `${describe(ref)} would be larger than the API server stores; write fewer or smaller values, or make the object smaller`;
    return new Problem("TooLarge", message);
  }
  if (error.status === 0 || error.status === 401 || error.status === 429 || error.status >= 500) {
    const message = `the API server did not ${verb} ${describe(ref)} (${error.reason}); Inlay retries`;
    return new Problem("Unavailable", message);
  }
  return new Rejection(error, { verb, object: describe(ref) });
}

/** The permission that the refused request needs. It may be another one than its purpose: a write first reads in other versions. */
function refusedTo({ asked }: ApiError, use: RequiredAccess, meant: string): [RequiredAccess, string] {
  const object = asked && objectOf(asked.path);
  if (asked === undefined || object === undefined) return [use, meant];
  const { resource } = use.ref;
  const verb = verbOf(asked, meant);
  if (
    asked.identity === use.identity &&
    object.resource.plural === resource.plural &&
    object.resource.group === resource.group
  )
    return [{ ...use, verbs: use.verbs.includes(verb) ? use.verbs : [verb, ...use.verbs] }, verb];
  const ref = { ...object, resource: { ...resource, ...object.resource } };
  return [{ identity: asked.identity, ref, verbs: [verb] }, verb];
}

function tooLarge(reason: "TooLarge" | "TooManyOwners", ref: RequiredAccess["ref"]): Problem {
  const [object, mib] = [describe(ref), MAX_CHARACTERS / 1024 ** 2];
  const message =
    reason === "TooManyOwners"
      ? `the managedFields of ${object} have more than ${MAX_OWNERS} entries or ${MAX_OWNERS_CHARACTERS} characters, and Inlay can't read them; split the object, or let fewer field managers write it`
      : `${object} ${ref.name === undefined ? "contain an object that " : ""}has more than ${mib} MiB as JSON, and Inlay can't read it; split it into smaller objects`;
  return new Problem("TooLarge", message);
}

export const namespaceEnding = ({ namespace = "" }: { namespace?: string | undefined }) =>
  `namespace ${plainWord(namespace)} is being deleted; nothing can be created in it`;

/**
 * What the API server can't do for this kind, object or request, while it answers others. It is no outage: it ends when
 * a user fixes it.
 */
export function lastingFailure(failure: Failure, ref: RequiredAccess["ref"], verb: string): Problem {
  const not = `the API server can't ${verb} ${describe(ref)}`;
  const { group, plural, kind } = ref.resource;
  if (failure.of === "webhook") {
    const what = `${not}, because it can't call the admission webhook ${failure.webhook}`;
    const fix = `start or fix the webhook, or set its failurePolicy to Ignore. ${findWebhook.fix}`;
    return new Problem("WebhookFailed", { what, fix, command: findWebhook.command });
  }
  if (failure.of === "conversion") {
    const crd = `${plural}.${group}`;
    const check = `kubectl get crd ${crd} -o jsonpath='{.spec.conversion.webhook.clientConfig}'`;
    const what = `${not}, because the conversion webhook of CustomResourceDefinition ${crd} fails`;
    const fix = "start or fix the webhook. Show where it runs";
    return new Problem("ConversionFailed", { what, fix, command: check });
  }
  const what = ref.name === undefined ? `an object of the kind ${kind}` : "it";
  const message = `${not}, because it can't decode ${what} as etcd stores it; ask a cluster admin to restore that object, or to delete it from etcd, as docs/troubleshooting.md describes`;
  return new Problem("UndecodableObject", message);
}

/** Why a list or watch fails. */
export function streamRefusal(error: ApiError, use: RequiredAccess, verb: "list" | "watch"): Problem {
  return ofStream(error, refusal(error, use, verb));
}

/**
 * A watch that is forbidden is requested again, and the binding requeued when it opens, so the binding need not retry.
 */
function ofStream({ status }: ApiError, problem: Problem): Problem {
  if (status !== 403) return problem;
  return problem.with({ retryPolicy: "OnChange" });
}

/**
 * Waits for work that does not depend on the permissions of a binding's account, such as discovery. A failure of the
 * API server is a result, so that one broken API group does not block a binding from others.
 */
export async function attempt<T>(work: Promise<T>): Promise<T | Problem> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Problem) return error;
    if (error instanceof ApiError) return new Problem("Unavailable", `${error.message}; Inlay retries`);
    throw error;
  }
}

/** The problem of a missing account of a binding or another object. `use` says what the account is for. */
export function accountNotFound(
  identity: Identity,
  use = "as which this binding reads and writes",
  orElse = "",
): Problem {
  const [, , namespace, name] = identity.split(":");
  return new Problem("ServiceAccountNotFound", {
    what: `there is no ${describeIdentity(identity)}, ${use}`,
    fix: `${orElse}create it`,
    command: `kubectl create serviceaccount ${name} -n ${namespace}`,
  });
}

export function kindNotFound(apiVersion: string, kind: string, advice = INSTALL_KIND): Problem {
  return new Problem("KindNotFound", `the cluster serves no ${plainWord(kind)} in ${plainWord(apiVersion)}; ${advice}`);
}

/** Why the binding or its namespace may open no further watch, by the reason of the error. */
const UNOPENED = {
  TooManyNames: (account: string, all: string) =>
    `the binding names more objects than Inlay watches one by one; allow ${account} to ${all}, which takes one watch, or select the objects by labels, or split the binding`,
  TooManyStreams: (account: string, all: string) =>
    `its namespace has reached Inlay's limit of open watches, and this one opens when others end; allow ${account} to ${all}, so that they share one watch, or name fewer objects`,
  TooManySubscriptions: () =>
    "the bindings of its namespace depend on more objects than Inlay observes for one namespace, and this one is observed when others end; name fewer objects in the bindings, or delete bindings that are not needed",
  TooManyPaths: (_: string, __: string, kind: string) =>
    `the bindings of its namespace name too many different template or restartPath for ${kind} in spec.rollout.targets; use the same ones in all bindings`,
};

const isUnopened = (reason: string): reason is keyof typeof UNOPENED => Object.hasOwn(UNOPENED, reason);

/** The request was not sent. */
function tooManyWatches(reason: keyof typeof UNOPENED, { identity, ref }: RequiredAccess): Problem {
  const { resource, namespace } = ref;
  const all = `list and watch all ${describe({ resource, namespace })}`;
  const why = UNOPENED[reason](describeIdentity(identity), all, resource.kind);
  return new Problem("TooManyWatches", `${describe(ref)} is not watched: ${why}`);
}

function describe({ resource, namespace, name }: RequiredAccess["ref"]): string {
  if (name !== undefined) return describeObject(resource.kind, namespace, name);
  return namespace === undefined ? resource.plural : `${resource.plural} in namespace ${plainWord(namespace)}`;
}

/** Whether the API server refused the impersonation of the account itself. */
export function isImpersonation(
  { subject }: ApiError,
  { identity, ref }: { identity: Identity; ref: { resource: Pick<Resource, "plural"> } },
): boolean {
  const { resource, name } = subject;
  const isAnAccount = resource === "serviceaccounts" && ref.resource.plural !== resource;
  return identity !== CONTROLLER && isAnAccount && identity.endsWith(`:${name}`);
}

/**
 * Without the namespace of Inlay's own account, the message refers to the page with the Role.
 */
export function mayNotImpersonate(identity: Identity, ownNamespace?: string, orElse = ""): Problem {
  const [, , namespace, name = ""] = identity.split(":");
  const refused = `Inlay may not impersonate ${describeIdentity(identity)}, only accounts named ${OPEN_ACCOUNT}`;
  if (ownNamespace === undefined) {
    const page = "docs/tasks/allow-a-namespace.md";
    return new Problem("ImpersonationForbidden", `${refused}; use that name, or allow this one as ${page} describes`);
  }
  const access = { resource: SERVICE_ACCOUNTS, namespace, name };
  const commands = grantCommands(serviceAccountIdentity(ownNamespace, OWN_ACCOUNT), [
    { ref: access, verbs: ["impersonate", ...READ_VERBS] },
  ]);
  const fix = `${orElse || "use that name, or "}allow this one`;
  return new Problem("ImpersonationForbidden", { what: refused, fix, command: commands.join("; ") });
}

/**
 * Why the controller can't read a binding's account: no Role opens an account of that name, or the manifests are not
 * applied.
 */
export function accountRefusal(error: ApiError, identity: Identity, ref: ObjectRef, ownNamespace?: string): Problem {
  if (error.status === 403 && ref.name !== OPEN_ACCOUNT)
    return ofStream(error, mayNotImpersonate(identity, ownNamespace));
  return streamRefusal(error, { identity: CONTROLLER, ref, verbs: READ_VERBS }, "watch");
}

/** A permission that an account lacks. The command grants this permission alone. */
export class AccessDenied extends Problem {
  readonly access: RequiredAccess;
  constructor(access: RequiredAccess, refused: string, command: string) {
    super("Forbidden", { what: refused, fix: "allow it", command });
    this.access = access;
  }

  override get brief(): string {
    return this.with({ fix: "the conditions of the binding say how to allow it", command: undefined }).message;
  }
}

/** A permission that the controller's own account lacks, or the user of the command line. */
export class OwnAccessDenied extends Problem {
  /** What it may not do, such as `list pods in namespace harbor`. */
  readonly request: string;
  constructor(request: string) {
    super("Forbidden", {
      what: `${describeIdentity(CONTROLLER)} may not ${request}`,
      fix: "install the permissions of this version of Inlay, as docs/tasks/install.md describes",
    });
    this.request = request;
  }
}

/**
 * The missing permission of a request, and what else the identity needs on the object. The message does not reveal whether another
 * namespace exists: only an account with permissions there may know.
 */
export function forbidden(access: RequiredAccess, verb: string): Problem {
  const { identity, ref, verbs } = access;
  const { resource, namespace, name } = ref;
  const what = name === undefined ? resourceText(resource) : `${resourceText(resource)}/${plainWord(name)}`;
  const refused = `${describeIdentity(identity)} may not ${verb} ${what}`;
  const where = namespace === undefined ? "" : ` in namespace ${plainWord(namespace)}`;
  if (identity === CONTROLLER) return new OwnAccessDenied(`${verb} ${what}${where}`);
  const isElsewhere = namespace !== undefined && namespace !== homeOf(identity);
  const says = isElsewhere
    ? `namespace ${plainWord(namespace)} does not exist, or ${refused} in it (kubectl get namespace ${shellWord(namespace)} shows which)`
    : `${refused}${where}`;
  const commands = grantCommands(identity, [{ ref, verbs }]);
  return new AccessDenied(access, says, commands.join("; "));
}
