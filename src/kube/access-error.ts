/** A failed request comes in, with what it was for; a Problem that says what to do goes out. */
import { MAX_LEVELS } from "../apimachinery/json.ts";
import { apiVersionOf, describeObject, type ObjectRef, type Resource } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { ApiError, isNotFound } from "./api-error.ts";
import { CONTROLLER, describeIdentity, type Identity } from "./identity.ts";

/** What a request was for: as whom, on what, and all the verbs that this use of the object needs. */
export interface RequiredAccess {
  identity: Identity;
  /** Without a name, all objects of the kind there. */
  ref: Pick<ObjectRef, "resource"> & { namespace?: string | undefined; name?: string };
  verbs: readonly string[];
}

/** The one name whose accounts the manifests open to the controller, in every namespace. */
export const OPEN_ACCOUNT = "inlay";

export const READ_VERBS = ["get", "list", "watch"];
export const WRITE_VERBS = [...READ_VERBS, "patch"];
const MAKE_VERBS = [...WRITE_VERBS, "create"];
const OWN_VERBS = [...MAKE_VERBS, "delete"];

/** What an account needs to do to a target: one that its binding makes, and deletes when that is released, or any other. */
export function verbsFor(isMade: boolean, onRelease: "Retain" | "Remove"): readonly string[] {
  return !isMade ? WRITE_VERBS : onRelease === "Remove" ? OWN_VERBS : MAKE_VERBS;
}

/**
 * Says why `error` stopped a `verb`. Everything but an ApiError is thrown on as it is. A 404 of the object itself is
 * the caller's to explain; a 404 of its kind is explained here.
 */
export function refusal(error: unknown, use: RequiredAccess, verb: string): Problem {
  if (error instanceof Problem) return error;
  if (!(error instanceof ApiError)) throw error;
  const { ref } = use;
  if (error.reason === "TooManyNames" || error.reason === "TooManyStreams") return tooManyWatches(error.reason, use);
  if (error.status === 403 && !error.isDenied)
    return isImpersonation(error, use) ? mayNotImpersonate(use.identity) : forbidden(use, verb);
  if (error.status === 404 && !isNotFound(error)) return kindNotFound(apiVersionOf(ref.resource), ref.resource.kind);
  if (error.reason === "TooDeep") {
    const message = `${describe(ref)} nests more than ${MAX_LEVELS} levels deep, with its managedFields, and is not read; make it flatter`;
    return new Problem("TooDeep", message);
  }
  if (error.isMisread) {
    const message = `the API server can't read a value that the binding gives for ${describe(ref)} as its field has it; correct the value, or say by as what it is`;
    return new Problem("TypeMismatch", message);
  }
  if (error.status === 0 || error.status === 401 || error.status === 429 || error.status >= 500) {
    const message = `the API server did not ${verb} ${describe(ref)} (${error.reason}); it is tried again`;
    return new Problem("Unavailable", message);
  }
  const message = `the API server refused to ${verb} ${describe(ref)} (${error.status} ${error.reason}); its schema, CEL rules or an admission policy don't take what the binding gives`;
  return new Problem("Rejected", message);
}

/** Why a stream does not come. */
export function streamRefusal(error: ApiError, use: RequiredAccess, verb: "list" | "watch"): Problem {
  return ofStream(error, refusal(error, use, verb));
}

/** A stream that may not be goes on asking, and calls when it may. */
function ofStream({ status }: ApiError, problem: Problem): Problem {
  return status === 403 ? new Problem(problem.reason, problem.message, "OnChange") : problem;
}

/**
 * Waits for something that does not depend on what the binding's account may do, such as discovery. Every failure of the
 * API server is a result, so that one broken group of APIs does not keep a binding from the others.
 */
export async function attempt<T>(work: Promise<T>): Promise<T | Problem> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Problem) return error;
    if (error instanceof ApiError) return new Problem("Unavailable", `${error.message}; it is tried again`);
    throw error;
  }
}

/** What to say when the account of a binding, or of something else, does not exist. `use` is what the account is for. */
export function accountNotFound(identity: Identity, use = "as which this binding reads and writes"): Problem {
  const [, , namespace, name] = identity.split(":");
  const message = `there is no ${describeIdentity(identity)}, ${use}; make it with: kubectl create serviceaccount ${name} -n ${namespace}`;
  return new Problem("ServiceAccountNotFound", message);
}

export function kindNotFound(apiVersion: string, kind: string): Problem {
  const message = `the cluster serves no ${kind} in ${apiVersion}; install its CRD, or correct apiVersion`;
  return new Problem("KindNotFound", message);
}

/** Nothing was asked of the API server, as the binding, or its namespace, has as much watched as it may. */
function tooManyWatches(reason: "TooManyNames" | "TooManyStreams", { identity, ref }: RequiredAccess): Problem {
  const { resource, namespace } = ref;
  const all = `list and watch all ${describe({ resource, namespace })}`;
  const why =
    reason === "TooManyNames"
      ? `the binding names more objects than Inlay watches one by one; let ${describeIdentity(identity)} ${all}, which takes one watch, select them by labels, or split the binding`
      : `its namespace has as many watches open as Inlay has room for, and this one opens when others end; let ${describeIdentity(identity)} ${all}, so that they share one, or name fewer objects`;
  return new Problem("TooManyWatches", `${describe(ref)} is not watched: ${why}`);
}

function describe({ resource, namespace, name }: RequiredAccess["ref"]): string {
  if (name !== undefined) return describeObject(resource.kind, namespace, name);
  return namespace === undefined ? resource.plural : `${resource.plural} in namespace ${namespace}`;
}

/** A refused impersonation names the account itself as what was refused. */
export function isImpersonation(
  { subject }: ApiError,
  { identity, ref }: { identity: Identity; ref: { resource: Pick<Resource, "plural"> } },
): boolean {
  const { resource, name } = subject;
  const isAnAccount = resource === "serviceaccounts" && ref.resource.plural !== resource;
  return identity !== CONTROLLER && isAnAccount && identity.endsWith(`:${name}`);
}

export function mayNotImpersonate(identity: Identity): Problem {
  const [, , namespace, name] = identity.split(":");
  const role = `a Role in namespace ${namespace} with the verbs impersonate, get, list, watch on serviceaccounts/${name}`;
  const message = `Inlay may not act as ${describeIdentity(identity)}: only accounts named inlay are open to it. Use that name, or bind ${role} to Inlay's own account`;
  return new Problem("ImpersonationForbidden", message);
}

/** Why the controller can't see the account of a binding: it is of a name that nobody opened, or the manifests are missing. */
export function accountRefusal(error: ApiError, identity: Identity, ref: ObjectRef): Problem {
  if (error.status === 403 && ref.name !== OPEN_ACCOUNT) return ofStream(error, mayNotImpersonate(identity));
  return streamRefusal(error, { identity: CONTROLLER, ref, verbs: READ_VERBS }, "watch");
}

/**
 * Names the commands that make the very Role which is missing. The role is called after all that makes it another's, so
 * that nobody's commands fail because somebody ran his; and a name in a binding is its author's, so it is quoted. RBAC
 * knows no names where something is made, so that takes a Role of its own.
 */
export function forbidden({ identity, ref, verbs }: RequiredAccess, verb: string): Problem {
  const { resource, namespace, name } = ref;
  const plural = resource.group === "" ? resource.plural : `${resource.plural}.${resource.group}`;
  const what = name === undefined ? plural : `${plural}/${name}`;
  const where = namespace === undefined ? "" : ` in namespace ${namespace}`;
  const refused = `${describeIdentity(identity)} may not ${verb} ${what}${where}`;
  if (identity === CONTROLLER)
    return new Problem("Forbidden", `${refused}; see deploy/manifests for the rights it needs`);
  const [, , accountNamespace, account] = identity.split(":");
  // The same whether there is that namespace or not: only an account with permissions there may know.
  const orElse = namespace === undefined || namespace === accountNamespace ? "" : ", or there is no such namespace";
  const [role, scope] = namespace === undefined ? ["clusterrole", ""] : ["role", ` -n ${namespace}`];
  const allow = (uses: string, what: string) => {
    const roleName = shellWord(`${accountNamespace}-${account}-${uses}`.replaceAll("/", "-"));
    const binding = `${role}binding ${roleName}${scope} --${role}=${roleName} --serviceaccount=${accountNamespace}:${account}`;
    return `kubectl create ${role} ${roleName}${scope} ${what} && kubectl create ${binding}`;
  };
  const onName = verbs.filter((each) => each !== "create");
  const use = onName.includes("delete") ? "owns" : onName.includes("patch") ? "writes" : "reads";
  const [uses, only] =
    name === undefined ? [`${use}-${plural}`, ""] : [`${use}-${plural}-${name}`, ` --resource-name=${shellWord(name)}`];
  const commands = [
    ...(verb === "create" ? [] : [allow(uses, `--verb=${onName.join(",")} --resource=${plural}${only}`)]),
    ...(verbs.includes("create") ? [allow(`makes-${plural}`, `--verb=create --resource=${plural}`)] : []),
  ];
  return new Problem("Forbidden", `${refused}${orElse}; allow it with: ${commands.join(" && ")}`);
}

const shellWord = (text: string) => (/^[\w.:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
